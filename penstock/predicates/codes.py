"""Order codes: the values of one attribute as small integers, relative to a set of constants.

With the constants c0 < c1 < ... of one attribute, the value ci has the code 2i + 1, a value
between c(i-1) and ci has the code 2i, and NULL has -1. Any interval whose ends are among the
constants is then a closed range of codes, and "is the value in the interval?" is two integer
comparisons, whatever the type. Codes are local to one set of constants and never leave the index
that holds it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

from penstock.catalog.types import Key
from penstock.predicates.intervals import ABOVE_NULL, BOTTOM, TOP, Cut, Interval, above, below

NULL_CODE = -1


class Codes:
    """The codes of one attribute."""

    __slots__ = ("constants",)

    def __init__(self, constants: Iterable[Key]) -> None:
        self.constants: Sequence[Key] = sorted(set(constants))

    @classmethod
    def of_intervals(cls, intervals: Iterable[Interval]) -> Codes:
        return cls(c[1] for i in intervals for c in (i.low, i.high) if len(c) == 3)

    @property
    def top(self) -> int:
        """The largest code."""
        return 2 * len(self.constants)

    def constant(self, place: int) -> Key:
        return self.constants[place]

    def value(self, key: Key | None) -> int:
        if key is None:
            return NULL_CODE
        i = bisect_left(self.constants, key)
        return 2 * i + bool(i < len(self.constants) and self.constants[i] == key)

    def lowest_at_or_above(self, cut: Cut) -> int:
        """The smallest code whose values all lie above the cut.

        A cut between two constants lies inside a code: that code is not counted.
        """
        if cut == BOTTOM:
            return NULL_CODE
        if cut == ABOVE_NULL:
            return 0
        if len(cut) == 1:
            return self.top + 1
        code = self.value(cut[1])
        return code if code % 2 and cut[2] == 0 else code + 1

    def highest_at_or_below(self, cut: Cut) -> int:
        """The largest code whose values all lie below the cut."""
        if cut == TOP:
            return self.top
        if len(cut) == 1:
            return NULL_CODE - 1 if cut == BOTTOM else NULL_CODE
        code = self.value(cut[1])
        return code if code % 2 and cut[2] == 1 else code - 1

    def interval(self, interval: Interval) -> tuple[int, int]:
        """The closed range of codes of an interval whose ends are among the constants."""
        return self.lowest_at_or_above(interval.low), self.highest_at_or_below(interval.high)

    def low_cut(self, code: int) -> Cut:
        """The cut at which a range of codes that starts with `code` begins."""
        if code <= NULL_CODE:
            return BOTTOM
        if code == 0:
            return ABOVE_NULL
        if code > self.top:
            return TOP
        constant = self.constant((code - 1) // 2)
        return below(constant) if code % 2 else above(constant)

    def high_cut(self, code: int) -> Cut:
        """The cut at which a range of codes that ends with `code` stops."""
        if code >= self.top:
            return TOP
        if code <= NULL_CODE:
            return BOTTOM if code < NULL_CODE else ABOVE_NULL
        constant = self.constant(code // 2)
        return above(constant) if code % 2 else below(constant)
