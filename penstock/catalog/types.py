"""The value types of columns.

A value lives in three forms:

* *outside*: what JSON, Python callers and contents show (`Decimal`, `date`, `datetime`, ...);
* *stored*: plain `int`, `float`, `str`, `bool` or `None`, which every codec can carry: dates as
  days and timestamps as microseconds since 1970, decimals as integers scaled by their type;
* *key*: an `int` or `str` with the order and the equality of SQL, for comparing. Only doubles need
  another key than their stored form: -0.0 equals 0.0, and NaN equals itself and exceeds everything.

A type stores outside values (and refuses those that do not fit), shows stored ones, and turns
stored values into keys and keys back.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, Inexact
from typing import ClassVar, TypeAlias

from penstock.catalog.numerals import read_numeral
from penstock.errors import ChangeError

Outside: TypeAlias = object
Stored: TypeAlias = int | float | str | bool | None
Key: TypeAlias = int | str

_EPOCH_DATE = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class ValueType:
    """One SQL type. Subclasses say how values are stored, shown and compared."""

    kind: ClassVar[str]
    """Types of one kind can be joined on each other."""
    discrete: ClassVar[bool] = True
    """Whether the key after `k` is `k + 1`, so that `x > 5` is the same as `x >= 6`."""

    def store(self, value: Outside) -> Stored:
        """The stored form of a value that is not None; ChangeError if it does not fit."""
        raise NotImplementedError

    def show(self, stored: Stored) -> Outside:
        return stored

    def key(self, stored: Stored) -> Key:
        """The comparable form of a stored value that is not None."""
        assert isinstance(stored, int)
        return stored

    def unkey(self, key: Key) -> Stored:
        return key

    def join_key(self, stored: Stored) -> Key:
        """Like `key`, and equal for equal values of all types of this kind."""
        return self.key(stored)

    @property
    def key_range(self) -> tuple[Key | None, Key | None]:
        """The smallest and the largest key that any value has, where there is one."""
        return None, None

    def misfit(self, value: Outside, why: str = "") -> ChangeError:
        shown = repr(value)
        shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
        return ChangeError(f"{shown} is not a {self}", detail=why)


@dataclass(frozen=True, slots=True)
class IntegerType(ValueType):
    name: str = "BIGINT"
    bits: int = 64
    kind: ClassVar[str] = "integer"

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
    WORDS: ClassVar[frozenset[str]] = frozenset({"nan", "inf", "-inf", "infinity", "-infinity"})

    def __str__(self) -> str:
        return "DOUBLE"

    def store(self, value: Outside) -> Stored:
        if isinstance(value, str) and value.lower() in self.WORDS:
            return float(value)  # JSON has no other way to write these
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise self.misfit(value)
        try:
            stored = float(value)
        except OverflowError:
            stored = math.inf
        if math.isinf(stored) and not (isinstance(value, float) and math.isinf(value)):
            raise self.misfit(value, "it is too large for a double")
        return stored

    def key(self, stored: Stored) -> Key:
        """The bits of the double, turned so that their integer order is SQL's order."""
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

    @property
    def key_range(self) -> tuple[Key | None, Key | None]:
        return -INFINITY_KEY, NAN_KEY


_SIGN = 1 << 63
_MAGNITUDE = _SIGN - 1
INFINITY_KEY = 0x7FF0_0000_0000_0000
NAN_KEY = _MAGNITUDE  # above the key of +infinity


@dataclass(frozen=True, slots=True)
class DecimalType(ValueType):
    precision: int = 18
    scale: int = 3
    kind: ClassVar[str] = "decimal"
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
        """Any value, digit by digit, so that a misfit can be explained."""
        if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
            raise self.misfit(value)
        if isinstance(value, str):
            read = read_numeral(value)
            if read is None:
                raise self.misfit(value)
            exact = read
        else:
            # A float stands for the decimal its shortest text shows: 0.1 means 0.1.
            exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        if not exact.is_finite():
            raise self.misfit(value, "decimals are finite")
        sign, digits, exponent = exact.as_tuple()
        assert isinstance(exponent, int)
        if not any(digits):
            return 0  # whatever its exponent: zeros are not to be multiplied out
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


