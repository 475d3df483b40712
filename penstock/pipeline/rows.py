"""The rows that flow between the stages of the pipeline, all of one schema.

A stage reads rows of some kinds and writes rows of others; Spark moves them by bucket. Bodies are
packed values, because Spark has no business in them.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import pyarrow as pa

from penstock.errors import ChangeError
from penstock.packing import pack, unpack

if TYPE_CHECKING:
    import pandas as pd

BUCKETS = 8
"""State is kept by bucket, so that a batch touches few state keys, and a bucket is one task's
work. A checkpoint that was begun with this number can only go on with it."""

ROW_SCHEMA = "bucket int, offset long, step int, kind int, body binary"

ARROW_SCHEMA = pa.schema(
    [
        ("bucket", pa.int32()),
        ("offset", pa.int64()),
        ("step", pa.int32()),
        ("kind", pa.int32()),
        ("body", pa.binary()),
    ]
)


class RowKind(IntEnum):
    HEADER = 0
    """What the batch covers: once per batch, from the source and again to the sink."""
    EVENT = 1
    """A publisher's bytes, as they are in the log."""
    TICK = 2
    """The header, once for every bucket of a stateful stage."""
    CHANGE = 3
    """An event that fits the catalog, on the way to the bucket of its row."""
    SEED = 4
    """A row that a new edge must know, on the way to the bucket of its group."""
    STEP = 5
    """What a change does to a group, on the way to the bucket of that group."""
    MESSAGE = 6
    BAD = 7
    """An event that cannot be applied, with the reason."""


class StageRow(NamedTuple):
    """One row, without its bucket. Rows of a stage are processed in this order."""

    offset: int
    step: int
    kind: int
    body: bytes


class Span(NamedTuple):
    """What one batch covers: the header of its rows.

    The records [start, end) are processed for the subscriptions before `active`. The batch before
    was processed for those before `previous`. Those from `told` on have no content yet.
    """

    start: int
    end: int
    active: int
    previous: int
    told: int

    def to_bytes(self) -> bytes:
        return pack(self)

    @classmethod
    def from_bytes(cls, body: bytes) -> Span:
        return cls(*unpack(body))


class Reason(NamedTuple):
    """Why an event cannot be applied. Its bytes are in the log, at the offset of the row."""

    primary: str
    detail: str
    hint: str

    @classmethod
    def of(cls, error: ChangeError) -> Reason:
        return cls(error.primary, error.detail, error.hint)

    def to_bytes(self) -> bytes:
        return pack(self)

    @classmethod
    def from_bytes(cls, body: bytes) -> Reason:
        return cls(*unpack(body))


class RowBuffer:
    """Rows on their way out of a stage, column by column."""

    def __init__(self) -> None:
        self._buckets: list[int] = []
        self._offsets: list[int] = []
        self._steps: list[int] = []
        self._kinds: list[int] = []
        self._bodies: list[bytes] = []

    def __len__(self) -> int:
        return len(self._bodies)

    def add(self, bucket: int, kind: RowKind, offset: int, body: bytes, step: int = 0) -> None:
        self._buckets.append(bucket)
        self._offsets.append(offset)
        self._steps.append(step)
        self._kinds.append(kind)
        self._bodies.append(body)

    def to_arrow(self) -> pa.RecordBatch:
        columns = (self._buckets, self._offsets, self._steps, self._kinds, self._bodies)
        arrays = [pa.array(c, f.type) for c, f in zip(columns, ARROW_SCHEMA, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=ARROW_SCHEMA)

    def to_pandas(self) -> pd.DataFrame:
        return self.to_arrow().to_pandas()


def bucket_of(key: bytes) -> int:
    """Where a packed key lives: the same in every process and on every machine."""
    return crc32(key) % BUCKETS


def rows_of_batch(batch: pa.RecordBatch) -> Iterable[StageRow]:
    """The rows of an Arrow batch."""
    names = ("offset", "step", "kind", "body")
    return map(StageRow, *(batch.column(name).to_pylist() for name in names))


def rows_of_frames(frames: Iterable[pd.DataFrame]) -> list[StageRow]:
    """All rows of some data frames, in order."""
    rows: list[StageRow] = []
    for frame in frames:
        columns = (frame[name].tolist() for name in ("offset", "step", "kind"))
        rows += map(StageRow, *columns, map(bytes, frame["body"]))
    return sorted(rows)
