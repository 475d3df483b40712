"""Operators that worker processes import: some that behave, one for each way not to."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

from penstock.operators import BIGINT, VARCHAR, Argument, Operator, Output, operator

N = Argument("n", BIGINT)
BAD = 13
"""The row that misbehaves."""
SHORT_SECONDS = 5.0
"""For something that never ends. Rows that behave take microseconds."""
MEGABYTE = 1 << 20
MEMORY_BYTES = 256 * MEGABYTE

_set_ups = 0
_hoard: list[bytearray] = []


def count_set_up() -> None:
    global _set_ups
    _set_ups += 1


@operator("isEven", [N], set_up=count_set_up)
def is_even(n: int) -> bool:
    return n % 2 == 0


@operator("setUps", [N], outputs=[Output("times", BIGINT)], set_up=count_set_up)
def set_ups(n: int) -> list[tuple[int]]:
    return [(_set_ups,)]


@operator("whereAmI", [N], outputs=[Output("pid", BIGINT)])
def where_am_i(n: int) -> list[tuple[int]]:
    return [(os.getpid(),)]


@operator("divisors", [N], outputs=[Output("divisor", BIGINT)])
def divisors(n: int) -> list[tuple[int]]:
    return [(one,) for one in range(1, n + 1) if n % one == 0]


@operator("isNull", [Argument("s", VARCHAR)], takes_null=True)
def is_null(s: str | None) -> bool:
    return s is None


@operator("raises", [N])
def raises(n: int) -> bool:
    if n == BAD:
        raise ValueError("thirteen")
    return True


@operator("raisesForAll", [N], by_batch=True)
def raises_for_all(rows: Sequence[tuple[int]]) -> list[bool]:
    if (BAD,) in rows:
        raise ValueError("thirteen is among them")
    return [True] * len(rows)


@operator("exits", [N], by_batch=True)
def exits(rows: Sequence[tuple[int]]) -> list[bool]:
    if (BAD,) in rows:
        sys.exit(3)
    return [True] * len(rows)


@operator("returnsText", [N])
def returns_text(n: int) -> object:
    return "yes" if n == BAD else True


@operator("returnsTooFew", [N], by_batch=True)
def returns_too_few(rows: Sequence[tuple[int]]) -> list[bool]:
    return [True for row in rows if row != (BAD,)]


@operator("prints", [N])
def prints(n: int) -> bool:
    print("noise", n)
    sys.stdin.read()
    return True


@operator("hangs", [N], timeout_seconds=SHORT_SECONDS)
def hangs(n: int) -> bool:
    while n == BAD:
        time.sleep(60)
    return True


@operator("hangsAlways", [N], timeout_seconds=0.2)
def hangs_always(n: int) -> bool:
    while True:
        time.sleep(60)


@operator("announces", [N])
def announces(n: int) -> bool:
    print(os.getpid(), flush=True)  # what operators print goes to stderr
    return True


@operator("announcesAndSleeps", [N])
def announces_and_sleeps(n: int) -> bool:
    announces(n)
    while True:
        time.sleep(60)


@operator("announcesAndFreezes", [N], timeout_seconds=SHORT_SECONDS)
def announces_and_freezes(n: int) -> bool:
    """Never lets another thread of its process run again."""
    sys.setswitchinterval(3_600)
    announces(n)
    ctypes.PyDLL(None).pause()  # a call that keeps the interpreter's lock
    return True


@operator("allocates", [N], memory_limit_bytes=MEMORY_BYTES)
def allocates(n: int) -> bool:
    return len(bytearray(2 * MEMORY_BYTES if n == BAD else 1)) > 0


@operator("leaks", [N], memory_limit_bytes=MEMORY_BYTES)
def leaks(n: int) -> bool:
    """Each row is harmless: it keeps a tenth of what the process may have."""
    _hoard.append(bytearray(MEMORY_BYTES // 10))
    return True


@operator("killsItself", [N])
def kills_itself(n: int) -> bool:
    if n == BAD:
        os.kill(os.getpid(), signal.SIGKILL)
    return True


@operator("leaves", [N])
def leaves(n: int) -> bool:
    if n == BAD:
        os._exit(3)
    return True


@operator("writesEverywhere", [N])
def writes_everywhere(n: int) -> bool:
    """Into descriptors that are none of its business."""
    for descriptor in range(3, 12) if n == BAD else ():
        try:
            os.write(descriptor, b"\xff" * 64)
        except OSError:
            continue
    return True


class Broken(Operator):
    """Cannot be set up."""

    name = "broken"
    arguments = (N,)

    def set_up(self) -> None:
        raise FileNotFoundError("model.bin")

    def evaluate(self, rows: Sequence[tuple[Any, ...]]) -> list[bool]:
        raise AssertionError("never set up")


class Model(Operator):
    """With a parameter that travels, and a model that is made where it is used."""

    name = "model"
    arguments = (N,)

    def __init__(self, least: int) -> None:
        self.least = least
        self.large: set[int] | None = None

    def set_up(self) -> None:
        self.large = set(range(self.least, 100))

    def evaluate(self, rows: Sequence[tuple[Any, ...]]) -> list[bool]:
        assert self.large is not None
        return [n in self.large for (n,) in rows]
