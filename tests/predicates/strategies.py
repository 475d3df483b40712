"""Values, keys and intervals of every type, with the extremes among them."""

from __future__ import annotations

from datetime import UTC

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
from penstock.predicates.intervals import ABOVE_NULL, BOTTOM, TOP, Cut, Interval, above, below

CHARACTERS = "ab\ud7ff\ue000\uffff😀\U0010ffff"

OUTSIDE: dict[ValueType, st.SearchStrategy[object]] = {
    IntegerType("TINYINT", 8): st.integers(-128, 127),
    IntegerType(): st.integers(-(1 << 63), (1 << 63) - 1),
    DoubleType(): st.floats(),
    DecimalType(5, 2): st.decimals(-999, 999, places=2),
    DecimalType(38, 10): st.decimals(-(10**20), 10**20, places=10),
    StringType(): st.text(CHARACTERS, max_size=4),
    BooleanType(): st.booleans(),
    DateType(): st.dates(),
    TimestampType(): st.datetimes(),
    TimestampType(zoned=True): st.datetimes(timezones=st.just(UTC)),
}

types = st.sampled_from(list(OUTSIDE))


def keys(value_type: ValueType) -> st.SearchStrategy[Key]:
    """Keys of stored values."""
    return OUTSIDE[value_type].map(lambda outside: value_type.key(value_type.store(outside)))


def cuts(some_keys: st.SearchStrategy[Key]) -> st.SearchStrategy[Cut]:
    return st.one_of(
        st.sampled_from([BOTTOM, ABOVE_NULL, TOP]), some_keys.map(below), some_keys.map(above)
    )


def intervals(some_keys: st.SearchStrategy[Key]) -> st.SearchStrategy[Interval]:
    return st.builds(Interval, cuts(some_keys), cuts(some_keys))


small_keys = st.integers(0, 6)
small_intervals = intervals(small_keys)
PROBES: list[int | None] = [None, *range(-1, 8)]
"""Keys that tell any two sets of small keys apart, if only integers are looked at."""
