"""Kernels that write the parts of messages, byte for byte as `penstock.messages.wire` would."""

from __future__ import annotations

import numpy as np

from penstock.kernels.arrays import Bytes8, Ints
from penstock.kernels.byte_strings import put_bytes
from penstock.kernels.compiled import njit
from penstock.kernels.msgpack_read import array_start, value_end
from penstock.kernels.msgpack_write import put_array, put_integer
from penstock.messages import SIMPLE_START

_START = np.frombuffer(SIMPLE_START, np.uint8)


@njit
def put_start(out: Bytes8, at: int) -> int:
    """The bytes before the offset of a message."""
    return put_array(out, put_bytes(out, at, _START, 0, len(_START)), 2)


@njit
def put_old(out: Bytes8, at: int, heap: Bytes8, row: int, columns: Ints) -> int:
    """The old values in a message: column numbers and values of a removed row, ascending."""
    at = put_array(out, at, columns.shape[0])
    value, passed = array_start(heap, row)[1], 0
    for column in columns:
        for _ in range(passed, column):
            value = value_end(heap, value)
        end, passed = value_end(heap, value), column + 1
        at = put_integer(out, put_array(out, at, 2), column)
        at = put_bytes(out, at, heap, value, end - value)
        value = end
    return at
