"""Unions of intervals: one spelling per set, and the operations on sets."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from penstock.predicates.intervals import Interval
from penstock.predicates.unions import (
    Union,
    hull_of,
    intersect_unions,
    subtract,
    union,
    union_covers,
)
from tests.predicates.strategies import PROBES, small_intervals

unions = st.lists(small_intervals, max_size=5).map(union)


def holds(one: Union, key: int | None) -> bool:
    return any(interval.contains(key) for interval in one)


@given(st.lists(small_intervals, max_size=6))
def test_a_union_is_sorted_and_apart(intervals: list[Interval]) -> None:
    one = union(intervals)
    assert all(a.high < b.low for a, b in pairwise(one))
    assert not any(interval.is_empty for interval in one)
    assert union(reversed(intervals)) == one
    for key in PROBES:
        assert holds(one, key) == any(interval.contains(key) for interval in intervals)


@given(unions, unions, small_intervals)
def test_operations(one: Union, other: Union, whole: Interval) -> None:
    both, rest = intersect_unions(one, other), subtract(whole, one)
    assert union(both) == both
    assert union(rest) == rest
    for key in PROBES:
        assert holds(both, key) == (holds(one, key) and holds(other, key))
        assert holds(rest, key) == (whole.contains(key) and not holds(one, key))
        if one and holds(one, key):
            assert hull_of(one).contains(key)


@given(unions, unions)
def test_covering(one: Union, other: Union) -> None:
    assert union_covers(one, other) == (intersect_unions(one, other) == other)
