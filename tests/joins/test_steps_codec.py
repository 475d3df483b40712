"""Packed steps: what kernels read is what was packed, and what they write is read back plainly."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.flow.kinds import Kind
from penstock.flow.row_codec import decode_rows
from penstock.joins import GroupStep
from penstock.joins.packed import SentSteps
from penstock.joins.packed.steps_codec import (
    CHANGES,
    ENTERS,
    LEAVES,
    DeltaRows,
    DeltaSteps,
    pack_steps,
)
from penstock.kernels.byte_spans import NOWHERE, Spans, concat, gather, to_bytes_list
from penstock.kernels.packed_values import Packed
from penstock.packing import pack, unpack, unpack_tuple

values = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=40)
rows = st.lists(values, min_size=1, max_size=4).map(tuple)
keys = st.tuples(st.integers(-(2**40), 2**40))
offsets = st.integers(0, 2**62)
steps = st.builds(
    GroupStep, offsets, st.integers(0, 5), st.integers(0, 1), keys, st.none() | rows, rows
)
runs = st.tuples(st.sampled_from(["e", "long" * 20]), keys, st.lists(steps, max_size=5))


@given(st.lists(runs, max_size=8), st.integers(0, 8))
def test_kernels_read_what_was_packed(
    sent: list[tuple[str, tuple[int], list[GroupStep]]], cut: int
) -> None:
    chunks = [(len(part), pack(part)) for part in (sent[:cut], sent[cut:])]
    expected: dict[tuple[str, tuple[int]], list[GroupStep]] = defaultdict(list)
    for name, value, mine in sent:
        expected[name, value] += mine
    read = SentSteps(chunks)
    assert set(read.edges) == {name for name, _, _ in sent}
    found: dict[tuple[str, tuple[int]], list[GroupStep]] = defaultdict(list)
    for number, name in enumerate(read.edges):
        where, groups, table = read.of_edge(number)
        joined_by = [unpack_tuple(one) for one in to_bytes_list(*gather(read.data, where))]
        parts = (table.keys, table.old, table.new)
        for i, group in enumerate(groups.tolist()):
            key, old, new = (
                unpack_tuple(read.data[one.begin[i] : one.end[i]].tobytes())
                if one.begin[i] != NOWHERE
                else None
                for one in parts
            )
            assert key is not None
            position = (table.offsets[i], table.steps[i], table.sides[i])
            found[name, joined_by[group]].append(GroupStep(*map(int, position), key, old, new))
    for group, mine in expected.items():
        assert sorted(map(repr, found[group])) == sorted(map(repr, mine))
        at = [(step.offset, step.step) for step in found[group]]
        assert at == sorted(at)


@given(
    st.lists(
        st.tuples(offsets, keys, rows, rows, st.sampled_from([LEAVES, ENTERS, CHANGES])), max_size=9
    ),
    st.integers(1, 4),
)
def test_what_kernels_write_is_read_back(
    changes: list[tuple[int, tuple[int], tuple[object, ...], tuple[object, ...], int]], size: int
) -> None:
    heap, begin = concat(pack(part) for _, *parts, _ in changes for part in parts)
    key, old, new = (Spans(begin[:-1][i::3].copy(), begin[1:][i::3].copy()) for i in range(3))
    count, value = len(changes), pack((7, "x"))
    data = np.frombuffer(bytearray(value), np.uint8)
    kinds = np.array([kind for *_, kind in changes], np.int64)
    every = np.arange(count)
    made = DeltaSteps(
        every,
        every % 2,
        kinds,
        1 + every,
        data,
        Spans(np.zeros(count, np.int64), np.full(count, len(data))),
    )
    at = np.array([offset for offset, *_ in changes], np.int64)
    ends = np.array([*range(0, count, size), count] if count else [0], np.int64)
    name = np.frombuffer(pack("edge"), np.uint8)
    packed = Packed(*pack_steps(DeltaRows(heap, at, key, old, new), made, every, ends, name))
    found = decode_rows(Kind.STEP, packed.array(0, len(packed)))
    assert [(edge, group) for edge, group, _ in found] == [("edge", (7, "x"))] * len(found)
    assert [tuple(step) for _, _, some in found for step in some] == [
        (offset, 1 + i, i % 2, k, o if kind != ENTERS else None, n if kind != LEAVES else None)
        for i, (offset, k, o, n, kind) in enumerate(changes)
    ]
    assert all(len(some) <= size for _, _, some in found)
    assert unpack(value) == [7, "x"]
