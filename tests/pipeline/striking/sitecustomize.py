"""Kills a run at an exact point of a batch, or lets its stages fail of a marked record.

Python loads a module of this name on its own when it starts. Where PYTHONPATH leads here, every
Python of a run does: driver, workers, and those that plan and commit. PENSTOCK_STRIKE says when to
strike: the point, after how many published batches, and the home. PENSTOCK_FAIL is the mark.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any


def _strike(point: str) -> None:
    wanted, batches, home = os.environ["PENSTOCK_STRIKE"].split(" ", 2)
    published = len(list(Path(home, "messages").glob("*.messages")))
    if point == wanted and published >= int(batches):
        # Driver, Java and what it starts are in the group of the session's leader; the workers
        # in another one, as this process is if it is a worker.
        os.killpg(os.getsid(0), signal.SIGKILL)
        os.killpg(os.getpgid(0), signal.SIGKILL)


def _around(module: Any, name: str, before: str = "", after: str = "") -> None:
    """Let a function of a module strike before or after its work."""
    original: Callable[..., Any] = getattr(module, name)

    def struck(*arguments: Any, **named: Any) -> Any:
        _strike(before)
        result = original(*arguments, **named)
        _strike(after)
        return result

    setattr(module, name, struck)


def _change_sink(sink: ModuleType) -> None:
    _around(sink, "publish", "before-it-is-published", "before-staged-files-are-removed")
    _around(sink.MessageSink, "commit", after="before-Sparks-commit")


def _change_rows(rows: ModuleType) -> None:
    _around(rows, "stage", "before-a-file-is-staged")


def _change_message_log(_: ModuleType) -> None:
    replace = Path.replace

    def renamed(self: Path, target: Path) -> Path:
        if str(target).endswith(".messages"):
            _strike("before-the-file-is-renamed")
        return replace(self, target)

    Path.replace = renamed  # type: ignore[assignment]


def _change_source(source: ModuleType) -> None:
    _around(source.LogReader, "latestOffset", "after-Sparks-commit")


def _fail_of_mark(owner: Any, name: str) -> None:
    """Let a function fail of arguments that show the mark, or of all if they show nothing."""
    original: Callable[..., Any] = getattr(owner, name)

    def failing(*arguments: Any, **named: Any) -> Any:
        shown = repr(arguments[1:])
        if os.environ["PENSTOCK_FAIL"] in shown or " object at 0x" in shown:
            raise ZeroDivisionError(f"in {name}")
        return original(*arguments, **named)

    setattr(owner, name, failing)


_FAULTS: dict[str, Callable[[ModuleType], None]] = {
    "penstock.joins.packed.joining": lambda module: _fail_of_mark(module.PackedJoins, "run"),
    "penstock.flow.plain": lambda module: _fail_of_mark(module.JoinStage, "_run_group"),
}
_STRIKES: dict[str, Callable[[ModuleType], None]] = {
    "penstock.pipeline.chunks": _change_rows,
    "penstock.pipeline.sink": _change_sink,
    "penstock.storage.message_log": _change_message_log,
    "penstock.pipeline.source": _change_source,
}


class _Changer(importlib.abc.MetaPathFinder):
    """Changes modules right after they are loaded."""

    def __init__(self, changes: dict[str, Callable[[ModuleType], None]]) -> None:
        self._changes = dict(changes)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        change = self._changes.pop(name, None)
        if change is None:
            return None
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        execute = spec.loader.exec_module

        def changed(module: ModuleType) -> None:
            execute(module)
            change(module)

        spec.loader.exec_module = changed  # type: ignore[method-assign]
        return spec


if "PENSTOCK_STRIKE" in os.environ:
    sys.meta_path.insert(0, _Changer(_STRIKES))
if "PENSTOCK_FAIL" in os.environ:
    sys.meta_path.insert(0, _Changer(_FAULTS))
