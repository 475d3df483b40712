"""How constants compare with columns: one entry per column type.

`place` gives a pair of cuts: just below and just above the constant. They differ if the constant
is a possible value of the column and are the same cut if it lies between two values: `x > 1.5` on
an integer column is everything above the cut below 2, and `x = 1.5` is the empty stretch between
two equal cuts. So every comparison is exact, whatever the types; where the reference database
would compare rounded values instead, the comparison is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

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
    XmlType,
)
from penstock.errors import SqlError
from penstock.predicates.intervals import ABOVE_NULL, TOP, Cut, above, below
from penstock.sql.calendar import parse_date, parse_timestamp
from penstock.sql.constants import (
    MAX_DIGITS,
    MICROS_PER_DAY,
    NULL,
    Constant,
    Kind,
    as_double,
    exact_number,
    nearest_double,
    read_double,
)

Cuts: TypeAlias = tuple[Cut, Cut]
Placing: TypeAlias = Callable[[str], Cuts]
"""The cuts below and above a plain literal, as written, among the values of a column."""

_SAFE_DIGITS = 15  # any decimal of this many digits survives the conversion to a double and back
_SAFE_INTEGER = 1 << 53  # below, every integer is a double


class LiteralRules(NamedTuple):
    """The rules of a column type for constants. The functions take the type as their last
    argument."""

    family: str
    """A NULL compares if it was cast to a type of the same family."""
    convert: Callable[[Constant, Any], Constant | None]
    """The constant as a value of the type; None if it does not convert without loss."""
    place: Callable[[Constant, Any], Cuts | None]
    """The cuts of a constant that is not NULL; None if it does not compare."""
    hint: str = ""
    """What to write instead of a constant that does not compare."""
    digits: Callable[[Any], tuple[int, int]] | None = None
    """For exact numbers: digits after and before the point."""
    plain_placing: Callable[[Placing, Any], Placing] | None = None
    """A faster `place` for plain literals; falls back to the given function."""
    has_patterns: bool = False
    """Whether LIKE applies."""
    is_condition: bool = False
    """Whether a column by itself is a condition."""


def rules_of(value_type: ValueType) -> LiteralRules:
    return LITERAL_RULES[type(value_type)]


def converted(constant: Constant, value_type: ValueType) -> Constant:
    """The constant converted to a type; SqlError if that is lossy."""
    if constant == NULL:
        return Constant("null", None, value_type)
    found = rules_of(value_type).convert(constant, value_type)
    if found is None:
        raise SqlError(
            f"{constant} cannot be written as {value_type}",
            hint="constants are converted only where nothing is lost; write the value itself",
        )
    return found


def place(constant: Constant, value_type: ValueType) -> Cuts:
    """The cuts below and above a constant that is not NULL; SqlError if it does not compare."""
    rules = rules_of(value_type)
    found = rules.place(constant, value_type)
    if found is None:
        raise SqlError(
            f"a column of type {value_type} cannot be compared with the {constant.kind} {constant}",
            hint=_mismatch_hint(constant, rules),
        )
    return found


def _mismatch_hint(constant: Constant, rules: LiteralRules) -> str:
    if rules.family == "number" and constant.kind != "string":
        return ""
    return rules.hint.replace("{}", str(constant))


def check_null(null: Constant, value_type: ValueType) -> None:
    """SqlError if a NULL was cast to a type that does not compare with the column's."""
    cast_to = null.cast_to
    if cast_to is None or rules_of(cast_to).family == rules_of(value_type).family:
        return
    raise SqlError(
        f"a column of type {value_type} cannot be compared with a NULL of type {cast_to}",
        hint="write NULL without a type",
    )


def check_digits(constants: Sequence[Constant], value_type: ValueType) -> None:
    """SqlError if no DECIMAL holds both the values of a column and the constants compared with it:
    DuckDB then fails at the first value that does not fit."""
    digits_of = rules_of(value_type).digits
    if digits_of is None:
        return
    if isinstance(value_type, IntegerType) and all(one.kind == "integer" for one in constants):
        return  # the common case; no digits after the point
    exact = [one for one in constants if one.kind in ("integer", "decimal")]
    scale, before = digits_of(value_type)
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


def _place_exact(constant: Constant, value_type: IntegerType | DecimalType) -> Cuts | None:
    if not constant.is_number:
        return None
    check_digits([constant], value_type)
    return _place_number(constant, value_type, _digits_of(value_type)[0])


def _digits_of(value_type: IntegerType | DecimalType) -> tuple[int, int]:
    found = rules_of(value_type).digits
    assert found is not None
    return found(value_type)


def _place_number(constant: Constant, value_type: ValueType, digits_after: int) -> Cuts:
    """The position of a number among keys, which are integers and count multiples of 1/scale."""
    scale = 10**digits_after
    lowest, highest = value_type.key_range
    assert isinstance(lowest, int)
    assert isinstance(highest, int)
    value = constant.value
    assert isinstance(value, int | float | Decimal)
    if isinstance(value, float) and not math.isfinite(value):
        return _between(ABOVE_NULL if value == -math.inf else TOP)  # NaN is above everything
    # Nearly all are integers, and fractions are slow.
    scaled = value * scale if isinstance(value, int) else Fraction(value) * scale
    if isinstance(value, float) and -2 * highest <= scaled <= 2 * highest:
        scaled = _exactly_meant(value, scale, highest)
    if scaled > highest:
        return _between(TOP)
    if scaled < lowest:
        return _between(ABOVE_NULL)
    key = math.floor(scaled)
    return _on(key) if key == scaled else _between(below(key + 1))


