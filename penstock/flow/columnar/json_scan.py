"""Kernels that parse single JSON values in a buffer.

Each returns where the value ends, or `NOT_PLAIN` for unsupported syntax: then the event falls back
to the plain reader. Nothing is accepted that JSON does not allow, and no value is parsed that
another reader would interpret differently.
"""

from __future__ import annotations

import numpy as np

from penstock.flow.columnar.layout import MAX_DIGITS, Names
from penstock.kernels.arrays import Bytes8
from penstock.kernels.byte_strings import same_bytes
from penstock.kernels.compiled import njit
from penstock.kernels.wide_integers import negated, times_ten

NOT_PLAIN = -1

QUOTE, COMMA, COLON, MINUS, POINT = 34, 44, 58, 45, 46
OPEN, CLOSE = 123, 125
_BACKSLASH, _SPACE, _ZERO, _NINE = 92, 32, 48, 57
_BEYOND_ASCII = 128

POWERS = np.array([10**i for i in range(MAX_DIGITS + 1)], np.int64)
_DAYS_BEFORE = np.array([0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334], np.int64)
_DAYS_IN = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)
_DAYS_TO_1970 = 719_162  # from the first day of year 1


@njit
def skip_space(data: Bytes8, at: int, end: int) -> int:
    while at < end and (data[at] == _SPACE or data[at] == 9 or data[at] == 10 or data[at] == 13):
        at += 1
    return at


@njit
def expect(data: Bytes8, at: int, end: int, byte: int) -> int:
    """The position after an expected byte and the white space around it, or `NOT_PLAIN`."""
    at = skip_space(data, at, end)
    if at >= end or data[at] != byte:
        return NOT_PLAIN
    return skip_space(data, at + 1, end)


@njit
def text_end(data: Bytes8, at: int, end: int, only_ascii: bool) -> int:
    """The position of the closing quote of the text that begins at `at`. A text with escapes is not
    plain."""
    while at < end:
        byte = data[at]
        if byte == QUOTE:
            return at
        if byte == _BACKSLASH or byte < _SPACE or (only_ascii and byte >= _BEYOND_ASCII):
            return NOT_PLAIN
        at += 1
    return NOT_PLAIN


@njit
def find_name(data: Bytes8, at: int, stop: int, names: Names, likely: int) -> int:
    """Which of the names equals [at, stop), testing the likely one first; -1 for none."""
    count = len(names.ends)
    for i in range(count):
        number = likely + i if likely + i < count else likely + i - count
        first = names.ends[number - 1] if number else 0
        if same_bytes(data, at, stop, names.letters, first, names.ends[number]):
            return number
    return -1


@njit
def read_number(data: Bytes8, at: int, end: int) -> tuple[int, int, int]:
    """A number without an exponent: where it ends, its digits as an integer, and the number of
    digits after the point. At most MAX_DIGITS characters, so the integer fits 64 bits."""
    is_negative = at < end and data[at] == MINUS
    first = at + is_negative
    at, whole, point = first, 0, -1
    while at < end:
        byte = data[at]
        if _ZERO <= byte <= _NINE:
            whole = whole * 10 + (byte - _ZERO)
        elif byte == POINT and point < 0:
            point = at
        else:
            break
        at += 1
        if at - first > MAX_DIGITS:
            return NOT_PLAIN, 0, 0
    if not _is_number(data, first, at, end, point):
        return NOT_PLAIN, 0, 0
    if is_negative and whole == 0:
        return NOT_PLAIN, 0, 0  # not every type has a negative zero
    return at, -whole if is_negative else whole, 0 if point < 0 else at - point - 1


@njit
def _is_number(data: Bytes8, first: int, at: int, end: int, point: int) -> bool:
    """Whether [first, at) is a JSON number with its point at `point` (-1: none) and no exponent
    follows."""
    before = (at if point < 0 else point) - first
    after = -1 if point < 0 else at - point - 1
    if before == 0 or (before > 1 and data[first] == _ZERO) or after == 0:
        return False
    return at >= end or (data[at] != 101 and data[at] != 69)


