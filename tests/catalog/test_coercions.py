"""Values written otherwise than their column's type: accepted if nothing is lost, and then what
DuckDB makes of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.catalog import (
    BooleanType,
    Column,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    Relation,
    StringType,
    TimestampType,
    ValueType,
)
from penstock.catalog.coercions import store_lossless
from penstock.errors import ChangeError

INTEGER, BIGINT, DOUBLE = IntegerType("INTEGER", 32), IntegerType(), DoubleType()
DECIMAL, BOOLEAN, VARCHAR = DecimalType(6, 2), BooleanType(), StringType()
DATE, NAIVE, ZONED = DateType(), TimestampType(), TimestampType(zoned=True)
TYPES = (INTEGER, BIGINT, DOUBLE, DECIMAL, BOOLEAN, DATE, NAIVE, ZONED)
NOON = datetime(2024, 2, 29, 12)
EAST = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("value_type", "value", "shown"),
    [
        (INTEGER, 951.0, 951),
        (INTEGER, Decimal("951.0"), 951),
        (INTEGER, "951.0", 951),
        (INTEGER, "-42", -42),
        (INTEGER, " +7 ", 7),
        (INTEGER, "1e3", 1000),
        (INTEGER, Decimal("-0.0"), 0),
        (INTEGER, Decimal("0E+999999999"), 0),
        (BIGINT, "9007199254740993", 2**53 + 1),
        (BIGINT, Decimal("9007199254740993.0"), 2**53 + 1),
        (BIGINT, "1." + "0" * 1000, 1),
        (DOUBLE, "1.5", 1.5),
        (DOUBLE, " 1e-3", 0.001),
        (DOUBLE, " NaN", math.nan),
        (DECIMAL, " 1.10 ", Decimal("1.10")),
        (BOOLEAN, 0, False),
        (BOOLEAN, 1, True),
        (BOOLEAN, Decimal("1.0"), True),
        (BOOLEAN, "True", True),
        (BOOLEAN, " f", False),
        (DATE, NOON.replace(hour=0), NOON.date()),
        (DATE, "2024-02-29T00:00:00", NOON.date()),
        (DATE, "2024-02-29 00:00:00.000Z", NOON.date()),
        (NAIVE, "2024-02-29T12:00:00Z", NOON),
        (NAIVE, "2024-02-29T14:00:00+02:00", NOON),
        (NAIVE, NOON.replace(tzinfo=UTC), NOON),
        (NAIVE, NOON.date(), NOON.replace(hour=0)),
        (NAIVE, "2024-02-29T12:00:00.000001000", NOON.replace(microsecond=1)),
        (NAIVE, "2024-02-29T12:00:00.000001000Z", NOON.replace(microsecond=1)),
        (ZONED, "2024-02-29T12:00:00.000001000Z", NOON.replace(microsecond=1, tzinfo=UTC)),
        (ZONED, NOON.date(), NOON.replace(hour=0, tzinfo=UTC)),
        (ZONED, NOON.replace(hour=14, tzinfo=EAST), NOON.replace(tzinfo=UTC)),
    ],
)
def test_what_is_accepted(value_type: ValueType, value: object, shown: object) -> None:
    found = value_type.show(store_lossless(value_type, value))
    assert repr(found) == repr(shown)


@pytest.mark.parametrize(
    ("value_type", "value", "why"),
    [
        (INTEGER, 951.5, "not a whole number"),
        (INTEGER, "0.1", "not a whole number"),
        (INTEGER, "2147483648.0", "the range is"),
        (INTEGER, math.inf, ""),
        (INTEGER, math.nan, ""),
        (INTEGER, "nan", ""),
        (INTEGER, True, ""),
        (INTEGER, "", ""),
        (INTEGER, "1__000", ""),
        (INTEGER, "_1", ""),
        (INTEGER, "٣", ""),
        (INTEGER, "0x10", ""),
        (BIGINT, 2.0**60, "beyond 2**53"),
        (BIGINT, "1e18", "beyond 2**53"),
        (BIGINT, Decimal("1e999999999"), "too large"),
        (BIGINT, "1e99999999999999999999", "too large"),
        (BIGINT, "1e-99999999999999999999", "not a whole number"),
        (DOUBLE, "1e400", "too large"),
        (DOUBLE, "1,5", ""),
        (DOUBLE, "1_", ""),
        (DOUBLE, True, ""),
        (DECIMAL, "1.105", "at most 2 digits"),
        (DECIMAL, "1__0", ""),
        (DECIMAL, "٣", ""),
        (BOOLEAN, 2, ""),
        (BOOLEAN, "yes", ""),
        (BOOLEAN, 0.5, ""),
        (DATE, "2024-02-29T12:00:00", "time of day"),
        (DATE, NOON, "time of day"),
        (DATE, "2024-02-29T00:00:00+02:00", "depends on the time zone"),
        (DATE, 19782, ""),
        (NAIVE, "2024-02-29T12:00:00.0000001", "microsecond"),
        (NAIVE, "2024-02-29T12:00:00.0000000000", "microsecond"),
        (ZONED, "2024-02-29T12:00:00.123456789Z", "microsecond"),
        (NAIVE, "0001-01-01T00:00:00+02:00", ""),
        (NAIVE, 1709208000, ""),
        (VARCHAR, 5, ""),
    ],
)
def test_what_would_lose_something_is_refused(
    value_type: ValueType, value: object, why: str
) -> None:
    with pytest.raises(ChangeError) as caught:
        store_lossless(value_type, value)
    assert f"is not a {value_type}" in caught.value.primary
    assert why in caught.value.detail


texts = (
    st.from_regex(r"\A[ \t]?[+-]?[0-9]{0,20}(\.[0-9]{0,9})?([eE][+-]?[0-9]{1,2})?[ \n]?\Z")
    | st.integers(-(2**64), 2**64).map(str)
    | st.floats().map(repr)
    | st.sampled_from(["t", "F", "true", "FALSE", "0", "1", "nan", "Infinity", "-inf"])
    | st.dates(date(1000, 1, 1)).map(str)
    | st.datetimes(datetime(1000, 1, 1)).map(str)
    | st.datetimes(datetime(1000, 1, 1)).map(lambda t: f"{t.isoformat()}Z")
    | st.datetimes(datetime(1000, 1, 1)).map(lambda t: f"{t.isoformat(timespec='microseconds')}000")
    | st.dates(date(1000, 1, 1)).map(lambda d: f"{d}T00:00:00Z")
)


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


@pytest.mark.slow
@given(text=texts, value_type=st.sampled_from(TYPES))
@example(text="951.0", value_type=INTEGER)
@example(text="2024-02-29T12:00:00Z", value_type=NAIVE)
@example(text="2024-02-29T12:00:00Z", value_type=DATE)
def test_what_is_accepted_is_what_duckdb_makes_of_it(
    database: duckdb.DuckDBPyConnection, text: str, value_type: ValueType
) -> None:
    try:
        mine = value_type.show(store_lossless(value_type, text))
    except ChangeError:
        return
    theirs = database.execute(f"SELECT TRY_CAST(? AS {value_type})", [text.strip()]).fetchone()
    assert theirs is not None
    assert mine == theirs[0] or (mine != mine and theirs[0] != theirs[0]), text


@given(text=texts, value_type=st.sampled_from(TYPES))
def test_a_value_that_needs_no_coercion_stays_as_it_is(text: str, value_type: ValueType) -> None:
    try:
        strict = value_type.store(text)
    except ChangeError:
        return
    assert repr(store_lossless(value_type, text)) == repr(strict)


def test_a_row_is_stored_so() -> None:
    relation = Relation("t", (Column("id", BIGINT, False), Column("b", BOOLEAN)), (0,))
    assert relation.store_row({"id": "5.0", "b": "t"}) == (5, True)
    with pytest.raises(ChangeError, match=r"column id of t: '5\.5' is not a BIGINT") as caught:
        relation.store_row({"id": "5.5", "b": "t"})
    assert caught.value.detail == "it is not a whole number"
