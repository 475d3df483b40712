"""Operators that behave, cheap enough for thousands of stories; workers can import them."""

from __future__ import annotations

from penstock.operators import BIGINT, DOUBLE, VARCHAR, Argument, FunctionOperator, Output, operator

N = Argument("n", BIGINT)
X = Argument("x", DOUBLE)
S = Argument("s", VARCHAR)


@operator("isOdd", [N])
def is_odd(n: int) -> bool:
    return n % 2 == 1


@operator("near", [N, Argument("m", BIGINT)])
def near(n: int, m: int) -> bool:
    return abs(n - m) <= 1


@operator("atLeast", [X, Argument("least", DOUBLE, constant=True)])
def at_least(x: float, least: float) -> bool:
    return x >= least


@operator("hasLetter", [S, Argument("letter", VARCHAR, constant=True)])
def has_letter(s: str, letter: str) -> bool:
    return letter in s


@operator("isAbsent", [N], takes_null=True)
def is_absent(n: int | None) -> bool:
    return n is None


@operator("isLucky", [N])
def is_lucky(n: int) -> bool | None:
    """Nobody knows of 2."""
    return None if n == 2 else n in (1, 3)


PREDICATES: tuple[FunctionOperator, ...] = (is_odd, near, at_least, has_letter, is_absent, is_lucky)
"""Those that bind no variables."""


@operator("divisors", [N], outputs=[Output("divisor", BIGINT)])
def divisors(n: int) -> list[tuple[int]] | None:
    return [(one,) for one in range(1, n + 1) if n % one == 0] if n >= 0 else None


@operator("splits", [N], outputs=[Output("one", BIGINT), Output("other", BIGINT)])
def splits(n: int) -> list[tuple[int, int | None]]:
    """All ways to write a number as a sum; the last part of the last way is unknown."""
    return [(one, n - one if one < n else None) for one in range(n + 1)]


@operator(
    "lettersOf",
    [S, Argument("least", BIGINT, constant=True)],
    outputs=[Output("letter", VARCHAR), Output("times", BIGINT)],
)
def letters_of(s: str, least: int) -> list[tuple[str, int]]:
    """The letters that a text has so often, at least."""
    return [(one, s.count(one)) for one in sorted(set(s)) if s.count(one) >= least]


BINDING: tuple[FunctionOperator, ...] = (divisors, splits, letters_of)
"""Those that bind variables."""
