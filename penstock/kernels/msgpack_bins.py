"""Kernels that sort byte strings and pack them as one MessagePack array, as `penstock.packing`
would."""

from __future__ import annotations

import numpy as np

from penstock.kernels.arrays import Bytes8, Ints
from penstock.kernels.compiled import njit
from penstock.kernels.msgpack_write import put_array, put_marked

MOST_MARK_BYTES = 5
"""Maximum size of the header of a byte string, and of the array."""

_BIN_8, _BIN_16, _BIN_32 = 0xC4, 0xC5, 0xC6


def packed_bins(data: Bytes8, ends: Ints, order: Ints) -> memoryview:
    """The packed array of the byte strings that are concatenated in `data`, in the given order.

    `ends` has one number more than there are strings: where the first begins, and where each ends.
    """
    assert len(ends) > 0
    assert not len(order) or int(order.max()) < len(ends) - 1
    room = int(ends[-1] - ends[0]) + MOST_MARK_BYTES * (len(order) + 1)
    out = np.empty(room, np.uint8)
    return out.data[: _pack_bins(data, ends, order, out)]


@njit
def _pack_bins(data: Bytes8, ends: Ints, order: Ints, out: Bytes8) -> int:
    at = put_array(out, 0, order.shape[0])
    for i in order:
        begin, size = ends[i], ends[i + 1] - ends[i]
        if size < 1 << 8:
            at = put_marked(out, at, _BIN_8, size, 1)
        elif size < 1 << 16:
            at = put_marked(out, at, _BIN_16, size, 2)
        else:
            at = put_marked(out, at, _BIN_32, size, 4)
        out[at : at + size] = data[begin : begin + size]
        at += size
    return at


@njit
def sort_stretches(data: Bytes8, ends: Ints, order: Ints, begin: Ints, end: Ints) -> None:
    """Sort the ranges `begin[i] : end[i]` of `order`, numbers of byte strings, by their bytes."""
    scratch = np.empty(order.shape[0], np.int64)
    for i in range(begin.shape[0]):
        _sort(data, ends, order[begin[i] : end[i]], scratch)


@njit
def _sort(data: Bytes8, ends: Ints, some: Ints, scratch: Ints) -> None:
    """Bottom-up merge sort; `scratch` is at least as long as `some`."""
    count, size = some.shape[0], 1
    while size < count:
        for left in range(0, count - size, 2 * size):
            middle, right = left + size, min(left + 2 * size, count)
            i, k = left, middle
            for at in range(left, right):
                if k == right or (i < middle and not _is_less(data, ends, some[k], some[i])):
                    scratch[at] = some[i]
                    i += 1
                else:
                    scratch[at] = some[k]
                    k += 1
            some[left:right] = scratch[left:right]
        size *= 2


@njit
def _is_less(data: Bytes8, ends: Ints, one: int, other: int) -> bool:
    here, there = ends[one], ends[other]
    size, other_size = ends[one + 1] - here, ends[other + 1] - there
    for i in range(min(size, other_size)):
        if data[here + i] != data[there + i]:
            return bool(data[here + i] < data[there + i])
    return bool(size < other_size)
