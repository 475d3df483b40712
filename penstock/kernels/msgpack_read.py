"""Kernels that navigate MessagePack, as `penstock.packing` writes it.

A packed value is given by where it begins (and ends) in a buffer. Rows are arrays; a value of a row
is found by skipping those before it.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.arrays import Bytes8, Ints
from penstock.kernels.byte_strings import same_bytes
from penstock.kernels.compiled import njit

NIL, FALSE, TRUE, DOUBLE = 0xC0, 0xC2, 0xC3, 0xCB
_MAPS, _ARRAYS, _TEXTS = 0x80, 0x90, 0xA0  # first mark of the short form of each kind
_TEXT_8, _ARRAY_16, _ARRAY_32 = 0xD9, 0xDC, 0xDD
_EXT_8, _UINT_8, _INT_8, _FIX_EXT_1 = 0xC7, 0xCC, 0xD0, 0xD4
_NEGATIVE = 0xE0


@njit
def big_endian(data: Bytes8, at: int, count: int) -> int:
    """A big-endian number of `count` bytes; signed if there are eight."""
    number = 0
    for i in range(at, at + count):
        number = (number << 8) | data[i]
    return number


@njit
def array_start(data: Bytes8, at: int) -> tuple[int, int]:
    """The number of values of the array at `at`, and where the first begins."""
    mark = data[at]
    if mark < _TEXTS:
        return mark - _ARRAYS, at + 1
    count = 2 if mark == _ARRAY_16 else 4
    return big_endian(data, at + 1, count), at + 1 + count


@njit
def value_end(data: Bytes8, at: int) -> int:
    """Where the value that begins at `at` ends, including nested values."""
    left = 1
    while left > 0:
        left -= 1
        mark = data[at]
        if mark < _MAPS or mark >= _NEGATIVE or NIL <= mark <= TRUE:
            at += 1
        elif mark < _TEXTS or mark in (_ARRAY_16, _ARRAY_32):
            count, at = array_start(data, at)
            left += count
        elif mark < NIL:
            at += 1 + (mark - _TEXTS)
        elif _TEXT_8 <= mark < _ARRAY_16:
            size = 1 << (mark - _TEXT_8)
            at += 1 + size + big_endian(data, at + 1, size)
        elif _UINT_8 <= mark < _INT_8:
            at += 1 + (1 << (mark - _UINT_8))
        elif _INT_8 <= mark < _FIX_EXT_1:
            at += 1 + (1 << (mark - _INT_8))
        elif _FIX_EXT_1 <= mark < _TEXT_8:
            at += 2 + (1 << (mark - _FIX_EXT_1))
        elif mark == DOUBLE:
            at += 9
        elif mark >= _EXT_8:
            size = 1 << (mark - _EXT_8)
            at += 2 + size + big_endian(data, at + 1, size)
        else:  # binary data, which does not occur in rows
            size = 1 << (mark - 0xC4)
            at += 1 + size + big_endian(data, at + 1, size)
    return at


@njit
def value_begins(data: Bytes8, at: int) -> Ints:
    """Where the values of the array at `at` begin."""
    count, at = array_start(data, at)
    begins = np.empty(count, np.int64)
    for i in range(count):
        begins[i] = at
        at = value_end(data, at)
    return begins


@njit
def column_at(data: Bytes8, row: int, column: int) -> int:
    """Where the value of a column begins in the row at `row`."""
    at = array_start(data, row)[1]
    for _ in range(column):
        at = value_end(data, at)
    return at


@njit
def integer_at(data: Bytes8, at: int) -> int:
    """The integer of at most 64 bits at `at`; 0 or 1 for a boolean."""
    mark = data[at]
    if mark < _MAPS:
        return int(mark)
    if mark >= _NEGATIVE:
        return int(mark) - 256
    if mark <= TRUE:
        return int(mark) - FALSE
    if mark < _INT_8:
        return big_endian(data, at + 1, 1 << (mark - _UINT_8))
    size = 1 << (mark - _INT_8)
    number = big_endian(data, at + 1, size)
    bits = 8 * size
    return number if size == 8 or number < 1 << (bits - 1) else number - (1 << bits)


@njit
def text_start(data: Bytes8, at: int) -> int:
    """Where the bytes of the text at `at` begin; they extend to the end of the value."""
    mark = data[at]
    return at + 1 if mark < NIL else at + 1 + (1 << (mark - _TEXT_8))


@njit
def is_same(data: Bytes8, at: int, end: int, other: int, other_end: int) -> bool:
    """Whether [at, end) and [other, other_end) have the same bytes."""
    return same_bytes(data, at, end, data, other, other_end)
