"""Column types of the calendar: dates and timestamps."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import ClassVar

from penstock.catalog.types import Key, Outside, Stored, ValueType

_EPOCH_DATE = date(1970, 1, 1)
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)


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

    def rewrite(self, value: Outside) -> Outside | None:
        moment = read_timestamp(self, value) if isinstance(value, str) else value
        if not isinstance(moment, datetime):
            return None
        if moment.tzinfo is not None and moment.utcoffset():
            raise self.misfit(value, "which day it is depends on the time zone")
        if moment.time() != time():
            raise self.misfit(value, "it has a time of day")
        return moment.date()

    def literal(self, stored: Stored) -> str:
        return self.quoted(stored)

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

    def rewrite(self, value: Outside) -> Outside | None:
        moment = read_timestamp(self, value) if isinstance(value, str) else value
        if isinstance(moment, datetime) and moment.tzinfo is not None:
            try:
                return moment.astimezone(UTC).replace(tzinfo=None)
            except OverflowError:
                return None  # `store` refuses it and says why
        if isinstance(moment, date) and not isinstance(moment, datetime):
            return datetime.combine(moment, time())
        return None

    def joins_with(self, other: ValueType) -> bool:
        return isinstance(other, TimestampType) and other.zoned == self.zoned

    def literal(self, stored: Stored) -> str:
        return self.quoted(stored)

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
    """The time of an ISO 8601 text. Digits beyond microseconds must be zeros: Python would drop
    others silently."""
    found = _FRACTION.search(text)
    if found is not None:
        digits = found[1]
        if len(digits) > _MAX_FRACTION_DIGITS or digits[6:].strip("0"):
            raise value_type.misfit(text, "timestamps are kept to the microsecond")
        text = text[: found.start(1) + 6] + text[found.end(1) :]
    moment = _parsed(value_type, text, datetime.fromisoformat)
    assert isinstance(moment, datetime)
    return moment
