"""The known segment files of a log.

Each reader caches the positions of frames and extends them; only the last file ever grows.
"""

from __future__ import annotations

import logging
import os
from bisect import bisect_right
from pathlib import Path

from penstock.errors import CorruptionError, HomeError
from penstock.storage.disk import os_errors, sync_directory
from penstock.storage.file_access import open_new
from penstock.storage.file_store import LOCAL_FILES
from penstock.storage.frames import COMPACTED_BYTES, COMPACTED_FORMAT, SEGMENT_FORMAT
from penstock.storage.log_segment import SEGMENT_SUFFIX, LogSegment

_FILES = LOCAL_FILES
"""Segments are read in place, and readers sync what they read: that takes a file system."""
_LOGGER = logging.getLogger("penstock.storage")


class SegmentFiles:
    """Not thread-safe: the owning log serialises access."""

    def __init__(self, directory: Path, segment_bytes: int) -> None:
        self.directory = directory
        self._segment_bytes = segment_bytes
        self._first_path = directory / LogSegment.name(0)
        self._segments: list[LogSegment] = []
        self._torn_bytes = 0
        self._compacted_as: bytes | None = None  # its first bytes, if compacted

    @property
    def end(self) -> int:
        """As of the last refresh."""
        return self._segments[-1].end if self._segments else 0

    @property
    def compacted_to(self) -> int:
        return self._segments[0].compacted_to if self._segments else 0

    @property
    def firsts(self) -> list[int]:
        return [segment.first for segment in self._segments]

    def refresh(self) -> None:
        """Find what other processes have appended."""
        firsts = self._uncovered(self._list_firsts())
        known = self.firsts
        if firsts[: len(known)] != known:
            lost = sorted(set(known) - set(firsts)) or firsts[:1]
            raise self._gap(lost[0], "it was there before")
        if firsts and firsts[0] != 0:
            raise self._gap(0, f"the first one present begins at offset {firsts[0]}")
        for first in firsts[len(known) :]:
            self._segments.append(LogSegment(self.directory / LogSegment.name(first), first))
        self._torn_bytes = self._segments[-1].extend() if self._segments else 0

    def _uncovered(self, firsts: list[int]) -> list[int]:
        """The segments without those that a compacted one covers: a crash may have left them.

        A compacted segment replaces the first one, under the same name.
        """
        if not firsts or firsts[0] != 0:
            return firsts
        path = self._first_path
        with os_errors("read the log", path):
            raw = _FILES.read(path, 0, COMPACTED_BYTES)
        begins = raw if raw.startswith(COMPACTED_FORMAT.magic) else b""
        if begins != self._compacted_as:
            first = LogSegment(path, 0)
            first.extend()
            self._segments, self._compacted_as = [first], begins
        return [0, *(first for first in firsts if first >= max(1, self._segments[0].compacted_to))]

    def _list_firsts(self) -> list[int]:
        firsts = []
        with os_errors("read the log", self.directory):
            names = _FILES.names(self.directory)
        for name in names:
            if name.endswith(SEGMENT_SUFFIX):
                stem = name.removesuffix(SEGMENT_SUFFIX)
                if not stem.isdecimal() or LogSegment.name(int(stem)) != name:
                    raise HomeError(
                        f"{name} is not the name of a log segment",
                        detail=f"in {self.directory}",
                        hint="move it away, if it does not belong there",
                    )
                firsts.append(int(stem))
        return sorted(firsts)

    def _gap(self, first: int, why: str) -> CorruptionError:
        return CorruptionError(
            f"log segment {LogSegment.name(first)} is missing: {why}",
            detail=f"in {self.directory}, at offset {first}, byte 0",
            hint="restore it from a backup",
        )

    def at(self, offset: int) -> LogSegment:
        """The segment that holds an offset, with all its frames known."""
        index = bisect_right(self._segments, offset, key=lambda segment: segment.first) - 1
        segment = self._segments[index]
        if index + 1 < len(self._segments):
            segment.seal(self._segments[index + 1].first)
        return segment

    def writable(self) -> LogSegment:
        """The last segment without its torn tail, or a new one if the last is full or missing."""
        self._cut_torn_tail()
        if self._segments:
            last = self._segments[-1]
            if last.whole_bytes == 0:
                return self._create(last)
            if last.whole_bytes < self._segment_bytes and not last.compacted_to:
                return last
        return self.begin_segment()

    def begin_segment(self) -> LogSegment:
        """Begin a new segment where the last one ends."""
        self._cut_torn_tail()
        segment = LogSegment(self.directory / LogSegment.name(self.end), self.end)
        self._segments.append(self._create(segment))
        return segment

    def _cut_torn_tail(self) -> None:
        if not self._torn_bytes:
            return
        last = self._segments[-1]
        with last.path.open("r+b", buffering=0) as file:
            os.ftruncate(file.fileno(), last.whole_bytes)
            os.fsync(file.fileno())
        _LOGGER.warning(
            "cut %d bytes of an unfinished write off the end of %s",
            self._torn_bytes,
            last.path,
        )
        self._torn_bytes = 0

    def _create(self, segment: LogSegment) -> LogSegment:
        with open_new(segment.path) as file:
            file.write(SEGMENT_FORMAT.header())
            file.flush()
            os.fsync(file.fileno())
        sync_directory(self.directory)
        segment.extend()
        return segment

    def replace_beginning(self, content: bytes) -> None:
        """Replace all segments that a compacted one covers."""
        _FILES.publish(self._first_path, content)
        self.sweep()

    def sweep(self) -> None:
        """Remove what a crash left behind, and what a compacted segment covers."""
        _FILES.sweep(self.directory)
        listed = self._list_firsts()
        covered = set(listed) - set(self._uncovered(listed))
        if not covered:
            return
        # The replacement must be intact as a whole, not only in its headers.
        beginning = self._segments[0]
        for _ in beginning.frames(0, beginning.end, -1):
            pass
        for first in sorted(covered):
            _FILES.remove(self.directory / LogSegment.name(first))
        sync_directory(self.directory)
