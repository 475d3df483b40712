"""Validates arguments of public methods: the intended value, or an error that says what was
expected and what was given.

Python checks no types, and a stored value of a wrong type would be found only when it is read back.
So every public method validates here first. A subclass of `int` or `str`, and a NumPy integer, is
converted to the equal plain value; a bool is not a number, and a float is not an integer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sized
from itertools import islice
from numbers import Real
from operator import index
from reprlib import Repr
from typing import TypeAlias

from penstock.errors import HomeError, PenstockError, SqlError, SubscriptionError

ErrorKind: TypeAlias = type[PenstockError]

MAX_OFFSET = 2**63 - 1
"""Offsets and ids are kept as 64-bit integers, in SQLite and in the files of a home."""
MIN_LEASE_SECONDS = 1
MAX_LEASE_SECONDS = 366 * 86_400  # a year

_REPR = Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 60


def shown(value: object) -> str:
    """A value as shown in errors: truncated, with its type. Never raises, whatever the value
    does."""
    kind = type(value).__name__
    try:
        return f"{_REPR.repr(value)} ({kind})" if value is not None else "None"
    except Exception:  # noqa: BLE001 - a value without a text is no reason to fail here
        return f"a {kind}"


def whole_number(
    value: object, what: str, error: ErrorKind, *, least: int = 0, most: int = MAX_OFFSET
) -> int:
    """An integer in a range. `what` begins the error: "the id of a subscription"."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = index(value)  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001 - whatever it raises, it is not a number
        raise error(f"{what} is a whole number, not {shown(value)}") from None
    if not least <= number <= most:
        raise error(f"{what} is a number from {least} to {most}, not {shown(number)}")
    return number


def number(value: object, what: str, error: ErrorKind) -> float:
    """An integer or a float; may be NaN, and is infinite beyond the range of floats."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise error(f"{what} is a number, not {shown(value)}")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def flag(value: object, what: str, error: ErrorKind) -> bool:
    if not isinstance(value, bool):
        raise error(f"{what} is True or False, not {shown(value)}")
    return value


def text(value: object, what: str, error: ErrorKind) -> str:
    """A valid string: a lone surrogate could not be stored."""
    if not isinstance(value, str):
        raise error(f"{what} is a text, not {shown(value)}")
    plain = str.__str__(value)
    try:
        plain.encode()
    except UnicodeEncodeError as wrong:
        raise error(
            f"{what} is not Unicode",
            detail=f"character {wrong.start + 1} is a lone surrogate, which is not a character",
        ) from None
    return plain


def statement(value: object) -> str:
    """The text of a statement. Its characters are checked by the parser."""
    if not isinstance(value, str):
        raise SqlError(f"a statement is a text, not {shown(value)}")
    return str.__str__(value)


def listed(value: object, what: str, error: ErrorKind, *, most: int) -> list[object]:
    """The items of a list or another iterable."""
    try:
        if isinstance(value, str | bytes | Mapping):
            raise TypeError
        too_many = isinstance(value, Sized) and len(value) > most
        items = iter(value)  # type: ignore[call-overload]
    except TypeError:
        raise error(f"{what} are a list, not {shown(value)}") from None
    found: list[object] = [] if too_many else list(islice(items, most + 1))
    if too_many or len(found) > most:
        raise error(f"{what} are {most:,} at most")
    return found


def lease_length(value: object, error: ErrorKind) -> float:
    """Seconds."""
    seconds = number(value, "the length of a lease in seconds", error)
    if not MIN_LEASE_SECONDS <= seconds <= MAX_LEASE_SECONDS:
        raise error(
            f"a lease cannot last {seconds:g} seconds",
            hint=f"from {MIN_LEASE_SECONDS} second to {MAX_LEASE_SECONDS // 86_400} days",
        )
    return seconds


def subscription_id(value: object) -> int:
    return whole_number(value, "the id of a subscription", SubscriptionError)


def subscription_ids(value: object, most: int) -> list[int]:
    what = "the ids of subscriptions"
    return [subscription_id(one) for one in listed(value, what, SubscriptionError, most=most)]


def offset(value: object, what: str = "an offset of the log") -> int:
    return whole_number(value, what, HomeError)
