"""Integers of up to 128 bits, for DECIMALs of more than 18 digits.

A value is a pair of 64-bit words in two's complement: `high` is signed, `low` has the lower bits.
numba turns mixed signed and unsigned arithmetic into floats, so all arithmetic here is on `uint64`,
and words are converted on entry and exit.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.arrays import Bytes8
from penstock.kernels.compiled import njit
from penstock.kernels.msgpack_read import big_endian, integer_at
from penstock.kernels.msgpack_write import put_integer, put_marked, put_text
from penstock.packing import BIG_INTEGER

MOST_WIDE_BYTES = 18
"""Maximum size of a packed integer: a mark, perhaps a length, the extension code, and 16 bytes."""
MOST_DECIMAL_BYTES = 44
"""Maximum size of a packed decimal text: 38 digits, a leading zero, a point, a sign, a mark."""

_UINT_64, _EXT_8, _FIX_EXT_16 = 0xCF, 0xC7, 0xD8
_ONE, _TEN, _HALF = np.uint64(1), np.uint64(10), np.uint64(32)
_LOW_HALF = np.uint64(0xFFFF_FFFF)
_ZERO_LETTER, _POINT, _MINUS = 48, 46, 45
_MOST_DIGITS = 39  # decimal digits of 2**127


@njit
def times_ten(high: np.uint64, low: np.uint64, plus: int) -> tuple[np.uint64, np.uint64]:
    """Ten times a non-negative number, plus a digit."""
    lower = (low & _LOW_HALF) * _TEN + np.uint64(plus)
    upper = (low >> _HALF) * _TEN + (lower >> _HALF)
    return high * _TEN + (upper >> _HALF), (upper << _HALF) | (lower & _LOW_HALF)


@njit
def negated(high: np.uint64, low: np.uint64) -> tuple[np.uint64, np.uint64]:
    low = ~low + _ONE
    return (~high + _ONE if low == np.uint64(0) else ~high), low


@njit
def put_wide(out: Bytes8, at: int, high: int, low: int) -> int:
    """Write an integer as `penstock.packing` does: in the smallest form."""
    if high == low >> 63:
        return put_integer(out, at, low)
    if high == 0:
        return put_marked(out, at, _UINT_64, low, 8)
    size = _bits(high, low) // 8 + 1
    if size == 16:
        out[at], out[at + 1] = _FIX_EXT_16, BIG_INTEGER
        at += 2
    else:
        out[at], out[at + 1], out[at + 2] = _EXT_8, size, BIG_INTEGER
        at += 3
    for i in range(size - 8):
        out[at + i] = (high >> 8 * (size - 9 - i)) & 0xFF
    for i in range(8):
        out[at + size - 8 + i] = (low >> 8 * (7 - i)) & 0xFF
    return at + size


@njit
def _bits(high: int, low: int) -> int:
    """The number of bits of the magnitude of an integer."""
    upper, lower = np.uint64(high), np.uint64(low)
    if high < 0:
        upper, lower = negated(upper, lower)
    bits = 64 if upper > np.uint64(0) else 0
    rest = upper if upper > np.uint64(0) else lower
    while rest > np.uint64(0):
        rest >>= _ONE
        bits += 1
    return bits


@njit
def wide_at(data: Bytes8, at: int) -> tuple[int, int]:
    """The integer at `at`, in any form that `put_wide` writes."""
    mark = data[at]
    if mark == _UINT_64:
        return 0, big_endian(data, at + 1, 8)
    if mark != _EXT_8 and mark != _FIX_EXT_16:
        low = integer_at(data, at)
        return low >> 63, low
    size = 16 if mark == _FIX_EXT_16 else int(data[at + 1])
    first = at + 2 if mark == _FIX_EXT_16 else at + 3
    high = -1 if data[first] >= 0x80 else 0
    for i in range(first, first + size - 8):
        high = (high << 8) | data[i]
    return high, big_endian(data, first + size - 8, 8)


@njit
def put_decimal_text(out: Bytes8, at: int, high: int, low: int, scale: int) -> int:
    """Write a scaled integer as the text by which decimals of any scale are joined: without
    trailing zeros; see `penstock.catalog.number_types.DecimalType.join_key`."""
    digits = np.empty(_MOST_DIGITS, np.uint8)  # the least significant first
    is_negative = high < 0
    upper, lower = np.uint64(high), np.uint64(low)
    if is_negative:
        upper, lower = negated(upper, lower)
    count = 0
    while upper > np.uint64(0) or lower > np.uint64(0):
        upper, lower, digits[count] = _divided_by_ten(upper, lower)
        count += 1
    skipped = 0  # trailing zeros
    while skipped < scale and (skipped >= count or digits[skipped] == 0):
        skipped += 1
    letters, length = np.empty(MOST_DECIMAL_BYTES, np.uint8), 0
    if is_negative:
        letters[0], length = _MINUS, 1
    for place in range(max(count, scale + 1) - 1, skipped - 1, -1):
        if place == scale - 1:
            letters[length] = _POINT
            length += 1
        letters[length] = _ZERO_LETTER + (digits[place] if place < count else 0)
        length += 1
    return put_text(out, at, letters, 0, length)


@njit
def _divided_by_ten(high: np.uint64, low: np.uint64) -> tuple[np.uint64, np.uint64, int]:
    """A tenth of a non-negative number, and the remainder."""
    quotient = high // _TEN
    rest = high - quotient * _TEN
    upper = (rest << _HALF) | (low >> _HALF)
    upper_quotient = upper // _TEN
    lower = ((upper - upper_quotient * _TEN) << _HALF) | (low & _LOW_HALF)
    lower_quotient = lower // _TEN
    left = int(lower - lower_quotient * _TEN)
    return quotient, (upper_quotient << _HALF) | lower_quotient, left
