"""Numbers as people and programs write them: ASCII digits, a sign, a point, an exponent."""

from __future__ import annotations

import re
from decimal import MAX_EMAX, Decimal, InvalidOperation

_DIGITS = "[0-9]+(_[0-9]+)*"
_NUMERAL = re.compile(
    rf"\s*[+-]?({_DIGITS}\.?({_DIGITS})?|\.{_DIGITS})([eE][+-]?[0-9]+)?\s*", re.ASCII
)


def read_numeral(text: str) -> Decimal | None:
    """The number that a text is, to the last digit; None if it is none.

    Like DuckDB it takes `1_000`. Python's own readers would also take digits of other scripts, and
    words such as NaN.
    """
    return read_number(text) if _NUMERAL.fullmatch(text) else None


def read_number(text: str) -> Decimal:
    """The number that a numeral stands for. One beyond all exponents that Decimal knows becomes the
    one with the largest exponent it knows: no column type tells them apart."""
    try:
        return Decimal(text)
    except InvalidOperation:
        mantissa, _, exponent = text.strip().lower().partition("e")
        value = Decimal(mantissa)
        farthest = -MAX_EMAX if exponent.startswith("-") else MAX_EMAX
        return Decimal((int(value.is_signed()), (1,), farthest)) if value else value


def read_any_number(value: object) -> Decimal | None:
    """A number in any Python form, or in a text, to the last digit; None if it is none."""
    if isinstance(value, str):
        return read_numeral(value)
    if isinstance(value, float):
        return Decimal(repr(value))  # what its shortest text shows, as everywhere
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    return value if isinstance(value, Decimal) else None
