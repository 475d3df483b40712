"""Intervals hold what they say, in one spelling, and can be read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.catalog import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    Key,
    StringType,
    TimestampType,
    ValueType,
)
from penstock.catalog.number_types import INFINITY_KEY, NAN_KEY
from penstock.predicates.intervals import (
    ABOVE_NULL,
    BOTTOM,
    EVERYTHING,
    IS_NULL,
    NOT_NULL,
    NOTHING,
    TOP,
    Interval,
    above,
    below,
    describe,
    normalise,
    point,
    prefix,
)
from tests.predicates.strategies import CHARACTERS, PROBES, intervals, keys, small_intervals, types

TINYINT, DOUBLE, VARCHAR = IntegerType("TINYINT", 8), DoubleType(), StringType()


@given(small_intervals, small_intervals)
def test_set_operations(one: Interval, other: Interval) -> None:
    for key in PROBES:
        both = one.contains(key) and other.contains(key)
        assert one.intersect(other).contains(key) == both
        if one.covers(other) and other.contains(key):
            assert one.contains(key)
        if not one.is_empty and not other.is_empty and one.touches(other):
            assert one.hull(other).contains(key) == (one.contains(key) or other.contains(key))


@given(small_intervals)
def test_an_empty_interval_holds_nothing(interval: Interval) -> None:
    if interval.is_empty:
        assert not any(interval.contains(key) for key in PROBES)


@given(st.data(), types)
def test_normalising_changes_no_value(data: st.DataObject, value_type: ValueType) -> None:
    some_keys = keys(value_type)
    interval = data.draw(intervals(some_keys))
    normal = normalise(interval, value_type)
    for key in [None, *data.draw(st.lists(some_keys, max_size=5)), *_ends(interval)]:
        assert normal.contains(key) == interval.contains(key)
    assert normalise(normal, value_type) == normal


def _ends(interval: Interval) -> list[Key]:
    return [cut[1] for cut in interval if len(cut) == 3]


@pytest.mark.parametrize(
    ("value_type", "interval", "normal"),
    [
        (TINYINT, Interval(above(5), TOP), Interval(below(6), TOP)),
        (TINYINT, Interval(ABOVE_NULL, above(127)), NOT_NULL),
        (TINYINT, Interval(below(-128), TOP), NOT_NULL),
        (TINYINT, Interval(BOTTOM, below(200)), EVERYTHING),
        (BooleanType(), point(1), Interval(below(1), TOP)),
        (DOUBLE, Interval(ABOVE_NULL, above(NAN_KEY)), NOT_NULL),
        (DOUBLE, Interval(above(INFINITY_KEY), TOP), Interval(below(NAN_KEY), TOP)),
        (VARCHAR, Interval(below(""), TOP), NOT_NULL),
        (VARCHAR, Interval(above("a"), TOP), Interval(above("a"), TOP)),
    ],
)
def test_one_spelling(value_type: ValueType, interval: Interval, normal: Interval) -> None:
    assert normalise(interval, value_type) == normal


def test_nothing_lies_beyond_the_range_of_a_type() -> None:
    assert normalise(Interval(above(127), TOP), TINYINT).is_empty
    assert normalise(Interval(ABOVE_NULL, below(-128)), TINYINT).is_empty


@given(st.text(CHARACTERS, max_size=3), st.text(CHARACTERS, max_size=4))
def test_a_prefix_is_an_interval(start: str, text: str) -> None:
    assert prefix(start).contains(text) == text.startswith(start)
    assert not prefix(start).contains(None)


@pytest.mark.parametrize(
    ("value_type", "interval", "text"),
    [
        (TINYINT, Interval(below(5), below(10)), "5 <= x <= 9"),
        (TINYINT, Interval(below(5), below(6)), "x = 5"),
        (TINYINT, Interval(ABOVE_NULL, below(-127)), "x = -128"),
        (TINYINT, Interval(BOTTOM, below(6)), "x <= 5 or x IS NULL"),
        (TINYINT, NOT_NULL, "x IS NOT NULL"),
        (TINYINT, IS_NULL, "x IS NULL"),
        (TINYINT, EVERYTHING, "x is anything"),
        (TINYINT, NOTHING, "x in no value"),
        (DOUBLE, Interval(above(DOUBLE.key(0.5)), above(DOUBLE.key(2.0))), "0.5 < x <= 2.0"),
        (DOUBLE, Interval(below(NAN_KEY), TOP), "x = 'NaN'::DOUBLE"),
        (DOUBLE, Interval(ABOVE_NULL, above(-INFINITY_KEY)), "x = '-Infinity'::DOUBLE"),
        (DecimalType(5, 2), Interval(below(150), TOP), "1.50 <= x"),
        (VARCHAR, prefix("it's"), "x starts with 'it''s'"),
        (VARCHAR, point("a"), "x = 'a'"),
        (VARCHAR, Interval(above("a"), below("b")), "'a' < x < 'b'"),
        (BooleanType(), Interval(below(1), TOP), "x = TRUE"),
        (BooleanType(), Interval(ABOVE_NULL, below(1)), "x = FALSE"),
        (DateType(), point(0), "x = '1970-01-01'"),
        (TimestampType(), Interval(below(1), TOP), "'1970-01-01 00:00:00.000001' <= x"),
        (TimestampType(zoned=True), point(0), "x = '1970-01-01 00:00:00+00:00'"),
    ],
)
def test_describing(value_type: ValueType, interval: Interval, text: str) -> None:
    assert describe(interval, "x", value_type) == text
