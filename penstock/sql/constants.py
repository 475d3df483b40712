"""Constants of conditions: numbers, strings, dates and the like, each of one kind."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Literal, TypeAlias

from penstock.catalog import ValueType
from penstock.errors import SqlError
from penstock.sql.calendar import SPACES

Kind: TypeAlias = Literal[
    "null", "boolean", "integer", "decimal", "double", "string", "date", "timestamp", "timestamptz"
]

MAX_DIGITS = 38
MICROS_PER_DAY = 86_400_000_000
_HUGE = 1 << 63
"""Smaller integers are rounded to doubles by the processor, the same everywhere."""
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
    """The type a NULL was cast to: it compares only with columns of such types."""

    @property
    def is_number(self) -> bool:
        return self.kind in ("integer", "decimal", "double")

    def __str__(self) -> str:
        text = str(self.value).upper() if self.kind in ("boolean", "null") else str(self.value)
        text = f"'{text}'" if self.kind == "string" else text
        return text if len(text) <= 60 else f"{text[:57]}..."


NULL = Constant("null", None)


def read_number(text: str) -> Constant:
    """A number as written; SqlError if it is not a number, or is too long."""
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


def read_double(text: str) -> float | None:
    """The double in a string, if it is one; SqlError if it is too large."""
    text = text.strip(SPACES)
    is_number = _NUMBER.fullmatch(text) and re.search(r"\d", text)
    return _float(text) if is_number or _DOUBLE_WORD.fullmatch(text) else None


def exact_number(constant: Constant) -> Fraction | None:
    """The exact value of a constant, if it is a finite number."""
    text = str(constant.value).strip(SPACES)
    if constant.kind not in ("integer", "decimal", "double", "string"):
        return None
    if not _NUMBER.fullmatch(text) or not re.search(r"\d", text) or len(text) > 2 * MAX_DIGITS:
        return None
    try:
        decimal = Decimal(text)  # a double stands for the decimal it shows: 1e-1 means 0.1
    except InvalidOperation:  # an exponent of twenty digits
        return None
    return Fraction(decimal) if decimal == 0 or abs(decimal.adjusted()) <= MAX_DIGITS else None


def as_double(constant: Constant) -> Constant:
    """A number as a double; other constants unchanged."""
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
