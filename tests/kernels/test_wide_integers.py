"""Integers of 128 bits are packed, read and written as Python does it."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.catalog import DecimalType
from penstock.kernels.wide_integers import (
    MOST_DECIMAL_BYTES,
    MOST_WIDE_BYTES,
    put_decimal_text,
    put_wide,
    wide_at,
)
from penstock.packing import pack

MOST = 10**38 - 1
EDGES = [
    sign * (2**bits + more)
    for bits in (0, 7, 8, 31, 32, 62, 63, 64, 65, 71, 72, 95, 96, 119, 120, 126)
    for more in (-1, 0, 1)
    for sign in (-1, 1)
    if abs(2**bits + more) <= MOST
]
wide = st.sampled_from(EDGES) | st.integers(-MOST, MOST) | st.integers(-1000, 1000)


def words(value: int) -> tuple[int, int]:
    low = value & (2**64 - 1)
    return value >> 64, low - 2**64 if low >= 2**63 else low


def room(count: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.full(count, 0xC1, np.uint8)


@example(MOST)
@example(-MOST)
@given(wide)
def test_packed_as_by_msgspec_and_read_again(value: int) -> None:
    out = room(MOST_WIDE_BYTES + 1)
    end = put_wide(out, 1, *words(value))
    assert out[1:end].tobytes() == pack(value)
    assert wide_at(out, 1) == words(value)


@example(0, 38)
@example(MOST, 0)
@example(-1, 38)
@example(-1000, 2)
@given(wide, st.integers(0, 38))
def test_decimals_are_joined_by_the_same_text(value: int, scale: int) -> None:
    out = room(MOST_DECIMAL_BYTES)
    end = put_decimal_text(out, 0, *words(value), scale)
    assert out[:end].tobytes() == pack(DecimalType(38, scale).join_key(value))
