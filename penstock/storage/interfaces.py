"""The interfaces of the log, the message log and the home, on disk and in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Annotated, Protocol, TypeAlias

import msgspec

from penstock.arguments import MAX_OFFSET
from penstock.errors import CompactedError, CorruptionError, HomeError


class RecordKind(IntEnum):
    EVENT = 1
    """A publisher's bytes, not parsed: `penstock.flow.events` describes the formats."""
    DDL = 2
    """A CREATE TABLE, CREATE STREAM or CREATE OPERATOR statement."""
    SUBSCRIBE = 3
    WITHDRAW = 4
    REPLAY = 5
    """The next record is a replayed quarantined event; names the offset it had."""
    REPLAN = 6
    """Changes the decomposition of a subscription."""
    TAKEN = 7
    """The records after it, in the same frame, are events of a file; says which file and how
    many."""
    RENEW = 8
    """Extends the lease of a subscription."""
    SET_ASIDE = 9
    """An earlier record led to a fault and is not processed."""
    LOST = 10
    """Occupies the offset of a record that was acknowledged and lost (`penstock rebuild
    --accept-loss`), so that it is not reused. Has no other meaning."""


@dataclass(frozen=True, slots=True)
class Record:
    offset: int
    kind: RecordKind
    body: bytes


Offset: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_OFFSET)]
"""An offset or an id in the body of a record, within what SQLite and the files can hold."""
UNREADABLE_BODY = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of decoding the body of a record that another release, or another program, wrote."""

Entry: TypeAlias = tuple[RecordKind, bytes]
"""A record that has no offset yet."""

DEFAULT_BUCKETS = 8
"""For homes whose marker does not say how many buckets the pipeline uses."""
MAX_BUCKETS = 64
"""Each stateful stage runs Python once per bucket and batch; 64 serve 64 cores."""

CONTROL_KINDS = frozenset(RecordKind) - {RecordKind.EVENT}


class Tail(Protocol):
    """The end of a log while nobody else can append to it."""

    @property
    def end(self) -> int: ...

    def append(self, entries: Sequence[Entry]) -> int:
        """Write the records as one frame, all or none; returns the offset of the first one."""


class RecordLog(Protocol):
    """An ordered, append-only sequence of records, in frames that were appended as one.

    Any number of threads and processes may read and append at the same time; appends are
    serialised. A record that was read, or whose append returned, is on disk and keeps its offset.
    """

    @property
    def end(self) -> int:
        """The first offset not yet written."""

    @property
    def compacted_to(self) -> int:
        """Events before this offset were compacted: only those remain that the rows at this offset
        come from, possibly rewritten. The log up to it leads to the same tables, but not through
        the same intermediate states."""

    def read(
        self, start: int, end: int | None = None, kinds: frozenset[RecordKind] | None = None
    ) -> Iterator[Record]:
        """The records of [start, end), or up to the current end; only those kinds, if given."""

    def frames(
        self, start: int, end: int | None = None, kinds: frozenset[RecordKind] | None = None
    ) -> Iterator[tuple[int, list[tuple[int, bytes]]]]:
        """The same records in bulk: for each frame its first offset and its (kind, body) pairs.

        Frames are cut to [start, end). `kinds` skips frames that hold none of them, but does not
        filter inside a frame.
        """

    def append(self, entries: Sequence[Entry]) -> int:
        """Append the records as one frame, durable when this returns; returns the first one's
        offset."""

    def appending(self) -> AbstractContextManager[Tail]:
        """Exclude other writers, to validate against the whole log and then append."""

    def frame_boundary(self, start: int, max_records: int, max_bytes: int | None = None) -> int:
        """Where a batch that begins at `start` should end: after whole frames, at least one if
        there is one, with at most `max_records` records and `max_bytes` bytes unless the first
        frame alone has more."""


def check_range(start: int, end: int | None, log_end: int, name: object) -> int:
    """The end to read up to. A range beyond the log's end means that the log has lost records."""
    wanted = log_end if end is None else end
    if max(start, wanted) > log_end:
        raise CorruptionError(
            f"the log ends at offset {log_end}, but offset {max(start, wanted)} was reached before",
            detail=f"records are missing at the end of {name}",
            hint="restore the missing segments from a backup",
        )
    if start < 0 or wanted < start:
        raise HomeError(f"[{start}, {wanted}) is not a range of offsets")
    return wanted


