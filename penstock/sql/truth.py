"""Three-valued logic on one column: the values for which a condition is true, and false.

For the values in neither set the condition is NULL. NOT swaps the two sets, AND and OR combine
them, and only the true set is used in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.predicates.intervals import EVERYTHING, IS_NULL, NOT_NULL, Interval
from penstock.predicates.unions import (
    ANY_BUT_NULL,
    NO_VALUE,
    Union,
    intersect_unions,
    subtract,
    union,
)


@dataclass(frozen=True, slots=True)
class Truth:
    true: Union
    false: Union

    def __invert__(self) -> Truth:
        return Truth(self.false, self.true)

    def __and__(self, other: Truth) -> Truth:
        return Truth(intersect_unions(self.true, other.true), union((*self.false, *other.false)))


UNKNOWN = Truth(NO_VALUE, NO_VALUE)
ISNULL = Truth((IS_NULL,), ANY_BUT_NULL)


def any_of(truths: Sequence[Truth]) -> Truth:
    """OR of many conditions, each true for few values; with one of them UNKNOWN, it is never
    false."""
    true = union(interval for truth in truths for interval in truth.true)
    return Truth(true, NO_VALUE if UNKNOWN in truths else subtract(NOT_NULL, true))


def unless_null(*intervals: Interval) -> Truth:
    """True in the intervals, false elsewhere, and NULL for NULL."""
    true = union(intervals)
    return Truth(true, subtract(NOT_NULL, true))


def exactly(*intervals: Interval) -> Truth:
    """True in the intervals, false elsewhere, NULL included."""
    true = union(intervals)
    return Truth(true, subtract(EVERYTHING, true))
