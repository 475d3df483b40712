"""Where a constant lies among the values of a column.

The answer is a pair of cuts: just below and just above the constant. They differ if the constant
is a possible value of the column and are the same cut if it lies between two values: `x > 1.5` on
an integer column is everything above the cut below 2, and `x = 1.5` is the empty stretch between
two equal cuts. So every comparison is exact, whatever the types; where the reference database
would compare rounded values instead, the comparison is refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
from penstock.sql.literals import (
    MAX_DIGITS,
    MICROS_PER_DAY,
    Constant,
    converted,
    nearest_double,
)

_SAFE_DIGITS = 15  # any decimal of so many digits survives the way to a double and back
_SAFE_INTEGER = 1 << 53  # below, every integer is a double


def place(constant: Constant, value_type: ValueType) -> tuple[Cut, Cut]:
    """The cuts below and above a constant that is not NULL; SqlError if it does not compare."""
    if constant.is_number:
        if isinstance(value_type, IntegerType | DecimalType):
            check_digits([constant], value_type)
            return _place_number(constant, value_type)
        if isinstance(value_type, DoubleType):
            assert isinstance(constant.value, int | float | Decimal)
            return _on(value_type.key(nearest_double(constant.value)))
    elif constant.kind == value_type.kind == "string":
        return _on(str(constant.value))
    elif constant.kind == value_type.kind == "boolean":
        return _on(int(bool(constant.value)))
    elif isinstance(value_type, DateType) and constant.kind.startswith("timestamp"):
        assert isinstance(constant.value, int)
        days, rest = divmod(constant.value, MICROS_PER_DAY)
        return _between(below(days + 1)) if rest else _on(days)
    elif isinstance(value_type, DateType | TimestampType) and constant.kind != "boolean":
        key = converted(constant, value_type).value
        assert isinstance(key, int)
        return _on(key)
    raise _mismatch(constant, value_type)


def check_null(null: Constant, value_type: ValueType) -> None:
    """SqlError if a NULL was cast to a type that does not compare with the column's."""
    cast_to = null.cast_to
    if cast_to is None or cast_to.kind == value_type.kind:
        return
    kinds = {cast_to.kind, value_type.kind}
    if not (kinds <= {"integer", "decimal", "double"} or kinds <= {"date", "timestamp"}):
        raise SqlError(
            f"a column of type {value_type} cannot be compared with a NULL of type {cast_to}",
            hint="write NULL without a type",
        )


def check_digits(constants: Sequence[Constant], value_type: ValueType) -> None:
    """SqlError if no DECIMAL holds the values of a column and also the constants compared with it:
    DuckDB then stops at the first value that does not fit."""
    if not isinstance(value_type, IntegerType | DecimalType):
        return
    exact = [one for one in constants if one.kind in ("integer", "decimal")]
    if isinstance(value_type, DecimalType):
        scale, before = value_type.scale, value_type.precision - value_type.scale
    else:
        scale, before = 0, len(str(value_type.highest))
    for one in exact:
        _, digits, exponent = Decimal(str(one.value)).as_tuple()
        assert isinstance(exponent, int)
        scale, before = max(scale, -exponent), max(before, len(digits) + exponent)
    if exact and scale and scale + before > MAX_DIGITS:
        raise SqlError(
            f"to compare {value_type} with {max(exact, key=lambda one: len(str(one)))} takes "
            f"{scale + before} digits, {before} of them before the point",
            detail=f"a DECIMAL has at most {MAX_DIGITS}",
            hint="write fewer digits",
        )


def _on(key: Key) -> tuple[Cut, Cut]:
    return below(key), above(key)


def _between(cut: Cut) -> tuple[Cut, Cut]:
    return cut, cut


def _place_number(constant: Constant, value_type: IntegerType | DecimalType) -> tuple[Cut, Cut]:
    """The place of a number among keys, which are integers and count multiples of 1/scale."""
    scale = 10**value_type.scale if isinstance(value_type, DecimalType) else 1
    lowest, highest = value_type.key_range
    assert isinstance(lowest, int)
    assert isinstance(highest, int)
    value = constant.value
    assert isinstance(value, int | float | Decimal)
    if isinstance(value, float) and not math.isfinite(value):
        return _between(ABOVE_NULL if value == -math.inf else TOP)  # NaN is above everything
    scaled = Fraction(value) * scale
    if isinstance(value, float) and -2 * highest <= scaled <= 2 * highest:
        scaled = _exactly_meant(value, scale, highest)
    if scaled > highest:
        return _between(TOP)
    if scaled < lowest:
        return _between(ABOVE_NULL)
    key = math.floor(scaled)
    return _on(key) if key == scaled else _between(below(key + 1))


def _exactly_meant(value: float, scale: int, highest: int) -> Fraction:
    """The number a double stands for, if comparing exactly is the same as comparing doubles."""
    if scale == 1 and (abs(value) < _SAFE_INTEGER or highest < _SAFE_INTEGER):
        return Fraction(value)
    shortest = Decimal(repr(value))
    meant = Fraction(shortest) * scale
    digits = len(shortest.normalize().as_tuple().digits)
    if scale > 1 and digits <= _SAFE_DIGITS and abs(meant) < 10**_SAFE_DIGITS:
        return meant
    raise SqlError(
        f"the DOUBLE {value!r} cannot be compared exactly with this column",
        hint="write the number without an exponent",
    )


def _mismatch(constant: Constant, value_type: ValueType) -> SqlError:
    hint = ""
    if constant.kind == "string" and isinstance(value_type, IntegerType | DecimalType | DoubleType):
        hint = "write numbers without quotes"
    elif isinstance(value_type, StringType):
        hint = f"write it in quotes: '{constant}'"
    elif isinstance(value_type, BooleanType):
        hint = "compare with TRUE or FALSE"
    return SqlError(
        f"a column of type {value_type} cannot be compared with the {constant.kind} {constant}",
        hint=hint,
    )
