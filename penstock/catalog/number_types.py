"""Column types of numbers: integers, doubles, decimals."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact
from typing import ClassVar

from penstock.catalog.numerals import read_any_number, read_numeral
from penstock.catalog.types import Key, Outside, Stored, ValueType

MAX_EXACT_DOUBLE = 1 << 53
"""Above it doubles have gaps between whole numbers: a number printed with an exponent may be the
neighbour of the one that was meant."""
_MAX_DIGITS = 20  # a BIGINT has 19


@dataclass(frozen=True, slots=True)
class IntegerType(ValueType):
    name: str = "BIGINT"
    bits: int = 64
    kind: ClassVar[str] = "integer"
    json_as: ClassVar[type] = int

    def __str__(self) -> str:
        return self.name

    def store(self, value: Outside) -> Stored:
        if type(value) is int and value.bit_length() < self.bits:
            return value
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.misfit(value)
        if not self.lowest <= value <= self.highest:
            raise self.misfit(value, f"the range is {self.lowest} to {self.highest}")
        return value

    def rewrite(self, value: Outside) -> Outside | None:
        number = read_any_number(value)
        if number is None or not number.is_finite():
            return None
        if not number:
            return 0
        if number.adjusted() >= _MAX_DIGITS:
            raise self.misfit(value, "it is too large")
        if number.adjusted() < 0 or number != number.to_integral_value():
            raise self.misfit(value, "it is not a whole number")
        exponent = number.as_tuple().exponent
        assert isinstance(exponent, int)
        if exponent > 0 and abs(number) > MAX_EXACT_DOUBLE:
            raise self.misfit(
                value, "beyond 2**53 an exponent may hide rounded digits; write all digits"
            )
        return int(number)

    @property
    def key_range(self) -> tuple[Key | None, Key | None]:
        return self.lowest, self.highest

    @property
    def lowest(self) -> int:
        return -(1 << (self.bits - 1))

    @property
    def highest(self) -> int:
        return (1 << (self.bits - 1)) - 1


@dataclass(frozen=True, slots=True)
class DoubleType(ValueType):
    kind: ClassVar[str] = "double"
    discrete: ClassVar[bool] = False
    stored_as: ClassVar[type] = float
    json_as: ClassVar[type] = float
    WORDS: ClassVar[frozenset[str]] = frozenset({"nan", "inf", "-inf", "infinity", "-infinity"})

    def __str__(self) -> str:
        return "DOUBLE"

    def store(self, value: Outside) -> Stored:
        if type(value) is float:
            return value
        if type(value) is Decimal and _LOWEST < (stored := float(value)) < _HIGHEST:
            return stored
        if isinstance(value, str) and value.lower() in self.WORDS:
            return float(value)  # JSON has no other notation for these
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise self.misfit(value)
        try:
            stored = float(value)
        except OverflowError:
            stored = math.inf
        if math.isinf(stored) and not (isinstance(value, float) and math.isinf(value)):
            raise self.misfit(value, "it is too large for a double")
        return stored

    def rewrite(self, value: Outside) -> Outside | None:
        if not isinstance(value, str):
            return None
        word = value.strip()
        return word if word.lower() in self.WORDS else read_numeral(value)

    def key(self, stored: Stored) -> Key:
        """The bits of the double, transformed so that their integer order is SQL's order."""
        assert isinstance(stored, float)
        if math.isnan(stored):
            return NAN_KEY
        bits: int = struct.unpack("<q", struct.pack("<d", stored + 0.0))[0]
        return bits if bits >= 0 else -(bits & _MAGNITUDE)

    def unkey(self, key: Key) -> Stored:
        assert isinstance(key, int)
        if key == NAN_KEY:
            return math.nan
        bits = key if key >= 0 else (-key) | _SIGN
        value: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
        return value

    def successor(self, key: Key) -> Key | None:
        return NAN_KEY if key == INFINITY_KEY else None  # nothing lies between infinity and NaN

    def near_keys(self, key: Key) -> list[Key]:
        value = self.unkey(key)
        assert isinstance(value, float)
        near = (math.nextafter(value, -math.inf), math.nextafter(value, math.inf))
        return [key, *map(self.key, near)]

    def literal(self, stored: Stored) -> str:
        assert isinstance(stored, float)
        if math.isfinite(stored):
            return str(stored)
        name = "NaN" if math.isnan(stored) else "Infinity" if stored > 0 else "-Infinity"
        return f"'{name}'::DOUBLE"

    @property
    def key_range(self) -> tuple[Key | None, Key | None]:
        return -INFINITY_KEY, NAN_KEY


_LOWEST, _HIGHEST = -math.inf, math.inf
_SIGN = 1 << 63
_MAGNITUDE = _SIGN - 1
INFINITY_KEY = 0x7FF0_0000_0000_0000
NAN_KEY = _MAGNITUDE  # above the key of +infinity


@dataclass(frozen=True, slots=True)
class DecimalType(ValueType):
    precision: int = 18
    scale: int = 3
    kind: ClassVar[str] = "decimal"
    json_as: ClassVar[type] = Decimal
    MAX_PRECISION: ClassVar[int] = 38

    def __str__(self) -> str:
        return f"DECIMAL({self.precision},{self.scale})"

    def store(self, value: Outside) -> Stored:
        if type(value) is Decimal and value.is_finite() and abs(value.adjusted()) < self.precision:
            try:
                scaled = value.scaleb(self.scale, _EXACT)
            except Inexact:
                return self._store_any(value)
            whole = int(scaled)
            if scaled == whole and abs(whole) < _POWERS[self.precision]:
                return whole
        return self._store_any(value)

    def _store_any(self, value: Outside) -> Stored:
        """Any value, digit by digit, so that a refusal can be explained."""
        if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
            raise self.misfit(value)
        if isinstance(value, str):
            read = read_numeral(value)
            if read is None:
                raise self.misfit(value)
            exact = read
        else:
            # A float stands for the decimal of its shortest text: 0.1 means 0.1.
            exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        if not exact.is_finite():
            raise self.misfit(value, "decimals are finite")
        sign, digits, exponent = exact.as_tuple()
        assert isinstance(exponent, int)
        if not any(digits):
            return 0  # whatever its exponent: zeros must not be expanded
        text = "".join(map(str, digits))
        significant = text.rstrip("0")
        exponent += len(text) - len(significant)
        before = self.precision - self.scale
        if len(significant.lstrip("0")) + exponent > before:
            raise self.misfit(value, f"at most {before} digits before the point")
        if -exponent > self.scale:
            raise self.misfit(value, f"at most {self.scale} digits after the point")
        whole = int(significant) * int(10 ** (exponent + self.scale))
        return -whole if sign else whole

    def show(self, stored: Stored) -> Outside:
        assert isinstance(stored, int)
        return Decimal(stored).scaleb(-self.scale, _WIDE)

    @property
    def key_range(self) -> tuple[Key | None, Key | None]:
        most = int(10**self.precision) - 1
        return -most, most

    def join_key(self, stored: Stored) -> Key:
        """The number as text without trailing zeros, the same for every scale."""
        return format(Decimal(str(self.show(stored))).normalize(_WIDE), "f")


_WIDE = Context(prec=DecimalType.MAX_PRECISION + 2)
_EXACT = Context(prec=DecimalType.MAX_PRECISION + 2, traps=[Inexact])
_POWERS = [int(10**digits) for digits in range(DecimalType.MAX_PRECISION + 1)]
