"""Order codes: membership in an interval is membership in a range of codes, for every type."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.catalog import ValueType
from penstock.predicates.codes import NULL_CODE, Codes
from penstock.predicates.intervals import Interval
from tests.predicates.strategies import cuts, intervals, keys, small_intervals, small_keys, types


@given(st.data(), types)
def test_membership_is_two_comparisons(data: st.DataObject, value_type: ValueType) -> None:
    some_keys = keys(value_type)
    given_intervals = data.draw(st.lists(intervals(some_keys), min_size=1, max_size=4))
    codes = Codes.of_intervals(given_intervals)
    ends = [cut[1] for interval in given_intervals for cut in interval if len(cut) == 3]
    for key in [None, *ends, *data.draw(st.lists(some_keys, max_size=5))]:
        code = codes.value(key)
        for interval in given_intervals:
            low, high = codes.interval(interval)
            assert (low <= code <= high) == interval.contains(key)


@given(st.data(), types)
def test_codes_keep_the_order(data: st.DataObject, value_type: ValueType) -> None:
    some_keys = keys(value_type)
    codes = Codes(data.draw(st.lists(some_keys, max_size=4)))
    ordered = sorted(data.draw(st.lists(some_keys, max_size=6)))
    found = [codes.value(key) for key in ordered]
    assert found == sorted(found)
    assert all(NULL_CODE < code <= codes.top for code in found)


@given(st.lists(small_keys, max_size=4), small_intervals)
def test_ranges_of_codes_become_intervals_again(constants: list[int], interval: Interval) -> None:
    codes = Codes([*constants, *(cut[1] for cut in interval if len(cut) == 3)])
    low, high = codes.interval(interval)
    if low <= high:
        assert Interval(codes.low_cut(low), codes.high_cut(high)) == interval
    else:
        assert interval.is_empty
        assert Interval(codes.low_cut(low), codes.high_cut(high)).is_empty


@given(st.lists(small_keys, min_size=1, max_size=4), cuts(small_keys))
def test_a_cut_that_is_no_constant_lies_inside_a_code(constants: list[int], cut: object) -> None:
    codes = Codes(constants)
    low, high = codes.lowest_at_or_above(cut), codes.highest_at_or_below(cut)  # type: ignore[arg-type]
    assert low - high in (1, 2)  # 2: the code in between is cut in two
