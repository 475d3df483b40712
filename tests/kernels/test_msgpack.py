"""MessagePack by kernels is MessagePack by msgspec, byte for byte."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.kernels.msgpack_bins import packed_bins
from penstock.kernels.msgpack_read import array_start, integer_at, text_start, value_end
from penstock.kernels.msgpack_write import MOST_BYTES, put_array, put_integer, put_text
from penstock.packing import array_header, pack

EDGES = [sign * 2**n + more for n in range(63) for more in (-1, 0, 1) for sign in (-1, 1)]
integers = st.sampled_from(EDGES) | st.integers(-(2**63), 2**63 - 1)
LENGTHS = [0, 1, 15, 16, 17, 31, 32, 255, 256, 65535, 65536, 70_000]
lengths = st.sampled_from(LENGTHS) | st.integers(0, 300)


@example(-(2**63))
@example(2**63 - 1)
@given(integers)
def test_integers(value: int) -> None:
    out = np.full(MOST_BYTES + 1, 0xC1, np.uint8)
    end = put_integer(out, 1, value)
    assert out[1:end].tobytes() == pack(value)
    assert integer_at(out, 1) == value
    assert value_end(out, 1) == end


@given(lengths)
def test_starts_of_arrays(length: int) -> None:
    out = np.full(MOST_BYTES, 0xC1, np.uint8)
    end = put_array(out, 0, length)
    assert out[:end].tobytes() == array_header(length)
    assert array_header(length) + pack(None) * length == pack([None] * length)
    assert array_start(out, 0) == (length, end)


@given(lengths, st.sampled_from(["x", "é", "\U0001f600"]))
def test_texts(length: int, letter: str) -> None:
    letters = np.frombuffer((letter * length).encode(), np.uint8)
    out = np.full(MOST_BYTES + len(letters), 0xC1, np.uint8)
    end = put_text(out, 0, letters, 0, len(letters))
    assert out[:end].tobytes() == pack(letter * length)
    assert out[text_start(out, 0) : end].tobytes() == letters.tobytes()
    assert value_end(out, 0) == end


@example([b"x" * n for n in LENGTHS])
@given(st.lists(st.binary(max_size=300), max_size=20))
def test_arrays_of_byte_strings(values: list[bytes]) -> None:
    data = np.frombuffer(b"".join(values), np.uint8)
    ends = np.cumsum([0, *map(len, values)], dtype=np.int64)
    order = np.arange(len(values), dtype=np.int64)[::-1].copy()
    assert bytes(packed_bins(data, ends, order)) == pack(values[::-1])
