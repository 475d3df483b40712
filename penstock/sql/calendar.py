"""Dates and timestamps as text: ISO 8601, nothing rounded, nothing guessed."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta

from penstock.errors import SqlError

_DATE = r"(\d{4})-(\d{1,2})-(\d{1,2})"
_TIME = r"(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6})0*)?)?"
_ZONE = r" ?(Z|UTC|[+-]\d{2}(?::\d{2})?)"
_DATE_ONLY = re.compile(_DATE, re.ASCII)
_TIMESTAMP = re.compile(rf"{_DATE}(?:[ T]{_TIME}(?:{_ZONE})?)?", re.ASCII)
_EPOCH = datetime(1970, 1, 1)
SPACES = " \t\n\v\f\r"
"""White space that may surround a value in a string, as in DuckDB; Python would strip more."""


def parse_date(text: str) -> int:
    """Days since 1970."""
    found = _DATE_ONLY.fullmatch(text.strip(SPACES))
    if found is None:
        hint = "write it as '2024-05-31'"
        if _TIMESTAMP.fullmatch(text.strip(SPACES)):
            hint = f"with a time of day it is a TIMESTAMP '{text.strip(SPACES)}'"
        raise SqlError(f"'{text[:60]}' is not a date", hint=hint)
    year, month, day = map(int, found.groups())
    try:
        return (date(year, month, day) - _EPOCH.date()).days
    except ValueError as error:
        raise SqlError(f"'{text[:60]}' is not a date", detail=str(error)) from None


def parse_timestamp(text: str, zoned: bool) -> int:
    """Microseconds since 1970; in UTC, unless the text names another zone."""
    found = _TIMESTAMP.fullmatch(text.strip(SPACES))
    is_day = found is not None and found[4] is None
    if found is None or (is_day and text[-1] in SPACES):  # for DuckDB, a missing time
        raise SqlError(
            f"'{text[:60]}' is not a timestamp", hint="write it as '2024-05-31 12:30:00.000001'"
        )
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    if zone and not zoned:
        raise SqlError(
            f"'{text[:60]}' has a time zone, a TIMESTAMP has none",
            hint="leave the zone out, or write TIMESTAMPTZ '...'",
        )
    try:
        moment = datetime(
            int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0)
        )
    except ValueError as error:
        raise SqlError(f"'{text[:60]}' is not a timestamp", detail=str(error)) from None
    whole = (moment - _EPOCH) // timedelta(microseconds=1)
    return whole + int((fraction or "").ljust(6, "0")) - _offset_micros(zone)


def _offset_micros(zone: str | None) -> int:
    if zone is None or zone in ("Z", "UTC"):
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[4:] or 0)
    return (-minutes if zone[0] == "-" else minutes) * 60_000_000
