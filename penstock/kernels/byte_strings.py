"""Kernels over parts of buffers: comparing and copying bytes."""

from __future__ import annotations

from penstock.kernels.arrays import Bytes8
from penstock.kernels.compiled import njit


@njit
def same_bytes(data: Bytes8, at: int, end: int, other: Bytes8, first: int, last: int) -> bool:
    """Whether [at, end) of one buffer equals [first, last) of another."""
    if end - at != last - first:
        return False
    for i in range(end - at):  # noqa: SIM110  # numba does not compile generators here
        if data[at + i] != other[first + i]:
            return False
    return True


@njit
def put_bytes(out: Bytes8, at: int, data: Bytes8, first: int, length: int) -> int:
    """Copy `length` bytes; returns where they end. A loop, because most copies are a few bytes and
    creating slices takes longer than copying."""
    for i in range(length):
        out[at + i] = data[first + i]
    return at + length
