"""The shuffle rows between the stages of the flow.

Spark never looks into a row, and its cost per row is ten times ours. So a shuffle row is a *chunk*:
many rows of one kind for one bucket, packed together. Messages are not shuffled: they are staged in
files, and only the file names travel (`penstock.pipeline.staging`).
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from penstock.flow.exchange import ChunkRow, EncodedMessages, Spread, StageInput, StageOutput
from penstock.flow.kinds import Kind, Span
from penstock.pipeline.staging import stage, stage_packed

ARROW_SCHEMA = pa.schema(
    [
        ("bucket", pa.int32()),
        ("kind", pa.int32()),
        ("count", pa.int32()),
        ("chunk", pa.binary()),
    ]
)


def ticks(span: Span, spread: Spread) -> StageOutput:
    """The rows that announce a batch to every partition; once per batch."""
    out = StageOutput(spread)
    for bucket in spread.buckets:
        out.add(bucket, Kind.TICK, span.start, span.to_bytes())
    return out


def chunk_rows(out: StageOutput, staging: Path) -> list[ChunkRow]:
    """The output as shuffle rows. Messages must be encoded already; they are staged in files."""
    chunks = list(out.chunks())
    for bucket, written in out.written:
        if isinstance(written, EncodedMessages):
            count = sum(len(bodies) for _, _, bodies in written.runs)
            name = stage(written.runs, staging)
        else:
            offsets, steps, messages = written
            count = len(messages)
            name = stage_packed(offsets, steps, messages.to_arrow(), staging)
        chunks.append((bucket, int(Kind.MESSAGE), count, name.encode()))
    return chunks


def chunk_batch(out: StageOutput, staging: Path) -> pa.RecordBatch:
    chunks = chunk_rows(out, staging)
    columns = zip(*chunks, strict=True) if chunks else ((), (), (), ())
    arrays = [pa.array(c, f.type) for c, f in zip(columns, ARROW_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW_SCHEMA)


def staged_names(given: StageInput) -> list[str]:
    """The files in which messages are staged."""
    return [name.decode() for _, name in given.chunks(Kind.MESSAGE)]
