"""Compiled kernels are kept for all processes of a user, and never get in the way."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from penstock.kernels.cache_directory import _candidates, _is_usable
from penstock.kernels.compiled import njit
from penstock.kernels.preparation import KernelSet, kernels_ready, prepare_kernels

ROOT = Path(__file__).parents[2]

FACTORS = """
from penstock.kernels.compiled import njit

FACTOR = 10

@njit
def scaled(number):
    return FACTOR * number
"""
KERNEL = """
import numpy as np
from few_kernels.factors import scaled
from penstock.kernels.compiled import njit

@njit
def picked(numbers, at):
    return scaled(numbers[at])
"""
SCRIPT = """
import json
import numpy as np
from few_kernels.picking import picked
try:
    result = int(picked(np.arange(3), AT))
except IndexError:
    result = None
print(json.dumps({"result": result, "compiled": sum(picked.stats.cache_misses.values())}))
"""


class Kernels:
    """A package of two kernels, one of which calls the other, run by processes of their own."""

    def __init__(self, root: Path) -> None:
        self.cache = root / "cache"
        self._package = root / "few_kernels"
        self._package.mkdir()
        self.write("__init__", "")
        self.write("factors", FACTORS)
        self.write("picking", KERNEL)

    def write(self, module: str, source: str) -> None:
        (self._package / f"{module}.py").write_text(source, encoding="utf-8")

    def run(self, at: int = 2, **environ: str) -> dict[str, Any]:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(self._package.parent)]),
            "PENSTOCK_KERNEL_CACHE": str(self.cache),
            "NUMBA_BOUNDSCHECK": "0",
            **environ,
        }
        command = [sys.executable, "-c", SCRIPT.replace("AT", str(at))]
        ran = subprocess.run(command, env=environment, capture_output=True, check=False)
        assert ran.returncode == 0, ran.stderr.decode()
        found: dict[str, Any] = json.loads(ran.stdout)
        return found

    @property
    def files(self) -> list[Path]:
        return sorted(self.cache.rglob("*.kernel"))


@pytest.fixture
def kernels(tmp_path: Path) -> Kernels:
    return Kernels(tmp_path)


@pytest.mark.slow
def test_the_second_process_compiles_nothing(kernels: Kernels) -> None:
    assert kernels.run() == {"result": 20, "compiled": 1}
    assert kernels.run() == {"result": 20, "compiled": 0}


@pytest.mark.slow
def test_a_change_in_a_called_kernel_of_another_file_is_noticed(kernels: Kernels) -> None:
    kernels.run()
    kernels.write("factors", FACTORS.replace("10", "11"))
    assert kernels.run() == {"result": 22, "compiled": 1}


def _plus(number: int) -> Any:
    @njit
    def add(other: int) -> int:
        return number + other

    return add


def test_kernels_over_different_variables_are_different(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_KERNEL_CACHE", str(tmp_path))
    assert [_plus(number)(1) for number in (1, 2, 1)] == [2, 3, 2]
    assert len(list(tmp_path.rglob("*.kernel"))) == 2


class _OfAnEarlierLayout:
    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (_LostModule(), "gone")


class _LostModule:
    def __reduce__(self) -> str | tuple[Any, ...]:
        return __import__, ("penstock.no_such_room",)


def _with_hash(data: bytes) -> bytes:
    return sha256(data).digest() + data


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data[:-100] + bytes([data[-100] ^ 1]) + data[-99:],
        lambda _: _with_hash(pickle.dumps(_OfAnEarlierLayout())),
        lambda _: _with_hash(pickle.dumps(("what", "is", "this"))),
    ],
    ids=["empty", "torn", "flipped bit", "a module that is gone", "something else"],
)
def test_what_cannot_be_read_back_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Any
) -> None:
    monkeypatch.setenv("PENSTOCK_KERNEL_CACHE", str(tmp_path))
    assert _compiled_calls() == 1
    assert _compiled_calls() == 0
    (path,) = tmp_path.rglob("*.kernel")
    path.write_bytes(damage(path.read_bytes()))
    assert _compiled_calls() == 1
    assert _compiled_calls() == 0


def _plus_one(number: int) -> int:
    return number + 1


def _compiled_calls() -> int:
    """How many specialisations a new process would have to compile for a call."""
    kernel: Any = njit(_plus_one)
    assert kernel(1) == 2
    return sum(kernel.stats.cache_misses.values())


@pytest.mark.slow
def test_kernels_with_bounds_checks_are_kept_apart(kernels: Kernels) -> None:
    kernels.run(at=2)
    assert kernels.run(at=3, NUMBA_BOUNDSCHECK="1")["result"] is None
    assert {path.parent.name.endswith("-bounds") for path in kernels.files} == {True, False}


def test_without_a_directory_kernels_still_run(kernels: Kernels, tmp_path: Path) -> None:
    (tmp_path / "a file").touch()
    environ = {
        "PENSTOCK_KERNEL_CACHE": str(tmp_path / "a file"),
        "XDG_CACHE_HOME": str(tmp_path / "home"),
    }
    assert kernels.run(2, **environ)["result"] == 20
    assert list((tmp_path / "home").rglob("*.kernel"))


def test_the_directory_of_the_user_comes_before_the_shared_ones() -> None:
    chosen, user, *others = map(str, _candidates("kernels", "/chosen", "/home/cache"))
    assert chosen == "/chosen"
    assert user == "/home/cache/penstock/kernels"
    assert all("penstock" in other for other in others)


def test_a_directory_that_anybody_may_write_is_not_used(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert not _is_usable(shared / "kernels")
    shared.chmod(0o700)
    assert _is_usable(shared / "kernels")


@pytest.mark.slow
def test_kernels_are_prepared_by_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_KERNEL_CACHE", str(tmp_path))
    small = KernelSet("small", ("kernels",), "tests.kernels.test_cache:warm_up")
    assert not kernels_ready(small)
    monkeypatch.chdir(ROOT)
    assert prepare_kernels(small).wait(120) == 0
    assert kernels_ready(small)
    assert any("unite" in path.name for path in tmp_path.rglob("*.kernel"))
    assert not kernels_ready(KernelSet("small", ("kernels", "routing"), small.warm_up))


def test_a_warm_up_that_fails_leaves_kernels_unready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_KERNEL_CACHE", str(tmp_path))
    monkeypatch.chdir(ROOT)
    broken = KernelSet("broken", ("kernels",), "tests.kernels.test_cache:no_such_function")
    assert prepare_kernels(broken).wait(120) != 0
    assert not kernels_ready(broken)


def warm_up() -> None:
    """What the test's set of kernels is compiled by."""
    import numpy as np

    from penstock.kernels.unions import unite

    unite(np.arange(3), np.arange(3))
