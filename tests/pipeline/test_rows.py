"""Rows travel in chunks, and come out as they went in."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.pipeline.rows import (
    BUCKETS,
    CHUNK_BYTES,
    CHUNK_ROWS,
    Inbox,
    RowBuffer,
    RowKind,
    Span,
    StageRow,
    bucket_of,
)
from penstock.pipeline.told import merged_bodies

kinds = st.sampled_from(RowKind)
some_rows = st.lists(
    st.tuples(
        st.integers(0, 3),
        kinds,
        st.integers(0, 2) | st.integers(0, 2**63 - 1),
        st.binary(max_size=9),
    )
)


@given(rows=some_rows)
def test_rows_survive_the_journey(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, RowKind, int, bytes]]
) -> None:
    staging = tmp_path_factory.getbasetemp()
    out = RowBuffer()
    for bucket, kind, offset, body in rows:
        out.add(bucket, kind, offset, body, step=bucket)
    batch = out.to_arrow(staging)
    passed = RowBuffer()
    passed.forward(0, Inbox.of_batches([batch]), *RowKind)
    for inbox in (
        Inbox.of_batches([batch]),
        Inbox.of_frames([out.to_pandas(staging)]),
        Inbox.of_batches([passed.to_arrow(staging)]),
    ):
        for kind in RowKind:
            sent = sorted(StageRow(offset, b, body) for b, k, offset, body in rows if k is kind)
            if kind is RowKind.MESSAGE:
                found = merged_bodies([staging / name for name in inbox.staged()])
                assert found == [row.body for row in sent]
            else:
                assert inbox.rows(kind) == sent
    assert len(out) == len(rows) == sum(batch.column("count").to_pylist())
    assert batch.num_rows == len({(bucket, kind) for bucket, kind, _, _ in rows})


def test_chunks_are_bounded(tmp_path: Path) -> None:
    out = RowBuffer()
    for i in range(2 * CHUNK_ROWS + 1):
        out.add(0, RowKind.CHANGE, i, b"")
    large = bytes(CHUNK_BYTES + 1)
    for i in range(3):
        out.add(1, RowKind.CHANGE, i, large)
    batch = out.to_arrow(tmp_path)
    assert sorted(batch.column("count").to_pylist()) == [1, 1, 1, 1, CHUNK_ROWS, CHUNK_ROWS]
    assert len(Inbox.of_batches([batch]).rows(RowKind.CHANGE)) == 2 * CHUNK_ROWS + 4


def test_no_rows_are_a_batch_too(tmp_path: Path) -> None:
    assert Inbox.of_batches([RowBuffer().to_arrow(tmp_path)]).rows(RowKind.CHANGE) == []
    assert Inbox.of_frames([RowBuffer().to_pandas(tmp_path)]).rows(RowKind.CHANGE) == []
    assert Inbox.of_frames([]).rows(RowKind.CHANGE) == []


def test_buckets_do_not_depend_on_the_process() -> None:
    """They are part of every checkpoint: these values must never change."""
    assert [bucket_of(f"key {i}".encode()) for i in range(10)] == [1, 7, 5, 3, 0, 6, 4, 2, 3, 5]
    assert {bucket_of(bytes([i])) for i in range(100)} == set(range(BUCKETS))


def test_a_span_travels_as_bytes() -> None:
    span = Span(1, 2, 3, 4, 5)
    assert Span.from_bytes(span.to_bytes()) == span
