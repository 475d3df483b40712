"""The one log: everything that ever happened to a home, in order, on disk."""

from __future__ import annotations

import logging
import os
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import CorruptionError, HomeError, LockedError
from penstock.storage.acknowledged import read_acknowledged, write_acknowledged
from penstock.storage.disk import (
    file_lock,
    os_errors,
    read_beginning,
    sweep_temporary,
    sync_directory,
    write_all,
    write_aside,
)
from penstock.storage.file_access import open_new
from penstock.storage.frames import (
    COMPACTED_BYTES,
    COMPACTED_FORMAT,
    MAX_FRAME_RECORDS,
    SEGMENT_FORMAT,
    RawEntry,
    encode_frame,
    kind_bits,
    record,
)
from penstock.storage.interfaces import Entry, Record, RecordKind, check_range
from penstock.storage.log_segment import SUFFIX, Segment
from penstock.storage.witnesses import Witness, check_witnesses

SEGMENT_BYTES = (
    64 << 20
)  # 64 MiB: about 400,000 small frames, whose headers are read in half a second
APPEND_LOCK_SECONDS = 30.0  # far longer than any append; beyond it a writer hangs

_LOCK_NAME = "append.lock"
_LOGGER = logging.getLogger("penstock.storage")


class Log:
    """Segment files in a directory, each named by the offset of its first record.

    Threads and processes may read while others append. Each reader keeps what it knows of the
    files and extends that; only the last file ever grows.
    """

    def __init__(
        self,
        directory: Path,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        witnesses: Callable[[], Iterable[Witness]] = tuple,
    ) -> None:
        """`witnesses` tells what else remembers how far the log went; asked now and then."""
        self.directory = directory
        self._segment_bytes = segment_bytes
        self._witnesses = witnesses
        self._is_checked = False  # against the witnesses
        self._first_path = directory / Segment.name(0)
        self._segments: list[Segment] = []
        self._torn_bytes = 0
        self._compacted_as: bytes | None = None  # how the first segment begins, if compacted
        self._guard = threading.RLock()

    # -- reading ----------------------------------------------------------------------------------

    @property
    def end(self) -> int:
        with self._guard:
            self._refresh()
            return self._known_end

    @property
    def compacted_to(self) -> int:
        with self._guard:
            self._refresh()
            return self._segments[0].compacted_to if self._segments else 0

    @property
    def lock_path(self) -> Path:
        return self.directory / _LOCK_NAME

    @property
    def acknowledged(self) -> int | None:
        """An offset before which all records were on disk once; None if nobody remembers.

        Segments that are cut off at the end of a frame look like a shorter log. This tells them
        apart, unless the machine lost power: then it may be an older offset, never a later one.
        """
        return read_acknowledged(self.lock_path)

    @property
    def reached(self) -> int:
        """How far the log went, by whoever remembers the most."""
        end, known = self._with_mark(self._witnesses())
        return max(end, *(one.offset for one in known))

    def check_end(self) -> None:
        """CorruptionError if records are gone that were acknowledged, or that something else in
        the home comes from. Their offsets must not be given to other records."""
        check_witnesses(*self._with_mark(self._witnesses()), self.directory)
        self._is_checked = True

    def _with_mark(self, witnesses: Iterable[Witness]) -> tuple[int, list[Witness]]:
        # They come first: what is appended meanwhile is no loss.
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
        known = self._known_end
        if end is None or max(start, end) > known:
            known = self.end
        wanted = check_range(start, end, known, self.directory)
        return self._frames(start, wanted, -1 if kinds is None else kind_bits(kinds))

    def frame_boundary(self, start: int, max_records: int, max_bytes: int | None = None) -> int:
        with self._guard:
            self._refresh()
            end = self._known_end
            check_range(start, None, end, self.directory)
            if start == end:
                return end
            target = start + max(1, max_records)
            boundary = end if target >= end else self._segment_at(target).boundary_before(target)
            if max_bytes is not None:
                boundary = min(boundary, self._boundary_within(start, max_bytes))
            return boundary if boundary > start else self._segment_at(start).boundary_after(start)

    def _boundary_within(self, start: int, max_bytes: int) -> int:
        """The end of the frames from `start` on that have so many bytes at most."""
        while start < self._known_end:
            segment = self._segment_at(start)
            start, taken = segment.boundary_within(start, max_bytes)
            if start < segment.end:
                break
            max_bytes -= taken
        return start

    def _frames(self, start: int, end: int, kinds: int) -> Iterator[tuple[int, list[RawEntry]]]:
        while start < end:
            with self._guard:
                segment = self._segment_at(start)
                segment_end = segment.end
            yield from segment.frames(start, min(end, segment_end), kinds)
            start = segment_end

    # -- appending --------------------------------------------------------------------------------

    def append(self, entries: Sequence[Entry]) -> int:
        with self.appending() as tail:
            return tail.append(entries)

    @contextmanager
    def appending(self) -> Iterator[_FileTail]:
        with file_lock(self.lock_path, APPEND_LOCK_SECONDS, self._locked()):
            self._check_before_appending()
            tail = _FileTail(self, self.end)
            try:
                yield tail
            finally:
                tail.close()

    def _locked(self) -> LockedError:
        return LockedError(
            "another process keeps the log locked",
            detail=f"waited {APPEND_LOCK_SECONDS:g} seconds for {self.lock_path}",
            hint="look for a penstock process that hangs",
        )

    def _check_before_appending(self) -> None:
        """The mark is compared each time. All witnesses are asked once, and for as long as there is
        no mark: somebody else's append may not have left one."""
        if self._is_checked and self.acknowledged is not None:
            check_witnesses(*self._with_mark(()), self.directory)
        else:
            self.check_end()

    def fill(self, to: int) -> int:
        """Append records of kind LOST up to an offset; how many. Only for `accept_loss`: this is
        the one append that a lost end does not forbid."""
        filled = 0
        with file_lock(self.lock_path, APPEND_LOCK_SECONDS, self._locked()):
            while (missing := to - self.end) > 0:
                some = min(missing, MAX_FRAME_RECORDS)
                self._append([(RecordKind.LOST, b"")] * some, mark=to)
                filled += some
        return filled

    def roll(self) -> int:
        """Begin a new segment, unless the last one is empty; the offset at which it begins."""
        with self.appending() as tail, self._guard, os_errors("append", self.directory):
            if self._segments and self._segments[-1].first < tail.end:
                if self._torn_bytes:
                    self._cut(self._segments[-1])
                segment = Segment(self.directory / Segment.name(tail.end), tail.end)
                self._segments.append(self._create(segment))
            return tail.end

    def replace_beginning(self, content: bytes) -> None:
        """Put a compacted segment in the place of all those that it covers. Only for the holder of
        the home's processing lock; it must end where another segment begins."""
        with self._guard, os_errors("compact the log", self.directory):
            write_aside(self._first_path, content)
            self.sweep()

    def sweep(self) -> None:
        """Remove what a crash left behind; only for the holder of the home's processing lock."""
        with self._guard, os_errors("tidy the log", self.directory):
            sweep_temporary(self.directory)
            listed = self._listed()
            covered = set(listed) - set(self._uncovered(listed))
            if covered:
                # What is to stand for them must be whole, not only look so by its headers.
                beginning = self._segments[0]
                for _ in beginning.frames(0, beginning.end, -1):
                    pass
            for first in sorted(covered):
                (self.directory / Segment.name(first)).unlink(missing_ok=True)
            if covered:
                sync_directory(self.directory)

    def segment_firsts(self) -> list[int]:
        """Where the segments begin."""
        with self._guard:
            self._refresh()
            return [segment.first for segment in self._segments]

    def _append(self, entries: Sequence[Entry], mark: int = 0) -> int:
        """Write one frame at the end; the append lock is held, and everything is known. `mark` is
        acknowledged at least."""
        with self._guard, os_errors("append to the log", self.directory):
            frame = encode_frame(self._known_end, entries)
            segment = self._writable_segment()
            first = segment.end
            with segment.path.open("r+b", buffering=0) as file:
                descriptor, position = file.fileno(), segment.whole_bytes
                try:
                    write_all(descriptor, frame, position)
                    os.fsync(descriptor)
                except BaseException:
                    # Not acknowledged, so not there: a full disk must not leave half a frame.
                    os.ftruncate(descriptor, position)
                    raise
            segment.extend(synced=True)
            write_acknowledged(self.lock_path, max(segment.end, mark))
            return first

    def _writable_segment(self) -> Segment:
        """The last segment without its torn tail, or a new one where that is full or missing."""
        if self._segments:
            last = self._segments[-1]
            if self._torn_bytes:
                self._cut(last)
            if last.whole_bytes == 0:
                return self._create(last)
            if last.whole_bytes < self._segment_bytes and not last.compacted_to:
                return last
        first = self._known_end
        segment = Segment(self.directory / Segment.name(first), first)
        self._create(segment)
        self._segments.append(segment)
        return segment

    def _cut(self, last: Segment) -> None:
        with last.path.open("r+b", buffering=0) as file:
            os.ftruncate(file.fileno(), last.whole_bytes)
            os.fsync(file.fileno())
        _LOGGER.warning(
            "cut %d bytes of an unfinished write off the end of %s",
            self._torn_bytes,
            last.path,
        )
        self._torn_bytes = 0

    def _create(self, segment: Segment) -> Segment:
        with open_new(segment.path) as file:
            file.write(SEGMENT_FORMAT.header())
            file.flush()
            os.fsync(file.fileno())
        sync_directory(self.directory)
        segment.extend()
        return segment

    # -- what is known of the files ---------------------------------------------------------------

    @property
    def _known_end(self) -> int:
        return self._segments[-1].end if self._segments else 0

    def _refresh(self) -> None:
        """See what other processes have appended."""
        firsts = self._uncovered(self._listed())
        known = [segment.first for segment in self._segments]
        if firsts[: len(known)] != known:
            lost = sorted(set(known) - set(firsts)) or firsts[:1]
            raise self._gap(lost[0], "it was there before")
        if firsts and firsts[0] != 0:
            raise self._gap(0, f"the first one present begins at offset {firsts[0]}")
        for first in firsts[len(known) :]:
            self._segments.append(Segment(self.directory / Segment.name(first), first))
        self._torn_bytes = self._segments[-1].extend() if self._segments else 0

    def _uncovered(self, firsts: list[int]) -> list[int]:
        """The segments without those that a compacted one stands for: a crash may have left them.

        A compacted segment takes the place of the first one, under its name.
        """
        if not firsts or firsts[0] != 0:
            return firsts
        path = self._first_path
        with os_errors("read the log", path):
            raw = read_beginning(path, COMPACTED_BYTES)
        begins = raw if raw.startswith(COMPACTED_FORMAT.magic) else b""
        if begins != self._compacted_as:
            first = Segment(path, 0)
            first.extend()
            self._segments, self._compacted_as = [first], begins
        return [0, *(first for first in firsts if first >= max(1, self._segments[0].compacted_to))]

    def _listed(self) -> list[int]:
        firsts = []
        with os_errors("read the log", self.directory):
            names = os.listdir(self.directory)
        for name in names:
            if name.endswith(SUFFIX):
                stem = name.removesuffix(SUFFIX)
                if not stem.isdecimal() or Segment.name(int(stem)) != name:
                    raise HomeError(
                        f"{name} is not the name of a log segment",
                        detail=f"in {self.directory}",
                        hint="move it away, if it does not belong there",
                    )
                firsts.append(int(stem))
        return sorted(firsts)

    def _gap(self, first: int, why: str) -> CorruptionError:
        return CorruptionError(
            f"log segment {Segment.name(first)} is missing: {why}",
            detail=f"in {self.directory}, at offset {first}, byte 0",
            hint="restore it from a backup",
        )

    def _segment_at(self, offset: int) -> Segment:
        """The segment that holds an offset, with all its frames known."""
        index = bisect_right(self._segments, offset, key=lambda segment: segment.first) - 1
        segment = self._segments[index]
        if index + 1 < len(self._segments):
            segment.seal(self._segments[index + 1].first)
        return segment


class _FileTail:
    """The end of the log while its append lock is held."""

    def __init__(self, log: Log, end: int) -> None:
        self._log: Log | None = log
        self._end = end

    @property
    def end(self) -> int:
        return self._end

    def append(self, entries: Sequence[Entry]) -> int:
        if self._log is None:
            raise HomeError("append after the log's append lock was given back")
        if not entries:
            return self._end
        first = self._log._append(entries)
        self._end = first + len(entries)
        return first

    def close(self) -> None:
        self._log = None
