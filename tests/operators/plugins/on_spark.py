"""Operators for runs on Spark. What is wrong with the first version is mended in the second, which
they are of if the environment says so."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from penstock.operators import BIGINT, Argument, FunctionOperator, operator
from tests.operators.plugins.misbehaving import BAD, MEGABYTE, MEMORY_BYTES, SHORT_SECONDS

MENDED = "PENSTOCK_TEST_MENDED"
MARKER = "PENSTOCK_TEST_MARKER"
"""A file that is there once Spark's worker was killed."""
VERSION = "2" if MENDED in os.environ else "1"
N = [Argument("n", BIGINT)]

_hoard: list[bytearray] = []


def _is_bad(n: int) -> bool:
    return VERSION == "1" and n == BAD


@operator("raises", N, version=VERSION)
def raises(n: int) -> bool:
    if _is_bad(n):
        raise ValueError("thirteen")
    return True


@operator("returnsText", N, version=VERSION)
def returns_text(n: int) -> object:
    return "yes" if _is_bad(n) else True


@operator("hangs", N, version=VERSION, timeout_seconds=SHORT_SECONDS)
def hangs(n: int) -> bool:
    while _is_bad(n):
        time.sleep(60)
    return True


@operator("allocates", N, version=VERSION, memory_limit_bytes=MEMORY_BYTES)
def allocates(n: int) -> bool:
    return len(bytearray(2 * MEMORY_BYTES if _is_bad(n) else MEGABYTE)) > 0


@operator("leaks", N, version=VERSION, memory_limit_bytes=MEMORY_BYTES)
def leaks(n: int) -> bool:
    """No row is to blame, and none is lost."""
    _hoard.append(bytearray(MEMORY_BYTES // 3))
    return True


@operator("killsItself", N, version=VERSION)
def kills_itself(n: int) -> bool:
    if _is_bad(n):
        os.kill(os.getpid(), signal.SIGKILL)
    return True


@operator("killsWorker", N, version=VERSION)
def kills_worker(n: int) -> bool:
    """Kills the process of Spark that asks, once: the task is tried again."""
    marker = Path(os.environ[MARKER])
    if n == BAD and not marker.exists():
        marker.touch()
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    return True


@operator("isOdd", N, version=VERSION)
def is_odd(n: int) -> bool:
    """Another opinion in the second version."""
    return n % 2 == int(VERSION) % 2


FAILING: dict[FunctionOperator, str] = {
    raises: "raised an error",
    returns_text: "returned what it does not declare",
    hangs: "took longer than its timeout",
    allocates: "needs more memory than its limit",
    kills_itself: "ended the process that ran it",
}
HARMLESS = (leaks, kills_worker)
ALL = (*FAILING, *HARMLESS, is_odd)
