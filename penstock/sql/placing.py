"""Where a constant lies among the values of a column.

The answer is a pair of cuts: just below and just above the constant. They differ if the constant
is a possible value of the column and are the same cut if it lies between two values: `x > 1.5` on
an integer column is everything above the cut below 2, and `x = 1.5` is the empty stretch between
two equal cuts. So every comparison is exact, whatever the types; where the reference database
would compare rounded values instead, the comparison is refused.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

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
from penstock.errors import SqlError
from penstock.predicates.intervals import ABOVE_NULL, TOP, Cut, above, below
from penstock.sql.literals import Constant, convert, exact_value, show, to_timestamp

MICROS_PER_DAY = 86_400_000_000
_SAFE_DIGITS = 15  # any decimal of so many digits survives a round trip through a double
_SAFE_INTEGER = 1 << 53  # up to here every integer is a double


def place(constant: Constant, value_type: ValueType) -> tuple[Cut, Cut]:
    """The cuts below and above a constant that is not NULL; SqlError if it does not compare."""
    if isinstance(value_type, IntegerType) and constant.is_number:
        return _place_number(constant, 1, _reach(value_type))
    if isinstance(value_type, DecimalType) and constant.is_number:
        return _place_number(constant, 10**value_type.scale, _reach(value_type))
    if isinstance(value_type, DoubleType) and constant.is_number:
        assert isinstance(constant.value, int | float | Decimal)
        return _on(value_type.key(float(constant.value)))
    if isinstance(value_type, StringType) and constant.kind == "string":
        return _on(str(constant.value))
    if isinstance(value_type, BooleanType) and constant.kind == "boolean":
        return _on(int(bool(constant.value)))
    if isinstance(value_type, DateType):
        found = _place_date(constant)
        if found is not None:
            return found
    if isinstance(value_type, TimestampType):
        moment = to_timestamp(constant, value_type.zoned)
        if moment is not None:
            assert isinstance(moment.value, int)
            return _on(moment.value)
    raise _mismatch(constant, value_type)


def _on(key: Key) -> tuple[Cut, Cut]:
    return below(key), above(key)


def _between(cut: Cut) -> tuple[Cut, Cut]:
    return cut, cut


def _reach(value_type: IntegerType | DecimalType) -> int:
    """No stored value of the type is larger than this, up or down."""
    if isinstance(value_type, IntegerType):
        return value_type.highest + 1
    return int(10**value_type.precision)


def _place_number(constant: Constant, scale: int, reach: int) -> tuple[Cut, Cut]:
    """The place of a number among integers that stand for multiples of 1/scale."""
    exact = exact_value(constant)
    if exact is None:
        return _between(ABOVE_NULL if constant.value == -math.inf else TOP)
    scaled = exact * scale
    if isinstance(constant.value, float):
        scaled = _place_double(constant.value, scale, reach)
    if scaled > reach:
        return _between(TOP)
    if scaled < -reach:
        return _between(ABOVE_NULL)
    key = math.floor(scaled)
    return _on(key) if key == scaled else _between(below(key + 1))


def _place_double(value: float, scale: int, reach: int) -> Fraction:
    """The exact number to compare with, if comparing doubles gives the same answers."""
    exact = Fraction(value) * scale
    if abs(exact) > 2 * reach:
        return exact
    if scale == 1 and (abs(exact) < _SAFE_INTEGER or reach < _SAFE_INTEGER):
        return exact
    shortest = Decimal(repr(value))
    if scale > 1 and len(shortest.normalize().as_tuple().digits) <= _SAFE_DIGITS:
        meant = Fraction(shortest) * scale
        if abs(meant) < 10**_SAFE_DIGITS:
            return meant
    raise SqlError(
        f"{value!r} is a DOUBLE and too long to be compared exactly with this column",
        hint="write the number without an exponent",
    )


def _place_date(constant: Constant) -> tuple[Cut, Cut] | None:
    if constant.kind in ("string", "date"):
        days = convert(constant, DateType()).value
        assert isinstance(days, int)
        return _on(days)
    if constant.kind in ("timestamp", "timestamptz"):
        assert isinstance(constant.value, int)
        days, rest = divmod(constant.value, MICROS_PER_DAY)
        return _on(days) if rest == 0 else _between(below(days + 1))
    return None


def _mismatch(constant: Constant, value_type: ValueType) -> SqlError:
    hint = ""
    if constant.kind == "string" and isinstance(value_type, IntegerType | DecimalType | DoubleType):
        hint = "write the number without quotes"
    elif isinstance(value_type, StringType):
        hint = f"write it in quotes: '{show(constant)}'"
    elif isinstance(value_type, BooleanType):
        hint = "compare with TRUE or FALSE"
    elif isinstance(value_type, DateType | TimestampType):
        hint = f"write {'DATE' if isinstance(value_type, DateType) else 'TIMESTAMP'} '2024-05-31'"
    return SqlError(
        f"a {value_type} column cannot be compared with the {constant.kind} {show(constant)}",
        hint=hint,
    )
