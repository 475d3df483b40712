"""Kernels that write MessagePack, byte for byte as `penstock.packing` would.

Each writes into `out` from `at` on and returns where it stopped. The caller makes sure that there
is room: at most `MOST_BYTES` for a number, the start of an array, or the start of a text.
"""

from __future__ import annotations

from penstock.kernels.arrays import Bytes8
from penstock.kernels.byte_strings import put_bytes
from penstock.kernels.compiled import njit

MOST_BYTES = 9
"""Maximum size of a packed number, and of the start of an array or text."""

NIL = 0xC0
_FIX_ARRAY, _ARRAY_16, _ARRAY_32 = 0x90, 0xDC, 0xDD
_FIX_TEXT, _TEXT_8, _TEXT_16, _TEXT_32 = 0xA0, 0xD9, 0xDA, 0xDB
_UINT_8, _UINT_16, _UINT_32, _UINT_64 = 0xCC, 0xCD, 0xCE, 0xCF
_INT_8, _INT_16, _INT_32, _INT_64 = 0xD0, 0xD1, 0xD2, 0xD3


@njit
def _put_big(out: Bytes8, at: int, value: int, count: int) -> int:
    """The lowest `count` bytes of a number, big-endian."""
    for i in range(count):
        out[at + i] = (value >> 8 * (count - 1 - i)) & 0xFF
    return at + count


@njit
def put_marked(out: Bytes8, at: int, mark: int, value: int, count: int) -> int:
    """A mark, and a number of `count` bytes."""
    out[at] = mark
    return _put_big(out, at + 1, value, count)


@njit
def put_integer(out: Bytes8, at: int, value: int) -> int:
    if -32 <= value < 128:
        out[at] = value & 0xFF
        return at + 1
    if value >= 0:
        if value < 1 << 8:
            return put_marked(out, at, _UINT_8, value, 1)
        if value < 1 << 16:
            return put_marked(out, at, _UINT_16, value, 2)
        if value < 1 << 32:
            return put_marked(out, at, _UINT_32, value, 4)
        return put_marked(out, at, _UINT_64, value, 8)
    if value >= -(1 << 7):
        return put_marked(out, at, _INT_8, value, 1)
    if value >= -(1 << 15):
        return put_marked(out, at, _INT_16, value, 2)
    if value >= -(1 << 31):
        return put_marked(out, at, _INT_32, value, 4)
    return put_marked(out, at, _INT_64, value, 8)


@njit
def put_array(out: Bytes8, at: int, length: int) -> int:
    """The start of an array of `length` values."""
    if length < 16:
        out[at] = _FIX_ARRAY | length
        return at + 1
    if length < 1 << 16:
        return put_marked(out, at, _ARRAY_16, length, 2)
    return put_marked(out, at, _ARRAY_32, length, 4)


@njit
def put_text(out: Bytes8, at: int, data: Bytes8, first: int, length: int) -> int:
    if length < 32:
        out[at] = _FIX_TEXT | length
        at += 1
    elif length < 1 << 8:
        at = put_marked(out, at, _TEXT_8, length, 1)
    elif length < 1 << 16:
        at = put_marked(out, at, _TEXT_16, length, 2)
    else:
        at = put_marked(out, at, _TEXT_32, length, 4)
    return put_bytes(out, at, data, first, length)


@njit
def put_nil(out: Bytes8, at: int) -> int:
    out[at] = NIL
    return at + 1