@dataclass(frozen=True, slots=True, order=True)
class BatchHeader:
    """One batch: the records [start, end) were processed, for the subscriptions whose record is
    before `active` and that were not withdrawn before it."""

    start: int
    end: int
    active: int

    def __str__(self) -> str:
        return f"[{self.start}, {self.end})"


@dataclass(frozen=True, slots=True)
class QuarantinedEvent:
    """An event that could not be applied: its offset, its bytes, and the reason."""

    offset: int
    raw: bytes
    primary: str
    detail: str
    hint: str


class QuarantineStore(Protocol):
    def entries(self, start: int = 0, end: int | None = None) -> Iterator[QuarantinedEvent]:
        """All events that were refused, or those of [start, end), in order of their offsets."""

    def get(self, offset: int) -> QuarantinedEvent:
        """The event of that offset; EventError if it is not in quarantine."""


class BatchLog(Protocol):
    """The message log: the published batches, each complete or absent.

    Batches are contiguous: each starts where the one before ended.
    """

    @property
    def frontier(self) -> BatchHeader | None:
        """The last batch."""

    @property
    def base(self) -> BatchHeader | None:
        """The first batch, if it replaces earlier ones: it holds the contents that they led to."""

    @property
    def quarantine(self) -> QuarantineStore: ...

    def batches(self, after: BatchHeader | None = None) -> Iterator[BatchHeader]:
        """The batches, or those after `after`, in order."""

    def read(self, header: BatchHeader) -> list[bytes]:
        """The messages of one batch."""

    def publish(
        self, header: BatchHeader, messages: Sequence[bytes], bad: Sequence[QuarantinedEvent] = ()
    ) -> None:
        """Add a batch atomically. Repeating it with the same content changes nothing."""


def already_published(header: BatchHeader, where: object) -> CorruptionError:
    return CorruptionError(
        f"batch {header} is already published with other content",
        detail=f"in {where}",
        hint="the same records must give the same messages: was the home restored in part?",
    )


def check_follows(frontier: BatchHeader | None, header: BatchHeader, where: object) -> None:
    if header.start > header.end:
        raise HomeError(f"{header} is not a batch")
    if frontier is not None and header.start != frontier.end:
        raise HomeError(
            f"batch {header} does not follow the message log, which ends at {frontier.end}",
            detail=f"in {where}",
            hint="the checkpoint and the message log are of different ages: was the home restored "
            "in part?",
        )


def compacted_away(offset: int, compacted_to: int) -> CompactedError:
    return CompactedError(
        f"what changed between offsets {offset} and {compacted_to} is no longer there",
        detail=f"the home was compacted up to offset {compacted_to}",
        hint="start again from the content",
    )


class AnyHome(Protocol):
    """The directory of one Penstock instance, or its in-memory counterpart."""

    @property
    def log(self) -> RecordLog: ...

    @property
    def messages(self) -> BatchLog: ...

    @property
    def quarantine(self) -> QuarantineStore: ...

    @property
    def catalog_db(self) -> Path | None:
        """The file of the catalog; None keeps it in memory."""

    @property
    def registry_db(self) -> Path | None:
        """The file of the registry; None keeps it in memory."""

    @property
    def default_lease_seconds(self) -> float | None:
        """The default lease of subscriptions; None: until they are withdrawn."""

    def owner_key(self) -> str:
        """The secret that gives full access to the home's subscriptions, and keys the hashes of
        tickets."""

    @property
    def shared(self) -> bool:
        """Whether processes on several machines use it, which share files but no memory."""

    @property
    def buckets(self) -> int:
        """How many buckets the pipeline keeps its state in."""

    def processing_lock(self, who: str) -> AbstractContextManager[object]:
        """The exclusive right to turn log records into messages; LockedError names the holder."""
