"""Constants of a condition: numbers, strings, typed literals and casts of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal as OneOf
from typing import TypeAlias

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
from penstock.sql.calendar import parse_date, parse_timestamp
from penstock.sql.column_types import value_type_of

Kind: TypeAlias = OneOf[
    "null", "boolean", "integer", "decimal", "double", "string", "date", "timestamp", "timestamptz"
]

MAX_DIGITS = 38
_NUMBER = re.compile(r"(\d*)(\.\d*)?([eE][+-]?\d+)?")
_DOUBLE_WORDS = {"nan", "inf", "infinity"}


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal of one kind.

    Integers are `int`, decimals `Decimal`, doubles `float`; dates are days and timestamps
    microseconds since 1970, as stored.
    """

    kind: Kind
    value: int | float | str | bool | Decimal | None

    @property
    def is_number(self) -> bool:
        return self.kind in ("integer", "decimal", "double")


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
        return Constant("string", text) if expression.is_string else _number(text)
    if isinstance(expression, exp.Neg):
        inner = read_constant(expression.this)
        return None if inner is None else _negated(inner)
    if type(expression) is exp.Cast:
        inner = read_constant(expression.this)
        return None if inner is None else _cast(inner, expression)
    return None


def _number(text: str) -> Constant:
    found = _NUMBER.fullmatch(text.replace("_", ""))
    if found is None or not any(character.isdigit() for character in text):
        raise SqlError(f"{text[:60]} is not a number this can read")
    whole, fraction, exponent = found.group(1), found.group(2), found.group(3)
    if exponent is not None:
        return double_constant(text)
    if len((whole + (fraction or "")).replace(".", "").lstrip("0")) > MAX_DIGITS:
        raise SqlError(
            f"a number has at most {MAX_DIGITS} digits", hint="write large numbers like 1e40"
        )
    if fraction is None:
        return Constant("integer", int(whole))
    return Constant("decimal", Decimal(text.replace("_", "")))


def double_constant(text: str) -> Constant:
    value = float(text)
    if value in (float("inf"), float("-inf")) and text.strip("+-").lower() not in _DOUBLE_WORDS:
        raise SqlError(f"{text[:60]} is too large for a DOUBLE")
    return Constant("double", value)


def _negated(constant: Constant) -> Constant:
    if constant.kind == "null":
        return constant
    if constant.is_number:
        assert isinstance(constant.value, int | float | Decimal)
        negated = constant.value.copy_negate() if isinstance(constant.value, Decimal) else None
        return Constant(constant.kind, -constant.value if negated is None else negated)
    raise SqlError(f"a minus before a {constant.kind}")


def _cast(constant: Constant, cast: exp.Cast) -> Constant:
    unknown = [k for k, v in cast.args.items() if v and k not in ("this", "to", "_type")]
    if unknown:
        raise SqlError(f"CAST with {unknown[0].upper()} is not supported in a subscription")
    return convert(constant, value_type_of(cast.to))


def convert(constant: Constant, value_type: ValueType) -> Constant:
    """The constant as a value of a type; SqlError if it does not convert without loss."""
    if constant.kind == "null":
        return constant
    converted: Constant | None = None
    if isinstance(value_type, IntegerType | DecimalType):
        converted = _to_exact_number(constant, value_type)
    elif isinstance(value_type, DoubleType):
        converted = _to_double(constant)
    elif isinstance(value_type, DateType):
        converted = _to_date(constant)
    elif isinstance(value_type, TimestampType):
        converted = to_timestamp(constant, value_type.zoned)
    elif (isinstance(value_type, StringType) and constant.kind == "string") or (
        isinstance(value_type, BooleanType) and constant.kind == "boolean"
    ):
        converted = constant
    if converted is None:
        raise SqlError(
            f"{show(constant)} cannot be written as {value_type}",
            detail="constants are converted only where nothing is lost",
        )
    return converted


def exact_value(constant: Constant) -> Fraction | None:
    """The number a numeric constant is; None for NaN and the infinities."""
    assert isinstance(constant.value, int | float | Decimal)
    if isinstance(constant.value, float) and constant.value - constant.value != 0:
        return None
    return Fraction(constant.value)


def _to_exact_number(constant: Constant, value_type: IntegerType | DecimalType) -> Constant | None:
    if constant.kind == "string":
        text = str(constant.value).strip()
        found = _NUMBER.fullmatch(text.lstrip("+-"))
        if found is None or len(text) > MAX_DIGITS + 2 or not re.search(r"\d", text):
            return None
        constant = Constant("decimal", Decimal(text))
    if not constant.is_number:
        return None
    if isinstance(constant.value, float):
        constant = Constant("decimal", Decimal(repr(constant.value)))
    exact = exact_value(constant) if Decimal(str(constant.value)).is_finite() else None
    if exact is None:
        return None
    if isinstance(value_type, IntegerType):
        fits = exact.denominator == 1 and value_type.lowest <= exact <= value_type.highest
        return Constant("integer", int(exact)) if fits else None
    scaled = exact * 10**value_type.scale
    if scaled.denominator != 1 or abs(scaled) >= 10**value_type.precision:
        return None
    return Constant("decimal", Decimal(f"{int(scaled)}e-{value_type.scale}"))


def _to_double(constant: Constant) -> Constant | None:
    if constant.kind == "string":
        text = str(constant.value).strip()
        number = text.lstrip("+-")
        readable = number.lower() in _DOUBLE_WORDS or (
            _NUMBER.fullmatch(number) and re.search(r"\d", number)
        )
        return double_constant(text) if readable and len(text) - len(number) <= 1 else None
    if not constant.is_number:
        return None
    assert isinstance(constant.value, int | float | Decimal)
    return Constant("double", float(constant.value))


def _to_date(constant: Constant) -> Constant | None:
    if constant.kind == "string":
        return Constant("date", parse_date(str(constant.value)))
    return constant if constant.kind == "date" else None


def to_timestamp(constant: Constant, zoned: bool) -> Constant | None:
    kind: Kind = "timestamptz" if zoned else "timestamp"
    if constant.kind == "string":
        return Constant(kind, parse_timestamp(str(constant.value), zoned))
    if constant.kind == "date":
        assert isinstance(constant.value, int)
        return Constant(kind, constant.value * 86_400_000_000)
    if constant.kind in ("timestamp", "timestamptz"):  # zones are UTC
        return Constant(kind, constant.value)
    return None


def show(constant: Constant) -> str:
    text = repr(constant.value) if constant.kind == "string" else str(constant.value)
    return text if len(text) <= 60 else f"{text[:57]}..."