@dataclass(frozen=True, slots=True)
class StringType(ValueType):
    max_length: int | None = None
    kind: ClassVar[str] = "string"
    discrete: ClassVar[bool] = False

    def __str__(self) -> str:
        return "VARCHAR" if self.max_length is None else f"VARCHAR({self.max_length})"

    def store(self, value: Outside) -> Stored:
        if not isinstance(value, str):
            raise self.misfit(value)
        if self.max_length is not None and len(value) > self.max_length:
            raise self.misfit(value, f"it has {len(value)} characters")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise self.misfit(value, "a lone surrogate is not a character") from None
        return value

    def key(self, stored: Stored) -> Key:
        assert isinstance(stored, str)
        return stored  # Python compares strings by code point, as SQL's binary collation does

    @property
    def key_range(self) -> tuple[Key | None, Key | None]:
        return "", None


@dataclass(frozen=True, slots=True)
class BooleanType(ValueType):
    kind: ClassVar[str] = "boolean"

    def __str__(self) -> str:
        return "BOOLEAN"

    def store(self, value: Outside) -> Stored:
        if not isinstance(value, bool):
            raise self.misfit(value)
        return value

    def key(self, stored: Stored) -> Key:
        return int(bool(stored))

    def unkey(self, key: Key) -> Stored:
        return bool(key)

    @property
    def key_range(self) -> tuple[Key | None, Key | None]:
        return 0, 1


@dataclass(frozen=True, slots=True)
class DateType(ValueType):
    kind: ClassVar[str] = "date"

    def __str__(self) -> str:
        return "DATE"

    def store(self, value: Outside) -> Stored:
        if isinstance(value, str):
            value = _parsed(self, value, date.fromisoformat)
        if isinstance(value, datetime) or not isinstance(value, date):
            raise self.misfit(value)
        return (value - _EPOCH_DATE).days

    def show(self, stored: Stored) -> Outside:
        assert isinstance(stored, int)
        return _EPOCH_DATE + timedelta(days=stored)

    @property
    def key_range(self) -> tuple[Key | None, Key | None]:
        return (date.min - _EPOCH_DATE).days, (date.max - _EPOCH_DATE).days


@dataclass(frozen=True, slots=True)
class TimestampType(ValueType):
    """A point on the calendar, with (`zoned`, shown in UTC) or without a time zone."""

    zoned: bool = False
    kind: ClassVar[str] = "timestamp"

    def __str__(self) -> str:
        return "TIMESTAMP WITH TIME ZONE" if self.zoned else "TIMESTAMP"

    def store(self, value: Outside) -> Stored:
        if isinstance(value, str):
            value = read_timestamp(self, value)
        if not isinstance(value, datetime):
            raise self.misfit(value)
        if value.tzinfo is not None:
            if not self.zoned:
                raise self.misfit(value, "it has a time zone; use TIMESTAMP WITH TIME ZONE")
            try:
                value = value.astimezone(UTC).replace(tzinfo=None)
            except OverflowError:
                raise self.misfit(value, "in UTC it lies outside the years 1 to 9999") from None
        return (value - _EPOCH) // _MICROSECOND

    def show(self, stored: Stored) -> Outside:
        assert isinstance(stored, int)
        naive = _EPOCH + timedelta(microseconds=stored)
        return naive.replace(tzinfo=UTC) if self.zoned else naive

    @property
    def key_range(self) -> tuple[Key | None, Key | None]:
        first, last = datetime.min - _EPOCH, datetime.max - _EPOCH
        return first // _MICROSECOND, last // _MICROSECOND


def _parsed(value_type: ValueType, text: str, parse: Callable[[str], Outside]) -> Outside:
    try:
        return parse(text.strip())
    except ValueError:
        raise value_type.misfit(text, "write it as ISO 8601") from None


_FRACTION = re.compile(r"[.,]([0-9]{7,})")
_MAX_FRACTION_DIGITS = 9  # nanoseconds, the finest that databases write


def read_timestamp(value_type: ValueType, text: str) -> datetime:
    """The moment of an ISO 8601 text. Digits beyond microseconds must be zeros: Python would cut
    off others without a word."""
    found = _FRACTION.search(text)
    if found is not None:
        digits = found[1]
        if len(digits) > _MAX_FRACTION_DIGITS or digits[6:].strip("0"):
            raise value_type.misfit(text, "timestamps are kept to the microsecond")
        text = text[: found.start(1) + 6] + text[found.end(1) :]
    moment = _parsed(value_type, text, datetime.fromisoformat)
    assert isinstance(moment, datetime)
    return moment


def joinable(left: ValueType, right: ValueType) -> bool:
    """Whether two columns can be compared for equality in a join."""
    if isinstance(left, TimestampType) and isinstance(right, TimestampType):
        return left.zoned == right.zoned
    return left.kind == right.kind
