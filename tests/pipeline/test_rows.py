"""Rows travel in chunks, and come out as they went in."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.pipeline.rows import (
    CHUNK_BYTES,
    CHUNK_ROWS,
    RowKind,
    Span,
    StageInput,
    StageOutput,
    StageRow,
)
from penstock.pipeline.staging import merged

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
    out = StageOutput()
    for bucket, kind, offset, body in rows:
        of_kind = [body] if kind is RowKind.MESSAGE else body
        out.add(bucket, kind, offset, of_kind, step=bucket)
    chunks = out.to_rows(staging)
    passed = StageOutput()
    passed.forward(0, StageInput.of_rows(chunks), *RowKind)
    in_arrow = out.to_arrow(staging).to_pylist()
    for inbox in (
        StageInput.of_rows(chunks),
        StageInput.of_rows(tuple(row.values()) for row in in_arrow),
        StageInput.of_rows(passed.to_rows(staging)),
    ):
        for kind in RowKind:
            sent = sorted(StageRow(offset, b, body) for b, k, offset, body in rows if k is kind)
            if kind is RowKind.MESSAGE:
                found = merged([staging / name for name in inbox.staged()])
                assert found == [row.body for row in sent]
            else:
                assert inbox.rows(kind) == sent
    assert len(out) == len(rows) == sum(count for _, _, count, _ in chunks)
    assert len(chunks) == len({(bucket, kind) for bucket, kind, _, _ in rows})


def test_chunks_are_bounded(tmp_path: Path) -> None:
    out = StageOutput()
    for i in range(2 * CHUNK_ROWS + 1):
        out.add(0, RowKind.CHANGE, i, b"")
    large = bytes(CHUNK_BYTES + 1)
    for i in range(3):
        out.add(1, RowKind.CHANGE, i, large)
    chunks = out.to_rows(tmp_path)
    assert sorted(count for _, _, count, _ in chunks) == [1, 1, 1, 1, CHUNK_ROWS, CHUNK_ROWS]
    assert len(StageInput.of_rows(chunks).rows(RowKind.CHANGE)) == 2 * CHUNK_ROWS + 4


def test_no_rows_are_a_batch_too(tmp_path: Path) -> None:
    assert StageOutput().to_arrow(tmp_path).num_rows == 0
    assert StageInput.of_rows(StageOutput().to_rows(tmp_path)).rows(RowKind.CHANGE) == []


def test_a_span_travels_as_bytes() -> None:
    span = Span(1, 2, 3, 4, 5)
    assert Span.from_bytes(span.to_bytes()) == span
