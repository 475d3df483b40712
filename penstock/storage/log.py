"""The log: everything that ever happened to a home, in order, on disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import LockedError
from penstock.storage.acknowledged import read_acknowledged, write_acknowledged
from penstock.storage.disk import os_errors
from penstock.storage.file_store import LOCAL_FILES
from penstock.storage.frames import MAX_FRAME_RECORDS, RawEntry, encode_frame, kind_bits, record
from penstock.storage.interfaces import Entry, Record, RecordKind, check_range
from penstock.storage.log_tail import LogTail, held_tail
from penstock.storage.segment_files import SegmentFiles
from penstock.storage.witnesses import Witness, check_witnesses

SEGMENT_BYTES = (
    64 << 20
)  # 64 MiB: about 400,000 small frames, whose headers are read in half a second
APPEND_LOCK_SECONDS = 30.0  # far longer than any append; a writer that holds it longer hangs

_LOCK_NAME = "append.lock"


class Log:
    """Segment files in a directory, each named by the offset of its first record.

    Threads and processes may read while others append. Each reader caches the positions of frames
    and extends them; only the last file ever grows.
    """

    def __init__(
        self,
        directory: Path,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        witnesses: Callable[[], Iterable[Witness]] = tuple,
    ) -> None:
        """`witnesses` returns what else knows how far the log went; called now and then."""
        self.directory = directory
        self._witnesses = witnesses
        self._is_checked = False  # against the witnesses
        self._segments = SegmentFiles(directory, segment_bytes)
        self._guard = threading.RLock()

    # -- reading ----------------------------------------------------------------------------------

    @property
    def end(self) -> int:
        with self._guard:
            self._segments.refresh()
            return self._segments.end

    @property
    def compacted_to(self) -> int:
        with self._guard:
            self._segments.refresh()
            return self._segments.compacted_to

    @property
    def lock_path(self) -> Path:
        return self.directory / _LOCK_NAME

    @property
    def acknowledged(self) -> int | None:
        """An offset before which all records were once on disk; None if unknown.

        Segments truncated at the end of a frame look like a shorter log. This offset detects that.
        After a power failure it may be older, never newer.
        """
        return read_acknowledged(self.lock_path)

    @property
    def reached(self) -> int:
        """How far the log went, according to the witness that knows most."""
        end, known = self._with_mark(self._witnesses())
        return max(end, *(one.offset for one in known))

    def check_end(self) -> None:
        """CorruptionError if records are missing that were acknowledged, or that something in the
        home was derived from. Their offsets must not be reused."""
        check_witnesses(*self._with_mark(self._witnesses()), self.directory)
        self._is_checked = True

    def _with_mark(self, witnesses: Iterable[Witness]) -> tuple[int, list[Witness]]:
        # Read the witnesses first: records appended meanwhile are no loss.
        known, acknowledged = list(witnesses), self.acknowledged
        if acknowledged is not None:
            known.append(Witness(acknowledged, "were acknowledged"))
        return self.end, known

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
        known = self._segments.end
        if end is None or max(start, end) > known:
            known = self.end
        wanted = check_range(start, end, known, self.directory)
        return self._frames(start, wanted, -1 if kinds is None else kind_bits(kinds))

    def frame_boundary(self, start: int, max_records: int, max_bytes: int | None = None) -> int:
        with self._guard:
            self._segments.refresh()
            end = self._segments.end
            check_range(start, None, end, self.directory)
            if start == end:
                return end
            target = start + max(1, max_records)
            boundary = end if target >= end else self._segments.at(target).boundary_before(target)
            if max_bytes is not None:
                boundary = min(boundary, self._boundary_within(start, max_bytes))
            return boundary if boundary > start else self._segments.at(start).boundary_after(start)

    def _boundary_within(self, start: int, max_bytes: int) -> int:
        """The end of the frames from `start` on that have at most `max_bytes` bytes."""
        while start < self._segments.end:
            segment = self._segments.at(start)
            start, taken = segment.boundary_within(start, max_bytes)
            if start < segment.end:
                break
            max_bytes -= taken
        return start

    def _frames(self, start: int, end: int, kinds: int) -> Iterator[tuple[int, list[RawEntry]]]:
        while start < end:
            with self._guard:
                segment = self._segments.at(start)
                segment_end = segment.end
            yield from segment.frames(start, min(end, segment_end), kinds)
            start = segment_end

    # -- appending --------------------------------------------------------------------------------

    def append(self, entries: Sequence[Entry]) -> int:
        with self.appending() as tail:
            return tail.append(entries)

    @contextmanager
    def appending(self) -> Iterator[LogTail]:
        with LOCAL_FILES.lock(self.lock_path, APPEND_LOCK_SECONDS, self._locked()):
            self._check_before_appending()
            with held_tail(self._append, self.end) as tail:
                yield tail

    def _locked(self) -> LockedError:
        return LockedError(
            "another process keeps the log locked",
            detail=f"waited {APPEND_LOCK_SECONDS:g} seconds for {self.lock_path}",
            hint="look for a penstock process that hangs",
        )

    def _check_before_appending(self) -> None:
        """The acknowledged offset is compared every time. All witnesses are asked once, and again
        as long as there is no acknowledged offset: another process's append may not have written
        one."""
        if self._is_checked and self.acknowledged is not None:
            check_witnesses(*self._with_mark(()), self.directory)
        else:
            self.check_end()

    def fill(self, to: int) -> int:
        """Append records of kind LOST up to an offset; returns how many. Only for `accept_loss`:
        the one append that is allowed although the log has lost its end."""
        filled = 0
        with LOCAL_FILES.lock(self.lock_path, APPEND_LOCK_SECONDS, self._locked()):
            while (missing := to - self.end) > 0:
                some = min(missing, MAX_FRAME_RECORDS)
                self._append([(RecordKind.LOST, b"")] * some, mark=to)
                filled += some
        return filled

    def roll(self) -> int:
        """Begin a new segment, unless the last one is empty; returns the offset at which it
        begins."""
        with self.appending() as tail, self._guard, os_errors("append", self.directory):
            firsts = self._segments.firsts
            if firsts and firsts[-1] < tail.end:
                self._segments.begin_segment()
            return tail.end

    def replace_beginning(self, content: bytes) -> None:
        """Replace all segments that a compacted one covers. Only for the holder of the home's
        processing lock; it must end where another segment begins."""
        with self._guard, os_errors("compact the log", self.directory):
            self._segments.replace_beginning(content)

    def sweep(self) -> None:
        """Remove what a crash left behind; only for the holder of the home's processing lock."""
        with self._guard, os_errors("tidy the log", self.directory):
            self._segments.sweep()

    def segment_firsts(self) -> list[int]:
        """Where the segments begin."""
        with self._guard:
            self._segments.refresh()
            return self._segments.firsts

    def _append(self, entries: Sequence[Entry], mark: int = 0) -> int:
        """Write one frame at the end. The append lock must be held and all frames be known. At
        least `mark` is acknowledged."""
        with self._guard, os_errors("append to the log", self.directory):
            frame = encode_frame(self._segments.end, entries)
            segment = self._segments.writable()
            first = segment.end
            LOCAL_FILES.append(segment.path, frame, segment.whole_bytes)
            segment.extend(synced=True)
            write_acknowledged(self.lock_path, max(segment.end, mark))
            return first
