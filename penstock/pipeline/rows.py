"""The rows that flow between the stages of the pipeline.

A stage reads rows of some kinds and writes rows of others; Spark moves them by bucket. Spark never
looks into them, and spends ten times longer on a row than we do. So what it gets are *chunks*: many
rows of one kind for one bucket, packed. Bodies of rows are packed values themselves.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import msgspec
import pyarrow as pa

from penstock.errors import ChangeError
from penstock.packing import pack, unpack

if TYPE_CHECKING:
    import pandas as pd

BUCKETS = 8
"""State is kept by bucket, so that a batch touches few state keys, and a bucket is one task's
work. A checkpoint that was begun with this number can only go on with it."""

CHUNK_ROWS = 4096
CHUNK_BYTES = 1 << 20  # 1 MiB: far from Spark's limit of 2 GiB, even with one row of 64 MiB on top

CHUNK_SCHEMA = "bucket int, kind int, count int, chunk binary"

ARROW_SCHEMA = pa.schema(
    [
        ("bucket", pa.int32()),
        ("kind", pa.int32()),
        ("count", pa.int32()),
        ("chunk", pa.binary()),
    ]
)

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[int, int, bytes]]).decode


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
    """Rows on their way out of a stage, in chunks that fill up one after the other."""

    def __init__(self) -> None:
        self._open: dict[tuple[int, int], _Chunk] = {}
        self._full: list[tuple[int, int, _Chunk]] = []
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def add(self, bucket: int, kind: RowKind, offset: int, body: bytes, step: int = 0) -> None:
        chunk = self._open.get((bucket, kind))
        if chunk is None:
            chunk = self._open[bucket, kind] = _Chunk()
        chunk.rows.append((offset, step, body))
        chunk.body_bytes += len(body)
        self._rows += 1
        if chunk.body_bytes > CHUNK_BYTES or len(chunk.rows) >= CHUNK_ROWS:
            self._full.append((bucket, kind, self._open.pop((bucket, kind))))

    def to_arrow(self) -> pa.RecordBatch:
        chunks = [*self._full, *((b, k, chunk) for (b, k), chunk in self._open.items())]
        columns: tuple[list[object], ...] = (
            [bucket for bucket, _, _ in chunks],
            [kind for _, kind, _ in chunks],
            [len(chunk.rows) for _, _, chunk in chunks],
            [_encode(chunk.rows) for _, _, chunk in chunks],
        )
        arrays = [pa.array(c, f.type) for c, f in zip(columns, ARROW_SCHEMA, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=ARROW_SCHEMA)

    def to_pandas(self) -> pd.DataFrame:
        return self.to_arrow().to_pandas()


class _Chunk:
    __slots__ = ("body_bytes", "rows")

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, bytes]] = []
        self.body_bytes = 0


def bucket_of(key: bytes) -> int:
    """Where a packed key lives: the same in every process and on every machine."""
    return crc32(key) % BUCKETS


def rows_of_batch(batch: pa.RecordBatch) -> list[StageRow]:
    """The rows in an Arrow batch of chunks."""
    return _rows(batch.column("kind").to_pylist(), batch.column("chunk").to_pylist())


def rows_of_frames(frames: Iterable[pd.DataFrame]) -> list[StageRow]:
    """All rows in data frames of chunks, in order."""
    rows: list[StageRow] = []
    for frame in frames:
        rows += _rows(frame["kind"].tolist(), frame["chunk"].tolist())
    return sorted(rows)


def _rows(kinds: list[int], chunks: list[bytes]) -> list[StageRow]:
    return [
        StageRow(offset, step, kind, body)
        for kind, chunk in zip(kinds, chunks, strict=True)
        for offset, step, body in _decode(chunk)
    ]
