"""A home in memory, for a Hub without a directory."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from penstock.arguments import lease_length
from penstock.errors import CorruptionError, EventError, HomeError, LockedError
from penstock.storage.frames import RawEntry, encode_frame, kind_bits, record
from penstock.storage.interfaces import (
    DEFAULT_BUCKETS,
    BatchHeader,
    Entry,
    QuarantinedEvent,
    Record,
    RecordKind,
    already_published,
    check_follows,
    check_range,
)
from penstock.storage.log_tail import LogTail, held_tail
from penstock.storage.owner_key import new_owner_key

APPEND_LOCK_SECONDS = 30.0  # as for the log on disk


class MemoryLog:
    """Frames in a list. Safe for threads, like the log on disk."""

    def __init__(self) -> None:
        self._frames: list[list[RawEntry]] = []
        self._firsts: list[int] = []
        self._kinds: list[int] = []
        self._end = 0
        self._append_lock = threading.Lock()

    @property
    def end(self) -> int:
        return self._end

    @property
    def compacted_to(self) -> int:
        return 0

    def read(
        self, start: int, end: int | None = None, kinds: frozenset[RecordKind] | None = None
    ) -> Iterator[Record]:
        frames = self.frames(start, end, kinds)
        return (
            record(first + i, entry)
            for first, entries in frames
            for i, entry in enumerate(entries)
            if kinds is None or entry[0] in kinds
        )

    def frames(
        self, start: int, end: int | None = None, kinds: frozenset[RecordKind] | None = None
    ) -> Iterator[tuple[int, list[RawEntry]]]:
        wanted = check_range(start, end, self._end, "memory")
        return self._read_frames(start, wanted, -1 if kinds is None else kind_bits(kinds))

    def _read_frames(
        self, start: int, end: int, kinds: int
    ) -> Iterator[tuple[int, list[RawEntry]]]:
        index = max(0, bisect_right(self._firsts, start) - 1)
        while index < len(self._firsts) and self._firsts[index] < end:
            if self._kinds[index] & kinds:
                first = self._firsts[index]
                entries = self._frames[index][max(0, start - first) : end - first]
                if entries:
                    yield max(first, start), entries
            index += 1

    def append(self, entries: Sequence[Entry]) -> int:
        with self.appending() as tail:
            return tail.append(entries)

    @contextmanager
    def appending(self) -> Iterator[LogTail]:
        if not self._append_lock.acquire(timeout=APPEND_LOCK_SECONDS):
            raise LockedError("another thread keeps the log locked")
        try:
            with held_tail(self._append, self._end) as tail:
                yield tail
        finally:
            self._append_lock.release()

    def frame_boundary(self, start: int, max_records: int, max_bytes: int | None = None) -> int:
        end = self._end
        check_range(start, None, end, "memory")
        target = start + max(1, max_records)
        boundary = end
        if target < end:
            boundary = self._firsts[bisect_right(self._firsts, target) - 1]
        if max_bytes is not None:
            boundary = min(boundary, self._boundary_within(start, max_bytes))
        if boundary > start:
            return boundary
        index = bisect_right(self._firsts, start)
        return self._firsts[index] if index < len(self._firsts) else end

    def _boundary_within(self, start: int, max_bytes: int) -> int:
        """The end of the frames from the one with `start` on that have at most `max_bytes`
        bytes."""
        for index in range(max(0, bisect_right(self._firsts, start) - 1), len(self._firsts)):
            max_bytes -= sum(len(body) for _, body in self._frames[index])
            if max_bytes < 0:
                return self._firsts[index]
        return self._end

    def _append(self, entries: Sequence[Entry]) -> int:
        first = self._end
        encode_frame(first, entries)  # the same limits as on disk
        # The end is moved last: readers in other threads see only complete frames.
        self._frames.append([(int(kind), body) for kind, body in entries])
        self._kinds.append(kind_bits({kind for kind, _ in entries}))
        self._firsts.append(first)
        self._end = first + len(entries)
        return first


class MemoryQuarantine:
    def __init__(self) -> None:
        self._events: dict[int, QuarantinedEvent] = {}

    def add(self, events: Sequence[QuarantinedEvent]) -> None:
        self._events.update({event.offset: event for event in events})

    def entries(self, start: int = 0, end: int | None = None) -> Iterator[QuarantinedEvent]:
        for offset in sorted(self._events):
            if offset >= start and (end is None or offset < end):
                yield self._events[offset]

    def get(self, offset: int) -> QuarantinedEvent:
        event = self._events.get(offset)
        if event is None:
            raise EventError(f"no event of offset {offset} is in quarantine")
        return event


class MemoryMessageLog:
    """Batches in a list."""

    def __init__(self) -> None:
        self._batches: list[tuple[BatchHeader, list[bytes]]] = []
        self._quarantine = MemoryQuarantine()

    @property
    def quarantine(self) -> MemoryQuarantine:
        return self._quarantine

    @property
    def base(self) -> BatchHeader | None:
        return None

    @property
    def frontier(self) -> BatchHeader | None:
        return self._batches[-1][0] if self._batches else None

    def batches(self, after: BatchHeader | None = None) -> Iterator[BatchHeader]:
        for header, _ in list(self._batches):
            if after is None or (header.start, header.end) > (after.start, after.end):
                yield header

    def read(self, header: BatchHeader) -> list[bytes]:
        published = self._find(header)
        if published is None or published[0] != header:
            raise CorruptionError(f"batch {header} is not in the message log")
        return list(published[1])

    def publish(
        self, header: BatchHeader, messages: Sequence[bytes], bad: Sequence[QuarantinedEvent] = ()
    ) -> None:
        published = self._find(header)
        if published is not None:
            if published != (header, list(messages)):
                raise already_published(header, "memory")
            return
        check_follows(self.frontier, header, "memory")
        self._quarantine.add(bad)
        self._batches.append((header, list(messages)))

    def _find(self, header: BatchHeader) -> tuple[BatchHeader, list[bytes]] | None:
        place = (header.start, header.end)
        index = bisect_right(self._batches, place, key=lambda b: (b[0].start, b[0].end)) - 1
        if index < 0 or (self._batches[index][0].start, self._batches[index][0].end) != place:
            return None
        return self._batches[index]


class MemoryHome:
    """A home that lives as long as the process."""

    def __init__(self, *, default_lease_seconds: float | None = None) -> None:
        self.log = MemoryLog()
        self.messages = MemoryMessageLog()
        self.catalog_db: Path | None = None
        self.registry_db: Path | None = None
        self.shared = False
        self.buckets = DEFAULT_BUCKETS
        if default_lease_seconds is not None:
            default_lease_seconds = lease_length(default_lease_seconds, HomeError)
        self.default_lease_seconds = default_lease_seconds
        self._owner_key = new_owner_key()
        self._processing = threading.Lock()
        self._processor = ""

    def owner_key(self) -> str:
        return self._owner_key

    @property
    def quarantine(self) -> MemoryQuarantine:
        return self.messages.quarantine

    @contextmanager
    def processing_lock(self, who: str) -> Iterator[None]:
        if not self._processing.acquire(blocking=False):
            raise LockedError(f"{self._processor} is working on this home")
        self._processor = who
        try:
            yield
        finally:
            self._processing.release()
