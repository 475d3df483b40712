"""Rules for merging two interests of one space: each returns the merger, or None if it does not
apply.

A perfect merger stands for the same points as its two parts together. The imperfect rules are those
of Table 1 of Li, Hou and Jacobsen (2005), for parts that differ in one predicate, those of its text
(drop one or two predicates that differ), and bounding boxes. (In the table, `<` with `=` gives `<`,
which does not contain the value of `=`; here it gives `<=`.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from penstock.predicates.intervals import ABOVE_NULL, EVERYTHING, NOT_NULL, TOP, Interval
from penstock.routing.interests import Interest, hull

MergeRule: TypeAlias = Callable[[Interest, Interest], Interest | None]


def cover(one: Interest, other: Interest) -> Interest | None:
    """One of the two covers the other."""
    if one.covers(other):
        return one
    return other if other.covers(one) else None


def touching_ranges(one: Interest, other: Interest) -> Interest | None:
    """All ranges but one are equal, and the two ranges touch or overlap. Consecutive values of a
    discrete type touch, so a set of equalities without gaps becomes one range."""
    different = differences(one, other)
    if len(different) != 1:
        return None
    ((first, second),) = different.values()
    return hull(one, other) if first.touches(second) else None


def is_present(one: Interest, other: Interest) -> Interest | None:
    """`a < 1` and `a > 5` become `a IS NOT NULL`."""
    found = _one_predicate(one, other)
    if found is None:
        return None
    column, first, second = found
    if first.high == TOP:
        first, second = second, first
    if first.low == ABOVE_NULL and second.high == TOP and first.high < second.low:
        return _with_predicate(one, column, NOT_NULL)
    return None


def less_with_equal(one: Interest, other: Interest) -> Interest | None:
    """`a < 1` and `a = 5` become `a <= 5`."""
    found = _one_predicate(one, other)
    if found is None:
        return None
    column, first, second = found
    if second.low == ABOVE_NULL:
        first, second = second, first
    if first.low == ABOVE_NULL and _is_equality(second) and first.high < second.low:
        return _with_predicate(one, column, first.hull(second))
    return None


def greater_with_equal(one: Interest, other: Interest) -> Interest | None:
    """`a > 5` and `a = 1` become `a >= 1`."""
    found = _one_predicate(one, other)
    if found is None:
        return None
    column, first, second = found
    if second.high == TOP:
        first, second = second, first
    if first.high == TOP and _is_equality(second) and second.high < first.low:
        return _with_predicate(one, column, first.hull(second))
    return None


def drop_predicates(one: Interest, other: Interest) -> Interest | None:
    """One or two predicates over base columns differ: drop them."""
    different = differences(one, other)
    if not 1 <= len(different) <= _MAX_DROPPED or min(different) < 0:
        return None
    kept = tuple((column, i) for column, i in one.base if column not in different)
    return one._replace(base=kept)


def bounding_box(one: Interest, other: Interest) -> Interest | None:
    """The smallest interest that covers both."""
    return hull(one, other) if one.space == other.space else None


PERFECT_RULES: tuple[MergeRule, ...] = (cover, touching_ranges)
IMPERFECT_RULES: tuple[MergeRule, ...] = (
    less_with_equal,
    greater_with_equal,
    bounding_box,
    is_present,
    drop_predicates,
)
"""The tightest first."""

_MAX_DROPPED = 2

LOW_END, HIGH_END, NUMBERS = -1, -2, -3
"""Dimensions that are not base columns: -1 - 3 i and -2 - 3 i for filter column i."""


def differences(one: Interest, other: Interest) -> dict[int, tuple[Interval, Interval]]:
    """The dimensions in which two interests of one space differ, with both intervals."""
    found: dict[int, tuple[Interval, Interval]] = {}
    mine, its = dict(one.base), dict(other.base)
    for column in mine.keys() | its.keys():
        pair = mine.get(column, EVERYTHING), its.get(column, EVERYTHING)
        if pair[0] != pair[1]:
            found[column] = pair
    for i, (a, b) in enumerate(zip(one.bounds, other.bounds, strict=True)):
        if a[:2] != b[:2]:
            found[LOW_END - 3 * i] = Interval(*a[:2]), Interval(*b[:2])
        if a[2:] != b[2:]:
            found[HIGH_END - 3 * i] = Interval(*a[2:]), Interval(*b[2:])
    if one.numbers != other.numbers:
        found[NUMBERS] = one.numbers, other.numbers
    return found


def _one_predicate(one: Interest, other: Interest) -> tuple[int, Interval, Interval] | None:
    different = differences(one, other)
    if len(different) != 1:
        return None
    ((column, (first, second)),) = different.items()
    return (column, first, second) if column >= 0 else None


def _with_predicate(interest: Interest, column: int, interval: Interval) -> Interest:
    base = {**dict(interest.base), column: interval}
    kept = tuple(sorted((c, i) for c, i in base.items() if i != EVERYTHING))
    return interest._replace(base=kept)


def _is_equality(interval: Interval) -> bool:
    """Whether an interval holds one value, also as a range up to the next (discrete types)."""
    low, high = interval
    if len(low) != 3 or len(high) != 3 or low[2] != 0:
        return False
    if high[2] == 1:
        return low[1] == high[1]
    return isinstance(low[1], int) and isinstance(high[1], int) and high[1] == low[1] + 1
