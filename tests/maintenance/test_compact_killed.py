"""A compaction that is killed at any step changes nothing that anybody knows."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from penstock.maintenance.verification import verify
from penstock.storage import Home
from tests.maintenance.test_compact import shrink, used_home
from tests.maintenance.test_verify import everything_known, silent

# Crashes


class Crash(BaseException):
    """A process that is killed: nothing of ours catches it."""


STEPS = (
    "os.fsync",
    "pathlib.Path.replace",
    "pathlib.Path.unlink",
    "penstock.storage.segment_files.sync_directory",
    "penstock.storage.disk.sync_directory",
)


class Killer:
    """Kills at one call of a function, before it does anything or after it has done it."""

    def __init__(self, step: str, number: int, *, after: bool) -> None:
        module, _, self.name = step.rpartition(".")
        self.owner = Path if module == "pathlib.Path" else importlib.import_module(module)
        self._real = getattr(self.owner, self.name)
        self._left = number
        self._after = after

    def function(self) -> Callable[..., object]:
        def crashing(*arguments: object, **options: object) -> object:
            self._left -= 1
            if self._left == -1 and not self._after:
                raise Crash
            result: object = self._real(*arguments, **options)
            if self._left == -1:
                raise Crash
            return result

        return crashing


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_kill_at_each_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, after: bool
) -> None:
    home = used_home(tmp_path / "home", 3)
    before = everything_known(home)
    for number in count():
        left = Path(shutil.copytree(home, tmp_path / str(number)))
        killer = Killer(step, number, after=after)
        with monkeypatch.context() as patch:
            patch.setattr(killer.owner, killer.name, killer.function())
            try:
                shrink(left)
            except Crash:
                pass
            else:
                break
        # Readers, who take no lock, see the same as before; so does the next one who processes.
        assert not verify(Home.open(left), silent).has_problems
        copy = Path(shutil.copytree(left, tmp_path / f"{number}-copy"))
        assert everything_known(copy) == before
        shrink(left)
        assert everything_known(left) == before
        assert verify(Home.open(left), silent).findings == []
    assert number > 0
