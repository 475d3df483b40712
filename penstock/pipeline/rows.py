"""The rows that flow between the stages of the pipeline.

A stage reads rows of some kinds and writes rows of others; Spark moves them by bucket. Spark never
looks into them, and spends ten times longer on a row than we do. So what it gets are *chunks*: many
rows of one kind for one bucket, packed at once. Bodies are opaque bytes or tuples of plain values
(`penstock.pipeline.shuffle_codec`). Messages do not travel at all: they go into files, whose names
travel (`penstock.pipeline.staging`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar
from zlib import crc32

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.errors import ChangeError
from penstock.packing import pack, unpack
from penstock.pipeline.staging import stage, stage_packed

if TYPE_CHECKING:
    from penstock.kernels.packed_values import Packed

T = TypeVar("T")

BUCKETS = (0, 1, 2, 5, 6, 12, 15, 25)
"""State is kept by bucket, so that a batch touches few state keys. These numbers Spark deals out
evenly to 2, 4 or 8 partitions; from 0 to 7 it would give five to one of two. A checkpoint that was
begun with them can only go on with them (`penstock.pipeline.offsets.LAYOUT`)."""

CHUNK_ROWS = 4096
CHUNK_BYTES = 16 << 20  # 16 MiB: far from Spark's limit of 2 GiB; one row may have 64 MiB

CHUNK_SCHEMA = "bucket int, kind int, count int, chunk binary"

ARROW_SCHEMA = pa.schema(
    [
        ("bucket", pa.int32()),
        ("kind", pa.int32()),
        ("count", pa.int32()),
        ("chunk", pa.binary()),
    ]
)


class RowKind(IntEnum):
    HEADER = 0
    """What the batch covers, to the sink."""
    TICK = 2
    """The same, once for every bucket of a stateful stage."""
    CHANGE = 3
    """An event that fits the catalog, on the way to the bucket of its row."""
    SEED = 4
    """A row that a new edge must know, on the way to the bucket of its group."""
    STEP = 5
    """What a change does to a group, on the way to the bucket of that group."""
    MESSAGE = 6
    """Messages; what travels is the name of the file in which they are staged."""
    BAD = 7
    """An event that cannot be applied, with the reason."""
    EVENTS = 8
    """Events of a stream that are done with, on the way to where they are kept."""
    SKIPPED = 9
    """An event that asks for no change; it is counted."""
    FAULT = 10
    """A record that leads to a fault, and is to be set aside; or a fault of the fast path that the
    plain one did without."""


class StageRow(NamedTuple):
    """One row, without its bucket and kind. Rows of one kind are processed in this order."""

    offset: int
    step: int
    body: bytes


AnyRow: TypeAlias = tuple[Any, ...]
"""A `StageRow`, or one of those of `penstock.pipeline.shuffle_codec`, or a run of messages."""

Offsets: TypeAlias = npt.NDArray[np.int64]
ChunkRow: TypeAlias = tuple[int, int, int, bytes]
"""What Spark calls a row: bucket, kind, number of our rows, and the chunk of them."""

_decode = msgspec.msgpack.Decoder(list[StageRow]).decode


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
        return cls(*error.reason())

    def to_bytes(self) -> bytes:
        return pack(self)

    @classmethod
    def from_bytes(cls, body: bytes) -> Reason:
        return cls(*unpack(body))


class StageOutput:
    """Rows on their way out of a stage."""

    def __init__(self) -> None:
        self._rows: defaultdict[tuple[int, int], list[AnyRow]] = defaultdict(list)
        self._chunks: list[ChunkRow] = []
        self._told: list[tuple[int, Offsets, Offsets | int, Packed]] = []

    def __len__(self) -> int:
        told = sum(len(packed) for *_, packed in self._told)
        chunks = sum(count for _, _, count, _ in self._chunks)
        rows = sum(_count(kind, rows) for (_, kind), rows in self._rows.items())
        return rows + chunks + told

    def add(self, bucket: int, kind: RowKind, offset: int, body: object, step: int = 0) -> None:
        self._rows[bucket, kind].append((offset, step, body))

    @property
    def has_tick(self) -> bool:
        return any(kind == RowKind.TICK for _, kind in self._rows)

    def rows(self, bucket: int, kind: RowKind) -> list[AnyRow]:
        """Where to put many rows of one kind."""
        return self._rows[bucket, kind]

    def forward(self, bucket: int, inbox: StageInput, *kinds: RowKind) -> None:
        """Send rows on without looking at them."""
        for kind in kinds:
            for count, chunk in inbox.chunks(kind):
                self.add_chunk(bucket, kind, count, chunk)

    def add_chunk(self, bucket: int, kind: RowKind, count: int, chunk: bytes) -> None:
        """Add rows that are packed already."""
        self._chunks.append((bucket, int(kind), count, chunk))

    def deal(self, kind: RowKind, rows: Packed, places: npt.NDArray[np.uint32]) -> None:
        """Add packed rows whose keys have these hashes, modulo the number of buckets, by which they
        are sorted."""
        ends = np.cumsum(np.bincount(places, minlength=len(BUCKETS))).tolist()
        for bucket, start, stop in zip(BUCKETS, [0, *ends], ends, strict=False):
            for first, last in rows.pieces(CHUNK_ROWS, CHUNK_BYTES, start, stop):
                self.add_chunk(bucket, kind, last - first, rows.array(first, last))

    def tell(self, bucket: int, offsets: Offsets, steps: Offsets | int, messages: Packed) -> None:
        """Add messages that are packed already, in order; steps may all be the same."""
        self._told.append((bucket, offsets, steps, messages))

    def to_rows(self, staging: Path) -> list[ChunkRow]:
        """The rows as Spark gets them; messages are put into files in the directory."""
        chunks = list(self._chunks)
        for bucket, offsets, steps, told in self._told:
            if len(told):
                name = stage_packed(offsets, steps, told.to_arrow(), staging).encode()
                chunks.append((bucket, int(RowKind.MESSAGE), len(told), name))
        for (bucket, kind), rows in self._rows.items():
            if kind == RowKind.MESSAGE:
                if rows:
                    name = stage(rows, staging).encode()
                    chunks.append((bucket, int(kind), _count(kind, rows), name))
            else:
                chunks += [(bucket, int(kind), *packed) for packed in _packed(rows)]
        return chunks

    def to_arrow(self, staging: Path) -> pa.RecordBatch:
        chunks = self.to_rows(staging)
        columns = zip(*chunks, strict=True) if chunks else ((), (), (), ())
        arrays = [pa.array(c, f.type) for c, f in zip(columns, ARROW_SCHEMA, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=ARROW_SCHEMA)


def _count(kind: int, rows: list[AnyRow]) -> int:
    """Of messages, those of one position are one row of a buffer."""
    return sum(len(row[2]) for row in rows) if kind == RowKind.MESSAGE else len(rows)


def _packed(rows: list[AnyRow], most: int = CHUNK_ROWS) -> Iterator[tuple[int, bytes]]:
    """Rows in chunks of limited size, and how many there are in each."""
    for first in range(0, len(rows), most):
        part = rows[first : first + most]
        chunk = pack(part)
        if len(chunk) <= CHUNK_BYTES or len(part) == 1:
            yield len(part), chunk
        else:
            yield from _packed(part, (len(part) + 1) // 2)


class StageInput:
    """The rows that a stage gets, by kind; unpacked when they are asked for."""

    def __init__(self) -> None:
        self._chunks: defaultdict[int, list[tuple[int, bytes]]] = defaultdict(list)

    @classmethod
    def of_rows(cls, rows: Iterable[ChunkRow]) -> StageInput:
        inbox = cls()
        for _, kind, count, chunk in rows:
            inbox._chunks[kind].append((count, bytes(chunk)))
        return inbox

    def rows(self, kind: RowKind) -> list[StageRow]:
        """Rows whose bodies are bytes, in order."""
        return self.decoded(kind, _decode)

    def decoded(self, kind: RowKind, decode: Callable[[bytes], list[T]]) -> list[T]:
        """Rows whose chunks are read in this way, in order."""
        rows = self.unpacked(kind, decode)
        rows.sort()
        return rows

    def unpacked(self, kind: RowKind, decode: Callable[[bytes], list[T]]) -> list[T]:
        """The same, in any order."""
        return [row for _, chunk in self._chunks[kind] for row in decode(chunk)]

    def staged(self) -> list[str]:
        """The names of the files with messages."""
        return [name.decode() for _, name in self._chunks[RowKind.MESSAGE]]

    def count(self, kind: RowKind) -> int:
        return sum(count for count, _ in self._chunks[kind])

    def chunks(self, kind: RowKind) -> list[tuple[int, bytes]]:
        return self._chunks[kind]

    def replaced(self, kind: RowKind, rows: list[AnyRow]) -> StageInput:
        """The same with other rows of one kind."""
        inbox = StageInput()
        inbox._chunks.update(self._chunks)
        inbox._chunks[kind] = list(_packed(rows))
        return inbox


def bucket_of(key: bytes) -> int:
    """Where a packed key lives: the same in every process and on every machine."""
    return BUCKETS[crc32(key) % len(BUCKETS)]
