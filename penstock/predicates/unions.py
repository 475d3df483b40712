"""Unions of intervals over one attribute: what IN, OR and NOT make of a condition on one column.

A union is a tuple of intervals, sorted, none empty, no two touching: a canonical form, so that
equal sets of values are equal tuples.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from penstock.predicates.intervals import EVERYTHING, NOT_NULL, Interval

Union: TypeAlias = tuple[Interval, ...]

NO_VALUE: Union = ()
ANY_VALUE: Union = (EVERYTHING,)
ANY_BUT_NULL: Union = (NOT_NULL,)


def union(intervals: Iterable[Interval]) -> Union:
    """The values that are in any of the intervals."""
    merged: list[Interval] = []
    for interval in sorted(interval for interval in intervals if not interval.is_empty):
        if merged and merged[-1].touches(interval):
            merged[-1] = merged[-1].hull(interval)
        else:
            merged.append(interval)
    return tuple(merged)


def intersect_unions(one: Union, other: Union) -> Union:
    """The values that are in both, by a linear merge."""
    if len(one) == 1 == len(other):  # nearly always
        both = one[0].intersect(other[0])
        return NO_VALUE if both.is_empty else (both,)
    common: list[Interval] = []
    i = j = 0
    while i < len(one) and j < len(other):
        both = one[i].intersect(other[j])
        if not both.is_empty:
            common.append(both)
        if one[i].high <= other[j].high:
            i += 1
        else:
            j += 1
    return tuple(common)


def subtract(whole: Interval, part: Union) -> Union:
    """The values of `whole` that are not in `part`."""
    left: list[Interval] = []
    low = whole.low
    for interval in part:
        left.append(Interval(low, min(interval.low, whole.high)))
        low = max(low, interval.high)
    left.append(Interval(low, whole.high))
    return tuple(interval for interval in left if not interval.is_empty)


def union_covers(one: Union, other: Union) -> bool:
    """Whether every value of `other` is in `one`."""
    candidates = iter(one)
    candidate = next(candidates, None)
    for interval in other:
        while candidate is not None and candidate.high < interval.high:
            candidate = next(candidates, None)
        if candidate is None or not candidate.covers(interval):
            return False
    return True


def hull_of(one: Union) -> Interval:
    """The smallest interval that contains a non-empty union."""
    return one[0] if len(one) == 1 else Interval(one[0].low, one[-1].high)
