"""Numbers as people and programs write them: ASCII digits, a sign, a point, an exponent."""

from __future__ import annotations

import re
from decimal import MAX_EMAX, Decimal, InvalidOperation

_DIGITS = "[0-9]+(_[0-9]+)*"
_NUMERAL = re.compile(
    rf"\s*[+-]?({_DIGITS}\.?({_DIGITS})?|\.{_DIGITS})([eE][+-]?[0-9]+)?\s*", re.ASCII
)


def read_numeral(text: str) -> Decimal | None:
    """The exact number in a text; None if it is not a number.

    Like DuckDB it accepts `1_000`. Python's own parsers would also accept digits of other scripts,
    and words such as NaN.
    """
    return read_number(text) if _NUMERAL.fullmatch(text) else None


def read_number(text: str) -> Decimal:
    """The number of a numeral. An exponent beyond Decimal's range is replaced by the largest one:
    no column type distinguishes them."""
    try:
        return Decimal(text)
    except InvalidOperation:
        mantissa, _, exponent = text.strip().lower().partition("e")
        value = Decimal(mantissa)
        farthest = -MAX_EMAX if exponent.startswith("-") else MAX_EMAX
        return Decimal((int(value.is_signed()), (1,), farthest)) if value else value


def read_any_number(value: object) -> Decimal | None:
    """The exact number in any Python form, or in a text; None if it is not a number."""
    if isinstance(value, str):
        return read_numeral(value)
    if isinstance(value, float):
        return Decimal(repr(value))  # its shortest text, as everywhere
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    return value if isinstance(value, Decimal) else None
