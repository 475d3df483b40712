"""Kernels where none are compiled yet: they run as Python until compiling them pays."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.kernels.cache_directory import DIRECTORY_VARIABLE
from penstock.kernels.compiled import Kernel, _size, njit, njit_when_large, popcount
from penstock.kernels.preparation import GEAR_VARIABLE
from penstock.kernels.unions import Codes64

ROOT = Path(__file__).parents[2]
OFFSET = 3


@njit_when_large
def _plus_offset(number: int) -> int:
    return number + OFFSET


@njit_when_large
def add_up(numbers: Codes64) -> int:
    total = 0
    for one in numbers:
        total += _plus_offset(one)
    return total


@njit
def count_bits(words: Any) -> int:
    total = 0
    for word in words:
        total += popcount(word)
    return total


def run_waiting(code: str, directory: Path) -> Any:
    """What code prints as JSON in a process where no kernel is compiled."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), DIRECTORY_VARIABLE: str(directory)}
    del environment[GEAR_VARIABLE]
    head = "import json, sys; import numpy as np; from tests.kernels import test_compiled as t\n"
    ran = subprocess.run(
        [sys.executable, "-c", head + code],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_in_tests_kernels_are_compiled() -> None:
    assert not isinstance(add_up, Kernel)
    assert add_up(np.arange(4)) == 18
    assert count_bits(np.array([5, 7], np.uint64)) == 5


def test_little_work_is_done_by_python(tmp_path: Path) -> None:
    code = """
found = [int(t.add_up(np.arange(4))) for _ in range(3)]
print(json.dumps([found, "numba" in sys.modules]))
"""
    assert run_waiting(code, tmp_path) == [[18] * 3, False]


@pytest.mark.slow
@pytest.mark.parametrize(
    "pay",
    [
        "assert t.add_up(np.arange(70_000)) > 0",
        "t.add_up._patience = 0.0",
        "import penstock.kernels.compiled as c; c.may_load_kernels = lambda: True",
    ],
    ids=["a large array", "no patience left", "kernels are ready"],
)
def test_more_of_it_is_compiled(pay: str, tmp_path: Path) -> None:
    code = f"""
{pay}
found = int(t.add_up(np.arange(4)))
names = [str(one) for one in t.add_up.compiled.signatures]
print(json.dumps([found, "numba" in sys.modules, len(names)]))
"""
    assert run_waiting(code, tmp_path) == [18, True, 1]


def test_whether_kernels_are_ready_is_asked_once_a_second(tmp_path: Path) -> None:
    code = """
import types
import penstock.kernels.compiled as c
asked = []
c.may_load_kernels = lambda: asked.append(now) or False
c.time = types.SimpleNamespace(perf_counter=lambda: now)
for now in [5.0, 5.1, 5.9, 6.1, 6.2, 9.0]:
    assert t.add_up(np.arange(4)) == 18
print(json.dumps(asked))
"""
    assert run_waiting(code, tmp_path) == [5.0, 6.1, 9.0]


@pytest.mark.slow
def test_instructions_that_python_lacks_are_compiled(tmp_path: Path) -> None:
    code = "print(json.dumps(int(t.count_bits(np.array([5, 7], np.uint64)))))"
    assert run_waiting(code, tmp_path) == 5
    # And kept, for processes that load kernels at once as well.
    kept = [path.name for path in tmp_path.rglob("*count_bits*.kernel")]
    assert len(kept) == 1
    environment = {**os.environ, "PYTHONPATH": str(ROOT), DIRECTORY_VARIABLE: str(tmp_path)}
    code = "from tests.kernels.test_compiled import *; test_in_tests_kernels_are_compiled()"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True)
    assert [path.name for path in tmp_path.rglob("*count_bits*.kernel")] == kept


def test_the_size_of_a_call() -> None:
    assert _size((1, np.zeros((2, 3)), (np.zeros(4), ((np.zeros(1),), None)))) == 11
