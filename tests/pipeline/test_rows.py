"""Rows travel in chunks, and come out as they went in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.flow.changes import Op
from penstock.flow.exchange import (
    CHUNK_BYTES,
    CHUNK_ROWS,
    SINGLE,
    ChunkRow,
    EncodedMessages,
    StageInput,
    StageOutput,
)
from penstock.flow.kinds import Kind, Reason, Span, StageRow, StreamEvents
from penstock.joins import GroupStep
from penstock.pipeline.buckets import spread_of
from penstock.pipeline.chunks import chunk_batch, chunk_rows, staged_names
from penstock.pipeline.staging import merged

SPREAD = spread_of(8)

offsets = st.integers(0, 2) | st.integers(0, 2**63 - 1)
values = st.tuples(st.none() | st.integers(-5, 5) | st.text(max_size=3))
steps = st.builds(
    GroupStep, offsets, st.integers(0, 3), st.sampled_from([0, 1]), values, st.none(), values
)
stage_rows = st.builds(StageRow, offsets, st.just(0), st.binary(max_size=9))
ROWS_OF = {
    Kind.TICK: st.builds(StageRow, offsets, st.just(0), st.just(Span(1, 2, 0, 0, 0).to_bytes())),
    Kind.BAD: stage_rows,
    Kind.SKIPPED: stage_rows,
    Kind.FAULT: stage_rows,
    Kind.EVENTS: stage_rows,
    Kind.CHANGE: st.tuples(
        offsets, st.text(max_size=3), st.sampled_from(Op), values, values, st.just((0,))
    ),
    Kind.STEP: st.tuples(st.text(max_size=3), values, st.lists(steps, max_size=3)),
    Kind.SEED: st.tuples(st.text(max_size=3), values, st.lists(steps, max_size=3)),
    Kind.MESSAGE: st.tuples(offsets, st.integers(0, 3), st.binary(max_size=9).map(lambda b: [b])),
}


@st.composite
def a_row(draw: st.DrawFn) -> tuple[int, Kind, Any]:
    kind = draw(st.sampled_from(sorted(ROWS_OF)))
    return draw(st.sampled_from(SPREAD.buckets[:3])), kind, draw(ROWS_OF[kind])


@given(rows=st.lists(a_row()))
def test_rows_survive_the_journey(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, Kind, Any]]
) -> None:
    staging = tmp_path_factory.getbasetemp()
    out = StageOutput(SPREAD)
    for bucket, kind, row in rows:
        if kind is Kind.MESSAGE:
            out.written.append((bucket, EncodedMessages([row])))
        else:
            out.rows(bucket, kind).append(row)
    chunks = chunk_rows(out, staging)
    passed = StageOutput(SPREAD)
    passed.pass_on(StageInput.of_chunks(chunks), list(Kind))
    in_arrow = chunk_batch(out, staging).to_pylist()
    for given_rows in (
        StageInput.of_chunks(chunks),
        StageInput.of_chunks(tuple(row.values()) for row in in_arrow),
        StageInput.of_chunks(chunk_rows(passed, staging)),
    ):
        for kind in ROWS_OF:
            sent = [row for _, k, row in rows if k is kind]
            if kind is Kind.MESSAGE:
                found = merged([staging / name for name in staged_names(given_rows)])
                in_order = sorted((offset, step, body) for offset, step, (body,) in sent)
                assert found == [body for _, _, body in in_order]
            else:
                assert sorted(map(repr, given_rows.unpacked(kind))) == sorted(
                    map(repr, _as_read(kind, sent))
                )
            assert given_rows.count(kind) == len(sent)


def _as_read(kind: Kind, rows: list[Any]) -> list[Any]:
    """Steps are read as tuples of their own, which are equal to those of the sender."""
    if kind not in (Kind.STEP, Kind.SEED):
        return rows
    out = StageOutput(SINGLE)
    out.rows(0, kind).extend(rows)
    read = StageInput.of_chunks(out.chunks()).unpacked(kind)
    assert read == rows
    return read


def test_within_a_process_objects_are_handed_on_as_they_are() -> None:
    out = StageOutput(SINGLE)
    out.add(0, Kind.BAD, 3, Reason("no", "", ""))
    out.add(0, Kind.EVENTS, 4, StreamEvents("ticks", [(4, (1,))]))
    span = Span(3, 5, 0, 0, 0)
    (given_rows,) = out.inputs(span).values()
    (bad,), (events,) = given_rows.rows(Kind.BAD), given_rows.rows(Kind.EVENTS)
    assert isinstance(bad.body, Reason)
    assert isinstance(events.body, StreamEvents)
    packed = StageInput.of_chunks(out.chunks())
    assert Reason.read(packed.rows(Kind.BAD)[0].body) == bad.body
    assert StreamEvents.read(packed.rows(Kind.EVENTS)[0].body) == events.body


def test_chunks_are_bounded() -> None:
    out = StageOutput(SPREAD)
    for i in range(2 * CHUNK_ROWS + 1):
        out.add(0, Kind.BAD, i, b"")
    large = bytes(CHUNK_BYTES + 1)
    for i in range(3):
        out.add(1, Kind.BAD, i, large)
    chunks: list[ChunkRow] = list(out.chunks())
    assert sorted(count for _, _, count, _ in chunks) == [1, 1, 1, 1, CHUNK_ROWS, CHUNK_ROWS]
    assert len(StageInput.of_chunks(chunks).rows(Kind.BAD)) == 2 * CHUNK_ROWS + 4


def test_no_rows_are_a_batch_too(tmp_path: Path) -> None:
    nothing = StageOutput(SPREAD)
    assert chunk_batch(nothing, tmp_path).num_rows == 0
    assert StageInput.of_chunks(chunk_rows(nothing, tmp_path)).rows(Kind.CHANGE) == []


def test_a_span_travels_as_bytes() -> None:
    span = Span(1, 2, 3, 4, 5)
    assert Span.from_bytes(span.to_bytes()) == span
