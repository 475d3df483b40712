"""Rows between the stages: what one gear writes, the other reads, whatever the types of columns."""

from __future__ import annotations

import math
from collections import Counter
from zlib import crc32

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.catalog import (
    BooleanType,
    Column,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    Relation,
    Row,
    StringType,
    TimestampType,
    ValueType,
)
from penstock.flow.changes import Checked, Delta, Op
from penstock.flow.columnar.json_kernels import OPS
from penstock.flow.columnar.layout import form_of
from penstock.flow.group_steps import EdgeSteps
from penstock.flow.kinds import Kind
from penstock.flow.packed.change_table import read_changes
from penstock.flow.packed.delta_steps import packed_steps
from penstock.flow.packed.rows import PackedDeltas
from penstock.flow.row_codec import change_row, decode_rows, group_place
from penstock.joins import GroupSteps
from penstock.joins.packed.steps_codec import SentSteps
from penstock.kernels.byte_spans import NOWHERE, Spans, concat
from penstock.packing import pack, unpack
from penstock.spaces import Edge, Side

WIDE = 10**38 - 1
VALUES: dict[ValueType, st.SearchStrategy[object]] = {
    IntegerType(): st.integers(-(2**63), 2**63 - 1) | st.integers(0, 2),
    DoubleType(): st.floats() | st.sampled_from([0.0, -0.0, math.nan, math.inf]),
    DecimalType(9, 2): st.integers(-999_999_999, 999_999_999) | st.integers(0, 200),
    DecimalType(38, 10): st.integers(-WIDE, WIDE) | st.integers(0, 2).map(lambda n: n * 10**10),
    BooleanType(): st.booleans(),
    StringType(): st.text(max_size=40) | st.sampled_from("ab"),
    DateType(): st.integers(-700_000, 2_900_000) | st.integers(0, 2),
    TimestampType(): st.integers(-(2**55), 2**55) | st.integers(0, 2),
}
COLUMNS = tuple(Column(f"c{i}", value_type) for i, value_type in enumerate(VALUES))
RELATION = Relation("t", (Column("id", IntegerType(), False), *COLUMNS), (0,))
EVERY = tuple(range(len(RELATION.columns)))

rows: st.SearchStrategy[Row] = st.tuples(
    st.integers(0, 5), *(st.none() | values for values in VALUES.values())
)
keyed_by = st.lists(st.sampled_from(EVERY), min_size=1, max_size=3, unique=True).map(tuple)


@given(
    st.lists(st.tuples(rows, st.sampled_from(Op), st.sets(st.sampled_from(EVERY)))), st.integers(0)
)
def test_changes(asked: list[tuple[Row, Op, set[int]]], first: int) -> None:
    changes = [
        Checked(RELATION, op, RELATION.key_of(row, 0), row, tuple(sorted(given_)))
        for row, op, given_ in asked
    ]
    sent = pack([change_row(first % 2**62 + i, one) for i, one in enumerate(changes)])
    data = np.frombuffer(sent, np.uint8)
    found = read_changes(data, np.zeros(1, np.int64), len(changes))
    for i, (offset, *parts) in enumerate(decode_rows(Kind.CHANGE, sent)):
        assert found.offsets[i] == offset
        read = [
            unpack(sent[found.tables.begin[i] : found.tables.end[i]]),
            OPS[found.ops[i]],
            tuple(unpack(sent[found.keys.begin[i] : found.keys.end[i]])),
            tuple(unpack(sent[found.rows.begin[i] : found.rows.end[i]])),
            tuple(unpack(sent[found.given[i] :][: len(pack(parts[-1]))])),
        ]
        assert repr(read) == repr(parts)  # NaN is not equal to itself


@st.composite
def deltas(draw: st.DrawFn) -> list[Delta]:
    found = []
    for offset in range(draw(st.integers(0, 8))):
        old, new = draw(st.none() | rows), draw(st.none() | rows)
        if old is not None or new is not None:
            found.append(Delta(offset, RELATION, (offset % 3,), old, new))
    return found


def packed(run: list[Delta]) -> PackedDeltas:
    parts = [part for delta in run for part in (delta.key, delta.old, delta.new)]
    heap, begin = concat(b"" if part is None else pack(part) for part in parts)
    keys, old, new = (
        Spans(
            np.array([NOWHERE if parts[i] is None else begin[i] for i in which], np.int64),
            np.array([NOWHERE if parts[i] is None else begin[i + 1] for i in which], np.int64),
        )
        for which in (range(first, len(parts), 3) for first in range(3))
    )
    offsets = np.array([delta.offset for delta in run], np.int64)
    return PackedDeltas(RELATION, form_of(RELATION), heap, offsets, keys, old, new)


@given(deltas(), keyed_by, keyed_by)
def test_steps_of_groups(run: list[Delta], left: tuple[int, ...], right: tuple[int, ...]) -> None:
    """Both sides are fed by one table, so a change may take four steps."""
    edge = Edge((Side("t", left), Side("t", right)))
    groups: GroupSteps = {}
    EdgeSteps(RELATION, edge).add(run, groups)
    expected = Counter(
        repr((value, tuple(step))) for value, steps in groups.items() for step in steps
    )
    sent = packed_steps(packed(run), edge, 8)
    chunk = sent.rows.array(0, len(sent.rows))
    decoded = decode_rows(Kind.STEP, chunk)
    assert Counter(repr((v, tuple(s))) for _, v, steps in decoded for s in steps) == expected
    places = [crc32(group_place(edge, value)) % 8 for _, value, _ in decoded]
    assert sent.places.tolist() == places
    assert chunk == pack(decoded)
    if decoded:
        assert Counter(read_by_kernels(chunk, len(decoded))) == expected


def read_by_kernels(chunk: bytes, count: int) -> list[str]:
    sent = SentSteps([(count, chunk)])
    values, numbers, steps = sent.of_edge(0)
    spans = (steps.keys, steps.old, steps.new)
    return [
        repr(
            (
                tuple(unpack(chunk[values.begin[group] : values.end[group]])),
                (
                    int(steps.offsets[i]),
                    int(steps.steps[i]),
                    int(steps.sides[i]),
                    *(part(chunk, one, i) for one in spans),
                ),
            )
        )
        for i, group in enumerate(numbers.tolist())
    ]


def part(chunk: bytes, spans: Spans, i: int) -> tuple[object, ...] | None:
    if spans.begin[i] == NOWHERE:
        return None
    return tuple(unpack(chunk[spans.begin[i] : spans.end[i]]))
