"""Many packed values in one buffer, as spans; and numbering of distinct values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.kernels.arrays import Bytes8, Ints
from penstock.kernels.byte_strings import put_bytes
from penstock.kernels.compiled import njit
from penstock.kernels.msgpack_read import is_same

NOWHERE = -1
"""The begin of an absent value."""


class Spans(NamedTuple):
    """Where values begin and end in a buffer; an absent value begins and ends `NOWHERE`."""

    begin: Ints
    end: Ints

    def take(self, which: npt.NDArray[np.generic]) -> Spans:
        return Spans(self.begin[which], self.end[which])


def concat(parts: Iterable[bytes]) -> tuple[Bytes8, Ints]:
    """Byte strings, concatenated, and where each begins, with the end of the last."""
    known = list(parts)
    begin = np.zeros(len(known) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, known), np.int64, len(known)), out=begin[1:])
    return np.frombuffer(bytearray().join(known), np.uint8), begin


@njit
def ensure_room(data: Bytes8, used: int, need: int) -> Bytes8:
    """A buffer with room for `need` bytes; the first `used` are kept."""
    if need <= data.shape[0]:
        return data
    larger = np.empty(2 * need, np.uint8)
    larger[:used] = data[:used]
    return larger


@njit
def gather(data: Bytes8, spans: Spans) -> tuple[Bytes8, Ints]:
    """The values of the spans, concatenated, and where each ends."""
    ends = np.cumsum(spans.end - spans.begin)
    out = np.empty(ends[-1] if ends.shape[0] else 0, np.uint8)
    at = 0
    for i in range(ends.shape[0]):
        at = put_bytes(out, at, data, spans.begin[i], ends[i] - at)
    return out, ends


def to_bytes_list(data: Bytes8, ends: Ints) -> list[bytes]:
    """Concatenated byte strings as objects; `ends` are their ends."""
    offsets = np.concatenate([np.zeros(1, np.int64), ends])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    found: list[bytes] = pa.Array.from_buffers(pa.large_binary(), len(ends), buffers).to_pylist()
    return found


class NumberedValues(NamedTuple):
    """Numbered values; equal values have the same number."""

    numbers: Ints
    first: Ints
    """By number: the first value that has it."""


@njit
def number_values(data: Bytes8, spans: Spans, kinds: Ints) -> NumberedValues:
    """Number distinct values in order of first occurrence; values of different kinds differ.

    Open addressing with linear probing. `table` has at least twice as many places as there are
    values, so a free one is always found; it maps a place to the number of a value.
    """
    count = spans.begin.shape[0]
    size = 16
    while size < 2 * count:
        size *= 2
    table = np.full(size, -1, np.int64)
    numbers, first = np.empty(count, np.int64), np.empty(count, np.int64)
    hashes = np.empty(count, np.uint64)
    found = 0
    for i in range(count):
        hashed = _hash(data, spans.begin[i], spans.end[i], kinds[i])
        place = np.int64(hashed >> np.uint64(20)) & (size - 1)
        while table[place] >= 0:
            other = first[table[place]]
            if (
                hashes[table[place]] == hashed
                and kinds[other] == kinds[i]
                and is_same(
                    data, spans.begin[i], spans.end[i], spans.begin[other], spans.end[other]
                )
            ):
                break
            place = (place + 1) & (size - 1)
        if table[place] < 0:
            table[place], first[found], hashes[found] = found, i, hashed
            found += 1
        numbers[i] = table[place]
    return NumberedValues(numbers, first[:found].copy())


@njit
def _hash(data: Bytes8, at: int, end: int, kind: int) -> np.uint64:
    """FNV-1a with a final mix, because places are taken from the middle bits."""
    hashed = np.uint64(0xCBF29CE484222325) ^ np.uint64(kind)
    for i in range(at, end):
        hashed = (hashed ^ np.uint64(data[i])) * np.uint64(0x100000001B3)
    return (hashed ^ (hashed >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
