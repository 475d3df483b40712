"""Value types: what they store, refuse, show, and how their keys are ordered."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.catalog import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    StringType,
    TimestampType,
    ValueType,
)
from penstock.errors import ChangeError

BIGINT, TINYINT = IntegerType(), IntegerType("TINYINT", 8)
DOUBLE, DECIMAL, VARCHAR = DoubleType(), DecimalType(5, 2), StringType()
NAIVE, ZONED = TimestampType(), TimestampType(zoned=True)


@pytest.mark.parametrize(
    ("value_type", "outside", "stored"),
    [
        (TINYINT, -128, -128),
        (BIGINT, (1 << 63) - 1, (1 << 63) - 1),
        (DOUBLE, 1, 1.0),
        (DOUBLE, Decimal("0.1"), 0.1),
        (DOUBLE, "-Infinity", -math.inf),
        (DECIMAL, 1.1, 110),
        (DECIMAL, "-999.99", -99999),
        (DECIMAL, Decimal("1.500"), 150),
        (DECIMAL, Decimal("0E+999999999"), 0),
        (DECIMAL, Decimal("1E+2"), 10000),
        (DECIMAL, "00001." + "0" * 5000, 100),
        (DECIMAL, " 1_00.2_5\t", 10025),
        (DECIMAL, "+.5e1", 500),
        (StringType(3), "äöü", "äöü"),
        (BooleanType(), False, False),
        (DateType(), "1969-12-31", -1),
        (DateType(), date(1970, 1, 2), 1),
        (NAIVE, "1970-01-01T00:00:00.000001", 1),
        (ZONED, "1970-01-01T02:00:00+02:00", 0),
        (ZONED, datetime(1970, 1, 1, tzinfo=UTC), 0),
    ],
)
def test_what_is_stored(value_type: ValueType, outside: object, stored: object) -> None:
    assert value_type.store(outside) == stored


@pytest.mark.parametrize(
    ("value_type", "outside"),
    [
        (TINYINT, 128),
        (BIGINT, True),
        (BIGINT, 1.0),
        (BIGINT, "1"),
        (DOUBLE, 10**400),
        (DOUBLE, Decimal("1e999")),
        (DOUBLE, "1.5"),
        (DECIMAL, 1000),
        (DECIMAL, "0.001"),
        (DECIMAL, Decimal("1e-999999999")),
        (DECIMAL, Decimal("1e999999999")),
        (DECIMAL, "0." + "1" * 5000),
        (DECIMAL, math.nan),
        (DECIMAL, "x"),
        (DECIMAL, "٣"),
        (DECIMAL, "\uff15"),
        (DECIMAL, "1__0"),
        (DECIMAL, "_1"),
        (DECIMAL, "1_"),
        (DECIMAL, "0x10"),
        (DECIMAL, ""),
        (VARCHAR, "\ud800"),
        (VARCHAR, 1),
        (StringType(3), "four"),
        (BooleanType(), 1),
        (DateType(), datetime(1970, 1, 1)),
        (DateType(), "1970-02-30"),
        (NAIVE, "1970-01-01T00:00:00Z"),
        (NAIVE, date(1970, 1, 1)),
        (ZONED, datetime.max.replace(tzinfo=timezone(timedelta(hours=-10)))),
        (ZONED, "0001-01-01T00:00:00+10:00"),
    ],
)
def test_what_is_refused(value_type: ValueType, outside: object) -> None:
    with pytest.raises(ChangeError) as caught:
        value_type.store(outside)
    assert str(value_type) in caught.value.primary


@given(st.floats(), st.floats())
def test_keys_of_doubles_order_them_as_sql_does(one: float, other: float) -> None:
    def rank(value: float) -> tuple[bool, float]:
        return (math.isnan(value), 0.0 if math.isnan(value) else value)

    first, second = DOUBLE.key(one), DOUBLE.key(other)
    assert isinstance(first, int)
    assert isinstance(second, int)
    assert (first < second) == (rank(one) < rank(other))
    assert (first == second) == (rank(one) == rank(other))
    back = DOUBLE.unkey(first)
    assert back == one or (math.isnan(one) and isinstance(back, float) and math.isnan(back))


@pytest.mark.parametrize(
    ("value_type", "outside"),
    [
        (TINYINT, -128),
        (TINYINT, 127),
        (DOUBLE, -math.inf),
        (DOUBLE, math.nan),
        (DECIMAL, "-999.99"),
        (DECIMAL, "999.99"),
        (BooleanType(), False),
        (BooleanType(), True),
        (VARCHAR, ""),
        (DateType(), date.min),
        (DateType(), date.max),
        (NAIVE, datetime.min),
        (NAIVE, datetime.max),
    ],
)
def test_the_range_of_keys_is_reached(value_type: ValueType, outside: object) -> None:
    assert value_type.key(value_type.store(outside)) in value_type.key_range


@given(st.decimals(-999, 999, places=2))
def test_decimals_come_back(value: Decimal) -> None:
    stored = DECIMAL.store(value)
    assert DECIMAL.show(stored) == value
    wider = DecimalType(38, 30)
    assert wider.join_key(wider.store(value)) == DECIMAL.join_key(stored)


@given(st.datetimes())
def test_timestamps_come_back(value: datetime) -> None:
    assert NAIVE.show(NAIVE.store(value)) == value
    zoned = value.replace(tzinfo=UTC)
    assert ZONED.show(ZONED.store(zoned)) == zoned


def test_which_types_join() -> None:
    assert BIGINT.joins_with(TINYINT)
    assert DECIMAL.joins_with(DecimalType(38, 10))
    assert StringType(3).joins_with(VARCHAR)
    assert not BIGINT.joins_with(DOUBLE)
    assert not NAIVE.joins_with(ZONED)
    assert not DateType().joins_with(NAIVE)
