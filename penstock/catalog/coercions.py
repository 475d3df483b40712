"""Lossless conversions of values that are written differently from their column's type.

The same rules for every input: JSON lines, CSV, Parquet, Debezium, CloudEvents, `Hub.insert`.

    integers    whole numbers with a point or an exponent (951.0, 1e3), numerals in a text ("42")
    DOUBLE      numerals in a text
    BOOLEAN     0 and 1; true, false, t, f, 0, 1 as a text, in any case
    DATE        timestamps at midnight, without a time zone or in UTC
    TIMESTAMP   with Z or an offset: converted to UTC; dates: midnight

A text may have white space around it. DECIMAL accepts numerals by itself. Lossy conversions (951.5
for an integer, a time of day for a DATE) are refused with the reason. The rules belong to the
types: `ValueType.rewrite`.
"""

from __future__ import annotations

from penstock.catalog.types import Outside, Stored, ValueType
from penstock.errors import ChangeError


def store_lossless(value_type: ValueType, value: Outside) -> Stored:
    """The stored form of a value that is not None, in any accepted notation; ChangeError if it is
    not a value of the type."""
    try:
        return value_type.store(value)
    except ChangeError:
        rewritten = value_type.rewrite(value)
        if rewritten is None:
            raise
    try:
        return value_type.store(rewritten)
    except ChangeError as error:
        raise value_type.misfit(value, error.detail) from None
