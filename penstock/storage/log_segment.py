"""One file of the log, and where its frames are.

Frames are found by reading their headers only, and their positions are cached, so a file is scanned
once however often it is read. In the last file of a log a *torn tail* may follow the complete
frames: part of an append that a crash, or a writer at work, left there. It was never acknowledged,
so readers stop before it. Every other irregularity is reported as damage.

The first file may be *compacted* (docs/notes/compaction.md): it was written as a whole, records its
end, and omits offsets.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from penstock.errors import CorruptionError
from penstock.storage.disk import corrupt, os_errors, sync_if_writable
from penstock.storage.frames import (
    COMPACTED_BYTES,
    COMPACTED_FORMAT,
    HEADER_BYTES,
    MAX_FRAME_BYTES,
    SEGMENT_FORMAT,
    RawEntry,
    compacted_extent,
    decode_header,
    decode_payload,
    headers_in,
)

SEGMENT_SUFFIX = ".log"
_READ_AHEAD_BYTES = 64 << 10  # about 400 headers of frames with one small record each

_CUT_HINT = (
    "restore the file from a backup; if the machine lost power while this very frame, the last "
    "one, was written, it was never acknowledged: keep a copy and cut the file off at that byte"
)


class LogSegment:
    """The frames of one file. Not thread-safe: the owning log serialises access."""

    def __init__(self, path: Path, first: int) -> None:
        self.path = path
        self.first = first
        self.end = first
        """The offset after the last complete frame found."""
        self.whole_bytes = 0
        """The position where that frame ends; 0 until the file header is complete."""
        self.compacted_to = 0
        """The end of a compacted file; 0 for any other. Known once the file header has been
        read."""
        self._firsts = array("Q")
        self._positions = array("Q")
        self._kinds = array("Q")
        self._compacted_bytes = 0

    @staticmethod
    def name(first: int) -> str:
        return f"{first:020d}{SEGMENT_SUFFIX}"

    # -- finding frames ---------------------------------------------------------------------------

    def extend(self, *, synced: bool = False) -> int:
        """Find the frames appended since the last call; returns the bytes of the torn tail.

        New frames are synced before they are visible, unless they already are: their writer may not
        have synced them yet, and what was read must survive a crash.
        """
        with os_errors("read the log", self.path), self.path.open("rb", buffering=0) as file:
            # The size is read first: a frame that ends within it was complete before its header was
            # read, so a writer that cuts a torn tail and rewrites it cannot mix two frames up.
            size = os.fstat(file.fileno()).st_size
            if size < self.whole_bytes:
                raise self._damaged(size, "it is shorter than it was")
            known = self.end
            torn = self._scan(file.fileno(), size)
            if self.compacted_to:
                self._check_compacted(size)
            if self.end > known and not synced:
                sync_if_writable(file.fileno())
            return torn

    def seal(self, next_first: int) -> None:
        """Find all frames of a file that is followed by another one: it must contain all records
        before that."""
        if self.end == next_first:
            return
        torn = self.extend()
        if torn:
            raise corrupt(
                self.path, self.whole_bytes, "the last frame is cut short", hint=_CUT_HINT
            )
        if self.end != next_first:
            raise corrupt(
                self.path,
                self.whole_bytes,
                f"it ends at offset {self.end}, but the next file begins at {next_first}",
                hint="restore the missing segment from a backup",
            )

    def _scan(self, descriptor: int, size: int) -> int:
        if self.whole_bytes == 0:
            raw = os.pread(descriptor, SEGMENT_FORMAT.SIZE, 0)
            if len(raw) < SEGMENT_FORMAT.SIZE or _only_zeros(descriptor, 0, size):
                return size
            if raw.startswith(COMPACTED_FORMAT.magic):
                self._begin_compacted(os.pread(descriptor, COMPACTED_BYTES, 0))
            else:
                SEGMENT_FORMAT.check(raw, self.path)
                self.whole_bytes = SEGMENT_FORMAT.SIZE
        while self.whole_bytes + HEADER_BYTES <= size:
            block = os.pread(descriptor, _READ_AHEAD_BYTES, self.whole_bytes)
            if len(block) < HEADER_BYTES or not self._add(block, descriptor, size):
                break
        return size - self.whole_bytes

    def _begin_compacted(self, raw: bytes) -> None:
        COMPACTED_FORMAT.check(raw, self.path)
        extent = compacted_extent(raw)
        if extent is None:
            raise self._damaged(COMPACTED_FORMAT.SIZE, "its header is wrong")
        self.compacted_to, self._compacted_bytes = extent
        self.whole_bytes = COMPACTED_BYTES

    def _check_compacted(self, size: int) -> None:
        """All of a compacted file was on disk before it was renamed into place."""
        if self.whole_bytes != size or size != self._compacted_bytes:
            raise self._damaged(self.whole_bytes, f"it should have {self._compacted_bytes} bytes")
        self.end = self.compacted_to

    def _add(self, block: bytes, descriptor: int, size: int) -> bool:
        """Add the frames whose headers are in the block; False if the last one is torn."""
        for header in headers_in(block):
            position = self.whole_bytes
            if header is None:
                if _only_zeros(descriptor, position, size):
                    return False
                raise self._damaged(position, "the checksum of a frame header is wrong")
            payload_bytes, kinds, first, records = header
            if first != self.end and not (self.compacted_to and first > self.end):
                raise self._damaged(position, f"a frame says it begins at offset {first}")
            if records == 0 or payload_bytes > MAX_FRAME_BYTES:
                raise self._damaged(position, "a frame header is not one that a log writes")
            end = position + HEADER_BYTES + payload_bytes
            if end > size:
                return False
            self._firsts.append(first)
            self._positions.append(position)
            self._kinds.append(kinds)
            self.end = first + records
            self.whole_bytes = end
        return True

    # -- reading ----------------------------------------------------------------------------------

    def frames(self, start: int, end: int, kinds: int) -> Iterator[tuple[int, list[RawEntry]]]:
        """The records of [start, end) in this file, frame by frame; only frames with `kinds`."""
        begin = max(0, bisect_right(self._firsts, start) - 1)
        count = bisect_left(self._firsts, end)
        with os_errors("read the log", self.path), self.path.open("rb") as file:
            stands_at = -1
            for index in range(begin, count):
                if not self._kinds[index] & kinds:
                    continue
                if stands_at != index:
                    file.seek(self._positions[index])
                entries = self._read(file, index)
                stands_at = index + 1
                first = self._firsts[index]
                if first < start or first + len(entries) > end:
                    entries = entries[max(0, start - first) : end - first]
                    first = max(first, start)
                if entries:
                    yield first, entries

    def _read(self, file: BinaryIO, index: int) -> list[RawEntry]:
        """The frame of this index; the file must be positioned at its beginning."""
        position, end = self._positions[index], self._end_of(index)
        raw = file.read(end - position)
        if len(raw) != end - position:
            raise self._damaged(position, "the frame is cut short", index)
        header = decode_header(raw, 0)
        if header is None or header.first != self._firsts[index]:
            raise self._damaged(position, "the frame header has changed", index)
        entries = decode_payload(header, raw[HEADER_BYTES:])
        if entries is None or len(entries) != header.records:
            raise self._damaged(position, "the checksum of a frame is wrong", index)
        return entries

    def _end_of(self, index: int) -> int:
        following = index + 1
        return self._positions[following] if following < len(self._positions) else self.whole_bytes

    # -- boundaries -------------------------------------------------------------------------------

    def boundary_before(self, offset: int) -> int:
        """The greatest first offset of a frame that is at most `offset`."""
        if offset >= self.end or not self._firsts:
            return self.end
        return self._firsts[max(0, bisect_right(self._firsts, offset) - 1)]

    def boundary_after(self, offset: int) -> int:
        """The end of the frame that holds `offset`."""
        index = bisect_right(self._firsts, offset)
        return self._firsts[index] if index < len(self._firsts) else self.end

    def boundary_within(self, offset: int, max_bytes: int) -> tuple[int, int]:
        """The end of the frames, from the one that holds `offset` on, that have at most `max_bytes`
        bytes; and their bytes."""
        index = max(0, bisect_right(self._firsts, offset) - 1)
        begin = self._positions[index] if self._positions else self.whole_bytes
        if self.whole_bytes - begin <= max_bytes:
            return self.end, self.whole_bytes - begin
        last = bisect_right(self._positions, begin + max_bytes) - 1
        return self._firsts[last], self._positions[last] - begin

    def _damaged(self, position: int, why: str, index: int | None = None) -> CorruptionError:
        offset = self.end if index is None else self._firsts[index]
        return corrupt(self.path, position, f"{why} (offset {offset})", hint=_CUT_HINT)


def _only_zeros(descriptor: int, position: int, size: int) -> bool:
    """Whether only zero bytes follow: the file grew, but its content was never written."""
    while position < size:
        block = os.pread(descriptor, min(1 << 20, size - position), position)
        if block.count(0) != len(block):
            return False
        if not block:
            break
        position += len(block)
    return True