def _exactly_meant(value: float, scale: int, highest: int) -> Fraction:
    """The number that a double stands for, if comparing exactly is the same as comparing
    doubles."""
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


def _place_double(constant: Constant, value_type: DoubleType) -> Cuts | None:
    if not constant.is_number:
        return None
    assert isinstance(constant.value, int | float | Decimal)
    return _on(value_type.key(nearest_double(constant.value)))


def _place_string(constant: Constant, _: StringType) -> Cuts | None:
    return _on(str(constant.value)) if constant.kind == "string" else None


def _place_boolean(constant: Constant, _: BooleanType) -> Cuts | None:
    return _on(int(bool(constant.value))) if constant.kind == "boolean" else None


def _place_date(constant: Constant, value_type: DateType) -> Cuts | None:
    if not constant.kind.startswith("timestamp"):
        return _place_time(constant, value_type)
    assert isinstance(constant.value, int)
    days, rest = divmod(constant.value, MICROS_PER_DAY)
    return _between(below(days + 1)) if rest else _on(days)


def _place_time(constant: Constant, value_type: DateType | TimestampType) -> Cuts | None:
    if constant.is_number or constant.kind == "boolean":
        return None
    key = converted(constant, value_type).value
    assert isinstance(key, int)
    return _on(key)


def _to_integer(constant: Constant, value_type: IntegerType) -> Constant | None:
    exact = exact_number(constant)
    if exact is None or exact.denominator != 1:
        return None
    fits = value_type.lowest <= exact <= value_type.highest
    return Constant("integer", int(exact)) if fits else None


def _to_decimal(constant: Constant, value_type: DecimalType) -> Constant | None:
    exact = exact_number(constant)
    scaled = None if exact is None else exact * 10**value_type.scale
    if scaled is None or scaled.denominator != 1 or abs(scaled) >= 10**value_type.precision:
        return None
    return Constant("decimal", Decimal(f"{int(scaled)}e-{value_type.scale}"))


def _to_double(constant: Constant, _: DoubleType) -> Constant | None:
    if constant.kind == "string":
        found = read_double(str(constant.value))
        return None if found is None else Constant("double", found)
    return as_double(constant) if constant.is_number else None


def _to_date(constant: Constant, _: DateType) -> Constant | None:
    if constant.kind == "string":
        return Constant("date", parse_date(str(constant.value)))
    return constant if constant.kind == "date" else None


def _to_timestamp(constant: Constant, value_type: TimestampType) -> Constant | None:
    kind: Kind = "timestamptz" if value_type.zoned else "timestamp"
    if constant.kind == "string":
        return Constant(kind, parse_timestamp(str(constant.value), value_type.zoned))
    if constant.kind == "date":
        assert isinstance(constant.value, int)
        return Constant(kind, constant.value * MICROS_PER_DAY)
    if constant.kind in ("timestamp", "timestamptz"):
        return Constant(kind, constant.value)  # the zone of a session is UTC
    return None


def _to_string(constant: Constant, _: StringType) -> Constant | None:
    return constant if constant.kind == "string" else None


def _to_boolean(constant: Constant, _: BooleanType) -> Constant | None:
    return constant if constant.kind == "boolean" else None


def _exact_placing(usual: Placing, value_type: IntegerType | DecimalType) -> Placing:
    scale, _ = _digits_of(value_type)
    lowest, highest = value_type.key_range
    assert isinstance(lowest, int)
    assert isinstance(highest, int)

    def number(text: str) -> Cuts:
        whole, _, fraction = text.partition(".")
        if text.startswith("'") or len(fraction) > scale or len(whole) + scale > MAX_DIGITS:
            return usual(text)
        key = int(whole + fraction.ljust(scale, "0"))
        if key > highest:
            return TOP, TOP
        return (below(key), above(key)) if key >= lowest else (ABOVE_NULL, ABOVE_NULL)

    return number


def _double_placing(usual: Placing, value_type: DoubleType) -> Placing:
    return lambda text: usual(text) if text.startswith("'") else _on(value_type.key(float(text)))


def _string_placing(usual: Placing, _: StringType) -> Placing:
    return lambda text: _on(text[1:-1]) if text.startswith("'") else usual(text)


_WITHOUT_QUOTES = "write numbers without quotes"

LITERAL_RULES: dict[type[ValueType], LiteralRules] = {
    IntegerType: LiteralRules(
        "number",
        _to_integer,
        _place_exact,
        _WITHOUT_QUOTES,
        lambda one: (0, len(str(one.highest))),
        _exact_placing,
    ),
    DecimalType: LiteralRules(
        "number",
        _to_decimal,
        _place_exact,
        _WITHOUT_QUOTES,
        lambda one: (one.scale, one.precision - one.scale),
        _exact_placing,
    ),
    DoubleType: LiteralRules(
        "number", _to_double, _place_double, _WITHOUT_QUOTES, plain_placing=_double_placing
    ),
    StringType: LiteralRules(
        "string",
        _to_string,
        _place_string,
        "write it in quotes: '{}'",
        plain_placing=_string_placing,
        has_patterns=True,
    ),
    BooleanType: LiteralRules(
        "boolean", _to_boolean, _place_boolean, "compare with TRUE or FALSE", is_condition=True
    ),
    DateType: LiteralRules("time", _to_date, _place_date),
    TimestampType: LiteralRules("time", _to_timestamp, _place_time),
    XmlType: LiteralRules(
        "xml",
        lambda _constant, _type: None,
        lambda _constant, _type: None,
        "documents are not compared: take values out of them with XMLTABLE",
    ),
}
