"""Input and output of stages: rows by kind and partition.

Rows are objects, or packed *chunks* of many rows of one kind for one partition. Stages in the plain
gear read and write objects, kernels read and write chunks, and either can follow the other. Within
one process objects are passed on unpacked; runners that move rows between processes pack them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from zlib import crc32

import numpy as np
import numpy.typing as npt

from penstock.catalog import RowKey
from penstock.flow.kinds import Events, Kind, Span, StageRow
from penstock.flow.row_codec import decode_rows, group_place, pack_rows, row_place
from penstock.messages import AnyMessage, Encoded, encode_messages
from penstock.spaces import Edge, JoinValue

if TYPE_CHECKING:  # imports kernels
    from penstock.joins import StepsByEdge
    from penstock.kernels.packed_values import Packed

CHUNK_ROWS = 4096
CHUNK_BYTES = 16 << 20  # 16 MiB: far from Spark's limit of 2 GiB; one row may have 64 MiB
STEPS_AT_ONCE = 256
"""Maximum steps per row: a group may have all steps of a batch, and row size must be bounded."""

Offsets: TypeAlias = npt.NDArray[np.int64]
Chunk: TypeAlias = tuple[int, bytes]
"""The number of rows, and the packed rows."""
ChunkRow: TypeAlias = tuple[int, int, int, bytes]
"""Partition, kind, number of rows, packed rows: what a runner moves between processes."""


class Spread:
    """Assigns rows to the partitions of keyed stages, the same in every process."""

    def __init__(self, buckets: tuple[int, ...]) -> None:
        self.buckets = buckets
        """The numbers of the partitions."""
        self._is_single = len(buckets) == 1

    def of_row(self, relation: str, key: RowKey) -> int:
        return self.buckets[0] if self._is_single else self._of(row_place(relation, key))

    def of_group(self, edge: Edge, value: JoinValue) -> int:
        return self.buckets[0] if self._is_single else self._of(group_place(edge, value))

    def of_number(self, number: int) -> int:
        """For rows that could go to any partition: round robin."""
        return self.buckets[number % len(self.buckets)]

    def phase(self, bucket: int) -> float:
        """A fraction of 1, different for each partition, to stagger periodic work."""
        return self.buckets.index(bucket) / len(self.buckets)

    def _of(self, place: bytes) -> int:
        return self.buckets[crc32(place) % len(self.buckets)]


SINGLE = Spread((0,))


class PackedMessages(NamedTuple):
    """Messages that kernels have written, in order; steps may all be the same."""

    offsets: Offsets
    steps: Offsets | int
    messages: Packed


class EncodedMessages(NamedTuple):
    """Messages encoded from objects, in any order."""

    runs: list[Encoded]


WrittenMessages: TypeAlias = PackedMessages | EncodedMessages


class StageInput:
    """The input of one partition of a stage in one batch, by kind."""

    def __init__(self, bucket: int, span: Span, events: Events | None = None) -> None:
        self.bucket = bucket
        self.span = span
        self.events = events or Events([], [])
        self.written: list[WrittenMessages] = []
        self._rows: defaultdict[int, list[Any]] = defaultdict(list)
        self._chunks: defaultdict[int, list[Chunk]] = defaultdict(list)

    @classmethod
    def of_chunks(cls, chunks: Iterable[ChunkRow]) -> StageInput:
        """The rows of one partition, or of all of them, as received from other processes. Each
        partition has a tick."""
        given = cls(0, _NO_SPAN)
        for bucket, kind, count, chunk in chunks:
            given.bucket = bucket
            given._chunks[kind].append((count, bytes(chunk)))
        ticks = {row.body for row in given.unpacked(Kind.TICK)}
        if len(ticks) == 1:
            given.span = Span.from_bytes(*ticks)
        return given

    def has_span(self) -> bool:
        return self.span is not _NO_SPAN

    def put(self, kind: Kind, rows: list[Any]) -> None:
        self._rows[kind] += rows

    def rows(self, kind: Kind) -> list[Any]:
        """Rows in order, of the type that `penstock.flow.kinds` defines for the kind."""
        rows = self.unpacked(kind)
        rows.sort()
        return rows

    def unpacked(self, kind: Kind) -> list[Any]:
        """Rows in any order."""
        found = list(self._rows[kind])
        for _, chunk in self._chunks[kind]:
            found += decode_rows(kind, chunk)
        return found

    def chunks(self, kind: Kind) -> list[Chunk]:
        """Rows as packed chunks."""
        return [*self._chunks[kind], *pack_chunks(kind, self._rows[kind])]

    def count(self, kind: Kind) -> int:
        packed = sum(count for count, _ in self._chunks[kind])
        return packed + len(self._rows[kind])

    @property
    def size(self) -> int:
        """The number of events and rows of all kinds."""
        return len(self.events.offsets) + sum(map(self.count, Kind))

    def replace(self, kind: Kind, rows: list[Any]) -> StageInput:
        """A copy with other rows of one kind."""
        other = StageInput(self.bucket, self.span, self.events)
        other._rows.update(self._rows)
        other._chunks.update(self._chunks)
        other._rows[kind], other._chunks[kind] = rows, []
        return other


_NO_SPAN = Span(0, 0, 0, 0, 0)


class StageOutput:
    """The output of a stage, by kind and partition."""

    def __init__(self, spread: Spread) -> None:
        self.spread = spread
        self._rows: defaultdict[tuple[int, int], list[Any]] = defaultdict(list)
        self._chunks: list[ChunkRow] = []
        self.written: list[tuple[int, WrittenMessages]] = []
        """Messages as bytes, by partition."""

    def add(self, bucket: int, kind: Kind, offset: int, body: Any) -> None:
        self._rows[bucket, kind].append(StageRow(offset, 0, body))

    def rows(self, bucket: int, kind: Kind) -> list[Any]:
        """The list to which rows of one kind are appended."""
        return self._rows[bucket, kind]

    def add_steps(self, kind: Kind, steps: StepsByEdge) -> None:
        """Send steps to the partitions of their groups."""
        for edge, groups in steps.items():
            for value, mine in groups.items():
                rows = self._rows[self.spread.of_group(edge, value), kind]
                for first in range(0, len(mine), STEPS_AT_ONCE):
                    rows.append((edge.name, value, mine[first : first + STEPS_AT_ONCE]))

    def add_messages(self, bucket: int, messages: Iterable[AnyMessage]) -> None:
        self._rows[bucket, Kind.MESSAGE].extend(messages)

    def add_packed(self, kind: Kind, rows: Packed, places: npt.NDArray[np.uint32]) -> None:
        """Add packed rows; `places` are their key hashes modulo the number of partitions,
        ascending."""
        buckets = self.spread.buckets
        ends = np.cumsum(np.bincount(places, minlength=len(buckets))).tolist()
        for bucket, start, stop in zip(buckets, [0, *ends], ends, strict=False):
            for first, last in rows.pieces(CHUNK_ROWS, CHUNK_BYTES, start, stop):
                self.add_chunk(bucket, kind, last - first, rows.array(first, last))

    def add_packed_messages(
        self, bucket: int, offsets: Offsets, steps: Offsets | int, messages: Packed
    ) -> None:
        """Add messages written by kernels, in order; an integer `steps` holds for all of them."""
        if len(messages):
            self.written.append((bucket, PackedMessages(offsets, steps, messages)))

    def add_chunk(self, bucket: int, kind: Kind, count: int, chunk: bytes) -> None:
        self._chunks.append((bucket, int(kind), count, chunk))

    def pass_on(self, given: StageInput, kinds: Iterable[Kind]) -> None:
        """Forward rows of these kinds unchanged."""
        for kind in kinds:
            if rows := given._rows.get(kind):
                self._rows[given.bucket, kind] += rows
            for chunk in given._chunks.get(kind, ()):
                self.add_chunk(given.bucket, kind, *chunk)
        if Kind.MESSAGE in kinds:
            self.written += [(given.bucket, one) for one in given.written]

    def encode_messages(self) -> None:
        """Encode messages here, so that a fault is attributed to the stage that emitted them."""
        for bucket in self.spread.buckets:
            messages = self._rows.pop((bucket, Kind.MESSAGE), None)
            if messages:
                self.written.append((bucket, EncodedMessages(list(encode_messages(messages)))))

    def message_bytes(self) -> Iterator[bytes]:
        """All messages, in any order, after `encode_messages`."""
        for _, written in self.written:
            if isinstance(written, EncodedMessages):
                for _, _, bodies in written.runs:
                    yield from bodies
            else:
                data, ends = written.messages.data, written.messages.ends.tolist()
                for start, end in pairwise([0, *ends]):
                    yield data[start:end].tobytes()

    def extend(self, other: StageOutput) -> None:
        for place, rows in other._rows.items():
            self._rows[place] += rows
        self._chunks += other._chunks
        self.written += other.written

    def chunks(self) -> Iterator[ChunkRow]:
        """All rows, packed, except messages, which must be encoded before."""
        yield from self._chunks
        for (bucket, kind), rows in self._rows.items():
            for chunk in pack_chunks(Kind(kind), rows):
                yield (bucket, kind, *chunk)

    def inputs(self, span: Span) -> Mapping[int, StageInput]:
        """The input of the next stage in the same process, by partition, unpacked."""
        found = {bucket: StageInput(bucket, span) for bucket in self.spread.buckets}
        for (bucket, kind), rows in self._rows.items():
            found[bucket]._rows[kind] = rows
        for bucket, kind, count, chunk in self._chunks:
            found[bucket]._chunks[kind].append((count, chunk))
        for bucket, written in self.written:
            found[bucket].written.append(written)
        return found


def pack_chunks(kind: Kind, rows: list[Any], most: int = CHUNK_ROWS) -> Iterator[Chunk]:
    """Rows in chunks of bounded size, with the number of rows in each."""
    for first in range(0, len(rows), most):
        part = rows[first : first + most]
        chunk = pack_rows(kind, part)
        if len(chunk) <= CHUNK_BYTES or len(part) == 1:
            yield len(part), chunk
        else:
            yield from pack_chunks(kind, part, (len(part) + 1) // 2)