@njit
def read_wide_number(
    data: Bytes8, at: int, end: int, most: int, scale: int
) -> tuple[int, int, int]:
    """A number without an exponent, of at most `most` digits: where it ends, and 10**scale times
    the number as the high and low word of a wide integer."""
    is_negative = at < end and data[at] == MINUS
    first = at + is_negative
    high, low = np.uint64(0), np.uint64(0)
    at, point = first, -1
    while at < end:
        byte = data[at]
        if _ZERO <= byte <= _NINE:
            high, low = times_ten(high, low, byte - _ZERO)
        elif byte == POINT and point < 0:
            point = at
        else:
            break
        at += 1
        if at - first > most + 2:  # two more for a leading zero and the point
            return NOT_PLAIN, 0, 0
    after = 0 if point < 0 else at - point - 1
    before = at - first if point < 0 else point - first
    if before == 1 and data[first] == _ZERO:
        before = 0  # a leading zero is not a digit of the value
    is_zero = high == np.uint64(0) and low == np.uint64(0)
    if before > most - scale or after > scale or (is_negative and is_zero):
        return NOT_PLAIN, 0, 0
    if not _is_number(data, first, at, end, point):
        return NOT_PLAIN, 0, 0
    for _ in range(scale - after):
        high, low = times_ten(high, low, 0)
    if is_negative:
        high, low = negated(high, low)
    return at, int(np.int64(high)), int(np.int64(low))


@njit
def read_digits(data: Bytes8, at: int, count: int) -> int:
    """A number of exactly `count` digits, or -1."""
    number = 0
    for i in range(at, at + count):
        if not _ZERO <= data[i] <= _NINE:
            return -1
        number = number * 10 + (data[i] - _ZERO)
    return number


@njit
def read_date(data: Bytes8, at: int) -> tuple[bool, int]:
    """Whether ten bytes like 2024-05-06 are a date, and the days since 1970."""
    year, month = read_digits(data, at, 4), read_digits(data, at + 5, 2)
    day = read_digits(data, at + 8, 2)
    if data[at + 4] != MINUS or data[at + 7] != MINUS or year < 1 or not 1 <= month <= 12:
        return False, 0
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= day <= _DAYS_IN[month - 1] + (is_leap and month == 2):
        return False, 0
    past = year - 1
    days = past * 365 + past // 4 - past // 100 + past // 400
    days += _DAYS_BEFORE[month - 1] + (is_leap and month > 2) + day - 1
    return True, days - _DAYS_TO_1970


@njit
def read_timestamp(data: Bytes8, at: int, stop: int) -> tuple[bool, int]:
    """Whether [at, stop) is a timestamp like 2024-05-06T07:08:09.123, and the microseconds since
    1970. A Z may follow, for columns with and without time zone alike."""
    if stop > at and data[stop - 1] == 90:
        stop -= 1
    length = stop - at
    if length != 19 and length != 23 and length != 26:
        return False, 0
    is_date, days = read_date(data, at)
    hour, minute = read_digits(data, at + 11, 2), read_digits(data, at + 14, 2)
    second, micro = read_digits(data, at + 17, 2), 0
    if length > 19:
        micro = read_digits(data, at + 20, length - 20)
        if data[at + 19] != POINT or micro < 0:
            return False, 0
        micro *= 1000 if length == 23 else 1
    if data[at + 10] != 84 and data[at + 10] != _SPACE:
        return False, 0
    if not is_date or data[at + 13] != COLON or data[at + 16] != COLON:
        return False, 0
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60):
        return False, 0
    return True, ((days * 24 + hour) * 3600 + minute * 60 + second) * 1_000_000 + micro


@njit
def characters(data: Bytes8, at: int, stop: int) -> int:
    """The number of characters in UTF-8 text."""
    count = 0
    for i in range(at, stop):
        count += data[i] & 0xC0 != 0x80
    return count
