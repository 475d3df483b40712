"""Constants of a condition: numbers, strings, typed literals and casts of them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Literal, TypeAlias

from sqlglot import exp

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
from penstock.errors import SqlError
from penstock.sql.calendar import SPACES, parse_date, parse_timestamp
from penstock.sql.column_types import value_type_of
from penstock.sql.names import clause_name, other_arguments

Kind: TypeAlias = Literal[
    "null", "boolean", "integer", "decimal", "double", "string", "date", "timestamp", "timestamptz"
]

MAX_DIGITS = 38
MICROS_PER_DAY = 86_400_000_000
_HUGE = 1 << 63
"""Smaller integers are rounded to doubles by the processor, everywhere alike."""
_NUMBER = re.compile(r"([+-]?)(\d*)(\.\d*)?([eE][+-]?\d+)?", re.ASCII)
_DOUBLE_WORD = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal of one kind.

    Integers are `int`, decimals `Decimal`, doubles `float`; dates are days and timestamps
    microseconds since 1970, as stored.
    """

    kind: Kind
    value: int | float | str | bool | Decimal | None
    cast_to: ValueType | None = field(default=None, compare=False)
    """What a NULL was cast to: it compares with columns of such types only."""

    @property
    def is_number(self) -> bool:
        return self.kind in ("integer", "decimal", "double")

    def __str__(self) -> str:
        text = str(self.value).upper() if self.kind in ("boolean", "null") else str(self.value)
        text = f"'{text}'" if self.kind == "string" else text
        return text if len(text) <= 60 else f"{text[:57]}..."


NULL = Constant("null", None)


def read_constant(expression: exp.Expr) -> Constant | None:
    """The constant an expression is, or None if it is not one; SqlError if it is a bad one."""
    if isinstance(expression, exp.Paren):
        return read_constant(expression.this)
    if isinstance(expression, exp.Null):
        return NULL
    if isinstance(expression, exp.Boolean):
        return Constant("boolean", bool(expression.this))
    if isinstance(expression, exp.Literal):
        text = str(expression.this)
        return Constant("string", text) if expression.is_string else read_number(text)
    if isinstance(expression, exp.Neg):
        inner = read_constant(expression.this)
        return None if inner is None else _negated(inner)
    if type(expression) is exp.Cast:
        inner = read_constant(expression.this)
        return None if inner is None else _cast(inner, expression)
    return None


def read_number(text: str) -> Constant:
    """A number as it is written; SqlError if it is none, or too long."""
    found = _NUMBER.fullmatch(text)
    if found is None or not re.search(r"\d", text):
        raise SqlError(f"{text[:60]} is not a number")
    _, whole, fraction, exponent = found.groups()
    if exponent is not None:
        return Constant("double", _float(text))
    digits = whole.lstrip("0") if fraction is None else whole + fraction[1:]
    if len(digits) > MAX_DIGITS:  # with a point, zeros count: DuckDB would read it as a DOUBLE
        raise SqlError(
            f"a number has at most {MAX_DIGITS} digits", hint="write large numbers like 1e40"
        )
    if fraction is None:
        return Constant("integer", int(text))
    return Constant("decimal", Decimal(text))


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value) and not _DOUBLE_WORD.fullmatch(text):
        raise SqlError(f"{text[:60]} is too large for a DOUBLE")
    return value


def _negated(constant: Constant) -> Constant:
    if isinstance(constant.value, Decimal):
        return Constant(constant.kind, constant.value.copy_negate())  # minus would round
    if constant.is_number:
        assert isinstance(constant.value, int | float)
        return Constant(constant.kind, -constant.value)
    if constant == NULL:
        return NULL
    raise SqlError(f"there is no minus for {constant}")


def _cast(constant: Constant, cast: exp.Cast) -> Constant:
    for name in other_arguments(cast, "this", "to"):
        raise SqlError(f"CAST with {clause_name(name)} is not supported in a subscription")
    return converted(constant, value_type_of(cast.to))


def converted(constant: Constant, value_type: ValueType) -> Constant:
    """The constant as a value of a type; SqlError if it does not convert without loss."""
    if constant == NULL:
        return Constant("null", None, value_type)
    found = _converters[type(value_type)](constant, value_type)
    if found is None:
        raise SqlError(
            f"{constant} cannot be written as {value_type}",
            hint="constants are converted only where nothing is lost; write the value itself",
        )
    return found


def _to_integer(constant: Constant, value_type: ValueType) -> Constant | None:
    assert isinstance(value_type, IntegerType)
    exact = _exact_number(constant)
    if exact is None or exact.denominator != 1:
        return None
    fits = value_type.lowest <= exact <= value_type.highest
    return Constant("integer", int(exact)) if fits else None


