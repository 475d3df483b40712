"""Values that are written otherwise than their column's type, and mean one of its values exactly.

One set for every way in: JSON lines, CSV, Parquet, Debezium, CloudEvents, `Hub.insert`.

    integers    whole numbers with a point or an exponent (951.0, 1e3), numerals in a text ("42")
    DOUBLE      numerals in a text
    BOOLEAN     0 and 1; true, false, t, f, 0, 1 as a text, in any case
    DATE        timestamps at midnight, without a time zone or in UTC
    TIMESTAMP   with Z or an offset: converted to UTC; dates: midnight

A text may have white space around it. DECIMAL takes numerals by itself. What would lose something
(951.5 for an integer, a time of day for a DATE) is refused, and the refusal says what.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal

from penstock.catalog.numerals import read_numeral
from penstock.catalog.types import (
    BooleanType,
    DateType,
    DoubleType,
    IntegerType,
    Outside,
    Stored,
    TimestampType,
    ValueType,
    read_timestamp,
)
from penstock.errors import ChangeError

MAX_EXACT_DOUBLE = 1 << 53
"""Beyond it, doubles have gaps between whole numbers: what was printed with an exponent may be the
neighbour of what was meant."""
_MAX_DIGITS = 20  # a BIGINT has 19

BOOLEAN_WORDS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


def store_lossless(value_type: ValueType, value: Outside) -> Stored:
    """The stored form of a value that is not None, in whatever way it is written; ChangeError if it
    is none of the type's values."""
    try:
        return value_type.store(value)
    except ChangeError:
        rewrite = _REWRITES.get(type(value_type))
        if rewrite is None:
            raise
        rewritten = rewrite(value_type, value)
        if rewritten is None:
            raise
    try:
        return value_type.store(rewritten)
    except ChangeError as error:
        raise value_type.misfit(value, error.detail) from None


def _integer(value_type: ValueType, value: Outside) -> Outside | None:
    number = _number(value)
    if number is None or not number.is_finite():
        return None
    if not number:
        return 0
    if number.adjusted() >= _MAX_DIGITS:
        raise value_type.misfit(value, "it is too large")
    if number.adjusted() < 0 or number != number.to_integral_value():
        raise value_type.misfit(value, "it is not a whole number")
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    if exponent > 0 and abs(number) > MAX_EXACT_DOUBLE:
        raise value_type.misfit(
            value, "beyond 2**53 an exponent may hide rounded digits; write all digits"
        )
    return int(number)


def _number(value: Outside) -> Decimal | None:
    if isinstance(value, str):
        return read_numeral(value)
    if isinstance(value, float):
        return Decimal(repr(value))  # what its shortest text shows, as everywhere
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    return value if isinstance(value, Decimal) else None


def _double(_type: ValueType, value: Outside) -> Outside | None:
    if not isinstance(value, str):
        return None
    word = value.strip()
    return word if word.lower() in DoubleType.WORDS else read_numeral(value)


def _boolean(_type: ValueType, value: Outside) -> Outside | None:
    if isinstance(value, str):
        return BOOLEAN_WORDS.get(value.strip().lower())
    number = _number(value)
    return None if number is None or number not in (0, 1) else bool(number)


def _date(value_type: ValueType, value: Outside) -> Outside | None:
    moment = read_timestamp(value_type, value) if isinstance(value, str) else value
    if not isinstance(moment, datetime):
        return None
    if moment.tzinfo is not None and moment.utcoffset():
        raise value_type.misfit(value, "which day it is depends on the time zone")
    if moment.time() != time():
        raise value_type.misfit(value, "it has a time of day")
    return moment.date()


def _timestamp(value_type: ValueType, value: Outside) -> Outside | None:
    moment = read_timestamp(value_type, value) if isinstance(value, str) else value
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        try:
            return moment.astimezone(UTC).replace(tzinfo=None)
        except OverflowError:
            return None  # the refusal of the type says it
    if isinstance(moment, date) and not isinstance(moment, datetime):
        return datetime.combine(moment, time())
    return None


_REWRITES: dict[type[ValueType], Callable[[ValueType, Outside], Outside | None]] = {
    IntegerType: _integer,
    DoubleType: _double,
    BooleanType: _boolean,
    DateType: _date,
    TimestampType: _timestamp,
}
"""How a value can be written for a type that does not take it as it is; None if it cannot."""
