"""The message log: one file per batch, the outbox of every subscriber.

A batch is published by renaming its file: that is the one moment at which its messages, its
quarantined events and the progress of the log's processing become true together. The quarantine of
the batch is in place before, and counts only once the messages are there.

A *base* (docs/notes/compaction.md) stands for a batch and all before it: its messages lead a client
that starts from nothing to the same content. What it covers no longer counts, and may go.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from penstock.errors import CorruptionError
from penstock.log.batchfile import (
    COMPRESSED_VERSION,
    batch_name,
    decoded,
    encode_batch,
    parse_batch_name,
    read_batch,
    read_header,
)
from penstock.log.disk import FileFormat, os_errors, sweep_temporary, write_aside
from penstock.log.interfaces import (
    BatchHeader,
    QuarantinedEvent,
    already_published,
    check_follows,
    compacted_away,
)
from penstock.log.packed import PackedMessages
from penstock.log.quarantine import SUFFIX as QUARANTINE_SUFFIX
from penstock.log.quarantine import Quarantine

MESSAGE_FORMAT = FileFormat("message batch", b"PENSTMSG", COMPRESSED_VERSION)
SUFFIX = ".messages"
BASE_FORMAT = FileFormat("message base", b"PENSTBAS", COMPRESSED_VERSION)
BASE_SUFFIX = ".base"

_DECODER = msgspec.msgpack.Decoder(list[bytes])

# A directory's time of change moves in ticks of up to 10 ms. A listing made later than this after
# the last change has seen all of it; one made earlier may have missed a file of the same tick.
_SETTLED_SECONDS = 1.0


class MessageLog:
    """Batch files in a directory. Any number of readers, and one writer, who holds the home's
    processing lock."""

    def __init__(self, directory: Path, quarantine: Path) -> None:
        self.directory = directory
        self.quarantine = Quarantine(quarantine, reached=lambda: self.reached)
        self._places: list[tuple[int, int]] = []
        self._base: tuple[int, int] | None = None
        self._settled_change_ns = -1

    @property
    def frontier(self) -> BatchHeader | None:
        places = self._listed()
        return self._header(*places[-1]) if places else None

    @property
    def reached(self) -> int:
        """Where the last batch ends, by its name."""
        places = self._listed()
        return places[-1][1] if places else 0

    def batches(self, after: BatchHeader | None = None) -> Iterator[BatchHeader]:
        places = self._listed()
        if after is not None and self._base and (after.start, after.end) < self._base:
            raise compacted_away(after.end, self._base[1])
        begin = 0 if after is None else bisect_right(places, (after.start, after.end))
        # A base stands for all before it; without one, the first batch begins with the log.
        reached = after.end if after is not None else (None if self._base else 0)
        for start, end in places[begin:]:
            if reached is not None and start != reached:
                raise self._gap(reached, start)
            yield self._header(start, end)
            reached = end

    def read(self, header: BatchHeader) -> list[bytes]:
        file_format, path = self._file(header.start, header.end)
        found, body = read_batch(file_format, path)
        if found != header:
            raise CorruptionError(
                f"batch {header} is there for subscriptions before {found.active}, "
                f"not before {header.active}",
                detail=f"file {path}",
            )
        return decoded(_DECODER, body, path)

    def publish(
        self, header: BatchHeader, messages: Sequence[bytes], bad: Sequence[QuarantinedEvent] = ()
    ) -> None:
        path = self._path(header.start, header.end)
        body = PackedMessages.of(messages).packed
        self._listed()
        if self._is_covered(header.start, header.end):
            return
        with os_errors("publish a batch", path):
            if path.exists():
                if read_batch(MESSAGE_FORMAT, path) != (header, body):
                    raise already_published(header, path)
                return
            check_follows(self.frontier, header, self.directory)
            self.quarantine.write(header, bad)
            write_aside(path, *encode_batch(MESSAGE_FORMAT, header, body))

    @property
    def base(self) -> BatchHeader | None:
        """The batch that a base stands for, if there is a base."""
        self._listed()
        return None if self._base is None else self._header(*self._base)

    def write_base(self, header: BatchHeader, messages: Sequence[bytes]) -> None:
        """Put a base in the place of a batch and all before it; only for the holder of the
        processing lock."""
        path = self.directory / batch_name(header.start, header.end, BASE_SUFFIX)
        body = PackedMessages.of(messages).packed
        with os_errors("compact the message log", path):
            write_aside(path, *encode_batch(BASE_FORMAT, header, body))
        self._settled_change_ns = -1

    def sweep(self, compacted_to: int = 0) -> None:
        """Remove what a crashed writer left, and what a base covers; only for the holder of the
        processing lock, who says how far the log is compacted.

        CorruptionError if there is something to remove, and the base is damaged.
        """
        with os_errors("tidy the message log", self.directory):
            sweep_temporary(self.directory)
            self._settled_change_ns = -1
            covered = self._covered()
            if covered and self._base is not None:
                read_batch(*self._file(*self._base))
            for path in covered:
                path.unlink(missing_ok=True)
        self.quarantine.sweep(compacted_to)

    def _covered(self) -> list[Path]:
        """The files that a base stands for."""
        self._listed()
        return [
            self.directory / batch_name(*place, suffix)
            for suffix in (SUFFIX, BASE_SUFFIX)
            for place in self._named(suffix)
            if self._is_covered(*place) and (suffix, place) != (BASE_SUFFIX, self._base)
        ]

    def put_aside(self, offset: int, directory: Path) -> int:
        """Move the batches that end behind an offset out of the way, with their quarantine; how
        many there were. Only for the holder of the processing lock."""
        moved = 0
        for source, suffix in (
            (self.quarantine.directory, QUARANTINE_SUFFIX),
            (self.directory, SUFFIX),
        ):
            for start, end in _places(os.listdir(source), suffix):
                if end > offset:
                    name = batch_name(start, end, suffix)
                    (source / name).replace(directory / name)
                    moved += suffix == SUFFIX
        self._settled_change_ns = -1
        return moved

    def _path(self, start: int, end: int) -> Path:
        return self.directory / batch_name(start, end, SUFFIX)

    def _file(self, start: int, end: int) -> tuple[FileFormat, Path]:
        if (start, end) == self._base:
            return BASE_FORMAT, self.directory / batch_name(start, end, BASE_SUFFIX)
        return MESSAGE_FORMAT, self._path(start, end)

    def _is_covered(self, start: int, end: int) -> bool:
        return self._base is not None and (start, end) <= self._base

    def _header(self, start: int, end: int) -> BatchHeader:
        return read_header(*self._file(start, end))

    def _listed(self) -> list[tuple[int, int]]:
        """The (start, end) of all batches, sorted; listed again only if the directory changed."""
        with os_errors("read the message log", self.directory):
            changed_ns = self.directory.stat().st_mtime_ns
            if changed_ns == self._settled_change_ns:
                return self._places
            settled = time.time_ns() - changed_ns > _SETTLED_SECONDS * 1e9
            names = os.listdir(self.directory)
        self._base = max(_places(names, BASE_SUFFIX), default=None)
        places = [place for place in _places(names, SUFFIX) if not self._is_covered(*place)]
        self._places = [self._base, *places] if self._base else places
        self._settled_change_ns = changed_ns if settled else -1
        return self._places

    def _named(self, suffix: str) -> list[tuple[int, int]]:
        return _places(os.listdir(self.directory), suffix)

    def _gap(self, reached: int, start: int) -> CorruptionError:
        return CorruptionError(
            f"the message log has a gap: one batch ends at {reached}, the next begins at {start}",
            detail=f"in {self.directory}",
            hint="restore the missing files from a backup",
        )


def _places(names: Sequence[str], suffix: str) -> list[tuple[int, int]]:
    places = (parse_batch_name(name, suffix) for name in names if name.endswith(suffix))
    return sorted(place for place in places if place is not None)
