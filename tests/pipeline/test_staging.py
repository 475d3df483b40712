"""Messages on their way to the sink: whoever stages them, what is published is the same bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.kernels.msgpack_bins import packed_bins, sort_stretches
from penstock.packing import pack
from penstock.pipeline.staging import merged, stage
from penstock.storage.packed_batch import PackedMessages


@given(st.lists(st.binary(max_size=20)), st.randoms(use_true_random=False))
def test_packed_bytes_are_those_of_a_list(bodies: list[bytes], chance: object) -> None:
    order = list(range(len(bodies)))
    chance.shuffle(order)  # type: ignore[attr-defined]
    assert _packed(bodies, order) == pack([bodies[i] for i in order])


@pytest.mark.parametrize("size", [0, 255, 256, 65_535, 65_536])
@pytest.mark.parametrize("count", [1, 15, 16])
def test_large_bodies_are_packed_as_well(size: int, count: int) -> None:
    bodies = [bytes([i]) * size for i in range(count)]
    assert _packed(bodies, list(range(count))) == pack(bodies)


@pytest.mark.parametrize("count", [65_535, 65_536])
def test_many_bodies_are_packed_as_well(count: int) -> None:
    bodies = [i.to_bytes(3) for i in range(count)]
    assert _packed(bodies, list(range(count))[::-1]) == pack(bodies[::-1])


def _packed(bodies: list[bytes], order: list[int]) -> bytes:
    ends = np.cumsum([0, *map(len, bodies)]).astype(np.int64)
    data = np.frombuffer(b"".join(bodies), np.uint8)
    return bytes(packed_bins(data, ends, np.array(order, np.int64)))


@given(st.lists(st.binary(max_size=3), max_size=40), st.data())
def test_stretches_are_sorted_by_bytes(bodies: list[bytes], drawn: st.DataObject) -> None:
    cuts = sorted(drawn.draw(st.lists(st.integers(0, len(bodies)), max_size=6)))
    if len(cuts) % 2:
        del cuts[-1]
    order = np.array(drawn.draw(st.permutations(range(len(bodies)))), np.int64)
    expected = order.tolist()
    for first, last in zip(cuts[::2], cuts[1::2], strict=True):
        expected[first:last] = sorted(expected[first:last], key=lambda i: bodies[i])
    ends = np.cumsum([0, *map(len, bodies)]).astype(np.int64)
    data = np.frombuffer(b"".join(bodies), np.uint8)
    sort_stretches(data, ends, order, np.array(cuts[::2], int), np.array(cuts[1::2], int))
    assert [bodies[i] for i in order] == [bodies[i] for i in expected]


positions = st.tuples(st.integers(0, 3), st.integers(0, 2))
runs = st.tuples(positions, st.lists(st.binary(max_size=3), min_size=1, max_size=4))


@given(files=st.lists(st.lists(runs, min_size=1, max_size=6), max_size=3))
def test_messages_are_merged_by_position_and_bytes(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[tuple[tuple[int, int], list[bytes]]]],
) -> None:
    staging = tmp_path_factory.getbasetemp()
    paths: list[Path] = [
        staging / stage([(*at, sorted(bodies)) for at, bodies in file], staging) for file in files
    ]
    each = sorted((*at, body) for file in files for at, bodies in file for body in bodies)
    found = merged(paths)
    assert list(found) == [body for _, _, body in each]
    assert bytes(found.packed) == PackedMessages.of([body for _, _, body in each]).packed


def test_packed_messages_are_like_a_list() -> None:
    messages = PackedMessages.of([b"a", b"", b"ccc"])
    assert messages == [b"a", b"", b"ccc"]
    assert messages != [b"a"]
    assert (len(messages), messages[2], messages[:2]) == (3, b"ccc", [b"a", b""])
    assert PackedMessages.of(messages) is messages