def _to_decimal(constant: Constant, value_type: ValueType) -> Constant | None:
    assert isinstance(value_type, DecimalType)
    exact = _exact_number(constant)
    scaled = None if exact is None else exact * 10**value_type.scale
    if scaled is None or scaled.denominator != 1 or abs(scaled) >= 10**value_type.precision:
        return None
    return Constant("decimal", Decimal(f"{int(scaled)}e-{value_type.scale}"))


def _exact_number(constant: Constant) -> Fraction | None:
    """The number that a constant says, if it says a finite one."""
    text = str(constant.value).strip(SPACES)
    if constant.kind not in ("integer", "decimal", "double", "string"):
        return None
    if not _NUMBER.fullmatch(text) or not re.search(r"\d", text) or len(text) > 2 * MAX_DIGITS:
        return None
    try:
        decimal = Decimal(text)  # a double stands for the decimal that it shows: 1e-1 means 0.1
    except InvalidOperation:  # an exponent of twenty digits
        return None
    return Fraction(decimal) if decimal == 0 or abs(decimal.adjusted()) <= MAX_DIGITS else None


def _to_double(constant: Constant, _: ValueType) -> Constant | None:
    if constant.kind == "string":
        text = str(constant.value).strip(SPACES)
        if _DOUBLE_WORD.fullmatch(text) or (_NUMBER.fullmatch(text) and re.search(r"\d", text)):
            return Constant("double", _float(text))
        return None
    return as_double(constant) if constant.is_number else None


def as_double(constant: Constant) -> Constant:
    """A number as a double; other constants as they are."""
    if not constant.is_number:
        return constant
    assert isinstance(constant.value, int | float | Decimal)
    return Constant("double", nearest_double(constant.value))


def nearest_double(number: float | Decimal) -> float:
    """A number as a DOUBLE; SqlError if DuckDB, which rounds huge integers twice, may differ."""
    double = float(number)
    if isinstance(number, int) and abs(number) >= _HUGE and int(double) != number:
        raise SqlError(
            f"the integer {number} cannot be written as DOUBLE without rounding",
            hint=f"write {double!r}",
        )
    return double


def _to_date(constant: Constant, _: ValueType) -> Constant | None:
    if constant.kind == "string":
        return Constant("date", parse_date(str(constant.value)))
    return constant if constant.kind == "date" else None


def _to_timestamp(constant: Constant, value_type: ValueType) -> Constant | None:
    assert isinstance(value_type, TimestampType)
    kind: Kind = "timestamptz" if value_type.zoned else "timestamp"
    if constant.kind == "string":
        return Constant(kind, parse_timestamp(str(constant.value), value_type.zoned))
    if constant.kind == "date":
        assert isinstance(constant.value, int)
        return Constant(kind, constant.value * MICROS_PER_DAY)
    if constant.kind in ("timestamp", "timestamptz"):
        return Constant(kind, constant.value)  # the zone of a session is UTC
    return None


def _same(constant: Constant, value_type: ValueType) -> Constant | None:
    return constant if constant.kind == value_type.kind else None


_converters: dict[type[ValueType], Callable[[Constant, ValueType], Constant | None]] = {
    IntegerType: _to_integer,
    DecimalType: _to_decimal,
    DoubleType: _to_double,
    DateType: _to_date,
    TimestampType: _to_timestamp,
    StringType: _same,
    BooleanType: _same,
}

_ORDERS: dict[type[exp.Expr], tuple[int, ...]] = {
    exp.EQ: (0,),
    exp.NEQ: (-1, 1),
    exp.LT: (-1,),
    exp.LTE: (-1, 0),
    exp.GT: (1,),
    exp.GTE: (0, 1),
}


def compared(kind: type[exp.Expr], left: Constant, right: Constant) -> Constant:
    """A comparison of two constants, as in WHERE 1 = 1."""
    orders = _ORDERS.get(kind)
    if orders is not None and NULL in (left, right):
        return NULL
    one, other = left.value, right.value
    if isinstance(one, str) and isinstance(other, str):
        order = (one > other) - (one < other)
    elif {left.kind, right.kind} <= {"integer", "decimal"}:
        assert isinstance(one, int | Decimal)
        assert isinstance(other, int | Decimal)
        order = (one > other) - (one < other)
    else:
        orders = None
    if orders is None:
        raise SqlError("one side of a comparison must be a column")
    return Constant("boolean", order in orders)
