"""One file of the log, and where its frames are.

Positions are found by reading frame headers only and are kept, so a file is scanned once however
often it is read. In the last file of a log a *torn tail* may follow the whole frames: the part of
an append that a crash, or a writer at work, left there. It was never acknowledged, so readers stop
before it. Every other irregularity is damage, and is said.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from penstock.errors import CorruptionError
from penstock.log.disk import corrupt, os_errors
from penstock.log.frames import (
    HEADER_BYTES,
    MAX_FRAME_BYTES,
    SEGMENT_FORMAT,
    FrameHeader,
    RawEntry,
    decode_header,
    decode_payload,
)

SUFFIX = ".log"
_READ_AHEAD_BYTES = 64 << 10  # about 400 headers of frames with one small record each

_CUT_HINT = (
    "restore the file from a backup; if the machine lost power while this very frame, the last "
    "one, was written, it was never acknowledged: keep a copy and cut the file off at that byte"
)


class Segment:
    """The frames of one file. Not safe for threads: the log that owns it keeps them apart."""

    def __init__(self, path: Path, first: int) -> None:
        self.path = path
        self.first = first
        self.end = first
        """The offset after the last whole frame that has been found."""
        self.whole_bytes = 0
        """Where that frame ends in the file; 0 until a whole file header is there."""
        self._firsts = array("Q")
        self._positions = array("Q")
        self._kinds = array("Q")

    @staticmethod
    def name(first: int) -> str:
        return f"{first:020d}{SUFFIX}"

    # -- finding frames ---------------------------------------------------------------------------

    def extend(self, *, synced: bool = False) -> int:
        """Find the frames appended since the last call; how many bytes of a torn tail follow.

        New frames are synced here before anyone sees them, unless they already are: they may come
        from a writer that has not got so far yet, and what was read must not be lost in a crash.
        """
        with os_errors("read the log", self.path), self.path.open("rb", buffering=0) as file:
            # The size comes first: a frame that ends within it was complete before its header was
            # read, so a writer that cuts a torn tail and writes anew cannot mix two frames up.
            size = os.fstat(file.fileno()).st_size
            known = self.end
            torn = self._scan(file.fileno(), size)
            if self.end > known and not synced:
                os.fsync(file.fileno())
            return torn

    def seal(self, next_first: int) -> None:
        """Find all frames of a file that another one follows: it must hold all before that."""
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
            SEGMENT_FORMAT.check(raw, self.path)
            self.whole_bytes = SEGMENT_FORMAT.SIZE
        block, block_start = b"", self.whole_bytes
        while self.whole_bytes + HEADER_BYTES <= size:
            position = self.whole_bytes
            if position + HEADER_BYTES > block_start + len(block):
                block, block_start = os.pread(descriptor, _READ_AHEAD_BYTES, position), position
                if len(block) < HEADER_BYTES:
                    break
            header = decode_header(block, position - block_start)
            if header is None:
                if _only_zeros(descriptor, position, size):
                    break
                raise self._damaged(position, "the checksum of a frame header is wrong")
            if position + HEADER_BYTES + header.payload_bytes > size:
                break
            self._add(header)
        return size - self.whole_bytes

    def _add(self, header: FrameHeader) -> None:
        position = self.whole_bytes
        if header.first != self.end:
            raise self._damaged(position, f"a frame says it begins at offset {header.first}")
        if header.records == 0 or header.payload_bytes > MAX_FRAME_BYTES:
            raise self._damaged(position, "a frame header is not one that a log writes")
        self._firsts.append(header.first)
        self._positions.append(position)
        self._kinds.append(header.kinds)
        self.end = header.first + header.records
        self.whole_bytes = position + HEADER_BYTES + header.payload_bytes

    # -- reading ----------------------------------------------------------------------------------

    def frames(self, start: int, end: int, kinds: int) -> Iterator[tuple[int, list[RawEntry]]]:
        """The records of [start, end) that lie here, frame by frame; only frames with `kinds`."""
        index = max(0, bisect_right(self._firsts, start) - 1)
        with os_errors("read the log", self.path), self.path.open("rb") as file:
            while index < len(self._firsts) and self._firsts[index] < end:
                if self._kinds[index] & kinds:
                    first = self._firsts[index]
                    entries = self._read(file, index)
                    if first < start or first + len(entries) > end:
                        entries = entries[max(0, start - first) : end - first]
                        first = max(first, start)
                    if entries:
                        yield first, entries
                index += 1

    def _read(self, file: BinaryIO, index: int) -> list[RawEntry]:
        position = self._positions[index]
        if file.tell() != position:
            file.seek(position)
        raw = file.read(HEADER_BYTES)
        header = decode_header(raw, 0) if len(raw) == HEADER_BYTES else None
        if header is None or header.first != self._firsts[index]:
            raise self._damaged(position, "the frame header has changed", header_offset=index)
        payload = file.read(header.payload_bytes)
        if len(payload) != header.payload_bytes:
            raise self._damaged(position, "the frame is cut short", header_offset=index)
        entries = decode_payload(header, payload)
        if entries is None or len(entries) != header.records:
            raise self._damaged(position, "the checksum of a frame is wrong", header_offset=index)
        return entries

    # -- boundaries -------------------------------------------------------------------------------

    def boundary_before(self, offset: int) -> int:
        """The greatest first offset of a frame that is at most `offset`."""
        if offset >= self.end:
            return self.end
        return self._firsts[max(0, bisect_right(self._firsts, offset) - 1)]

    def boundary_after(self, offset: int) -> int:
        """The end of the frame that holds `offset`."""
        index = bisect_right(self._firsts, offset)
        return self._firsts[index] if index < len(self._firsts) else self.end

    def _damaged(
        self, position: int, why: str, *, header_offset: int | None = None
    ) -> CorruptionError:
        offset = self.end if header_offset is None else self._firsts[header_offset]
        return corrupt(self.path, position, f"{why} (offset {offset})", hint=_CUT_HINT)


def _only_zeros(descriptor: int, position: int, size: int) -> bool:
    """Whether nothing but zero bytes follow: the file grew, and its content was never written."""
    while position < size:
        block = os.pread(descriptor, min(1 << 20, size - position), position)
        if block.count(0) != len(block):
            return False
        if not block:
            break
        position += len(block)
    return True
