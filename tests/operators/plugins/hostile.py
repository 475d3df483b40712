"""Operators that do harm beside what they return, where other processes find them."""

from __future__ import annotations

import os
from collections.abc import Mapping

from penstock.catalog import Outside
from penstock.operators import BIGINT, Argument, Operator, Output, operator
from penstock.operators.frames import FAILED, RESULTS, frame
from tests.operators.plugins.misbehaving import N

REPLIES: dict[int, bytes] = {
    1: frame((RESULTS, 5, 0.1)),
    2: frame((RESULTS, [True], "x")),
    3: frame((FAILED, "no such kind", "x")),
    4: frame((RESULTS, [{"a": 1}], 0.1)),
    5: b"\xff" * 64,
    6: frame(["?"]),
    7: frame((RESULTS, [[["x"]]], 0.1)),
    8: frame((RESULTS, [True], float("nan"))),
    9: frame((FAILED, "raised", "y" * 3_000_000)),
    10: frame((RESULTS, [True, True], 0.1)),
}


@operator("speaksForItself", [N])
def speaks_for_itself(n: int) -> bool:
    """Writes into the pipe by which its process answers."""
    for descriptor in range(3, 30):
        try:
            if os.readlink(f"/proc/self/fd/{descriptor}").startswith("pipe"):
                os.write(descriptor, REPLIES.get(n, b""))
        except OSError:
            continue
    return True


def raise_error(constants: Mapping[str, Outside]) -> None:
    raise ValueError("not \ud800 these")


def end_process(constants: Mapping[str, Outside]) -> None:
    raise SystemExit(3)


CONSTANT = Argument("c", BIGINT, constant=True)


@operator("raisesWhenAsked", [N, CONSTANT], check_constants=raise_error)
def raises_when_asked(n: int, c: int) -> bool:
    return n == c


@operator("exitsWhenAsked", [N, CONSTANT], check_constants=end_process)
def exits_when_asked(n: int, c: int) -> bool:
    return n == c


class Fine(Operator):
    name = "fine"
    arguments = (N,)

    def evaluate(self, rows: object) -> list[bool]:
        return []


class WithoutName(Fine):
    @property
    def name(self) -> str:  # type: ignore[override]
        raise RuntimeError("no name")


class WithoutVersion(Fine):
    @property
    def version(self) -> str:  # type: ignore[override]
        raise RuntimeError("no version")


class HalfAList(Fine):
    @property
    def outputs(self) -> object:  # type: ignore[override]
        yield Output("m", BIGINT)
        raise RuntimeError("no more")


class NotToBeSent(Fine):
    def __reduce__(self) -> tuple[object, ...]:
        raise RuntimeError("it stays here")
