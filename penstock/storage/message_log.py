"""The message log: the messages of all batches, from which every subscriber reads.

A batch is published by renaming its file: its messages, its quarantined events and the processing
progress become visible together in that moment. The quarantine file of the batch is written before,
and is valid only once the messages are there.

Old batches are rolled into larger files (docs/notes/rolling.md), a few after each published batch,
so that there are never many files.

A *base* (docs/notes/compaction.md) replaces a batch and all before it: its messages lead a client
that starts from nothing to the same content. The batches that it covers are no longer read, and may
be removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from penstock.errors import CorruptionError, HomeError
from penstock.storage.batch_codec import (
    COMPRESSED_VERSION,
    Place,
    SingleFile,
    batch_name,
    decode_body,
    encode_batch,
    parse_batch_name,
    read_batch,
)
from penstock.storage.batch_directory import BatchKind, Listing
from penstock.storage.batch_files import BatchFiles
from penstock.storage.disk import FileFormat, os_errors
from penstock.storage.file_store import LOCAL_FILES, FileStore
from penstock.storage.interfaces import (
    BatchHeader,
    QuarantinedEvent,
    already_published,
    check_follows,
    compacted_away,
)
from penstock.storage.packed_batch import PackedMessages
from penstock.storage.quarantine import Quarantine

MESSAGE_FORMAT = FileFormat("message batch", b"PENSTMSG", COMPRESSED_VERSION)
MESSAGE_SUFFIX = ".messages"
ROLLED_FORMAT = FileFormat("file of rolled message batches", b"PENSTROL", version=1)
BASE_FORMAT = FileFormat("message base", b"PENSTBAS", COMPRESSED_VERSION)
BASE_SUFFIX = ".base"
MESSAGE_FILES = BatchKind(MESSAGE_FORMAT, MESSAGE_SUFFIX, ROLLED_FORMAT, without_gaps=True)

_DECODER = msgspec.msgpack.Decoder(list[bytes])


class MessageLog:
    """Batches in a directory. Any number of readers and one writer, the holder of the home's
    processing lock."""

    def __init__(self, directory: Path, quarantine: Path, store: FileStore = LOCAL_FILES) -> None:
        self.directory = directory
        self._store = store
        self.quarantine = Quarantine(quarantine, lambda: self.reached, store)
        self._files = BatchFiles(directory, MESSAGE_FILES, store)

    @property
    def frontier(self) -> BatchHeader | None:
        listing = self._files.list_files()
        base, last = _base_in(listing), self._files.last_header(listing)
        if base is not None and (last is None or (last.start, last.end) <= base):
            return self._base_header(base)
        return last

    @property
    def reached(self) -> int:
        """Where the last batch ends, by its file name."""
        listing = self._files.list_files()
        base = _base_in(listing)
        return max((one[1] for one in (base, listing.last) if one is not None), default=0)

    def batches(self, after: BatchHeader | None = None) -> Iterator[BatchHeader]:
        listing = self._files.list_files()
        base, last = _base_in(listing), listing.last
        begin = None if after is None else (after.start, after.end)
        if begin is not None and base is not None and begin < base:
            raise compacted_away(begin[1], base[1])
        if begin is None and base is not None:
            yield self._base_header(base)
            begin = base
        # A base covers everything before it; without one, the first batch begins with the log.
        first = reached = 0 if begin is None else begin[1]
        for header in self._files.headers(begin):
            if header.start != reached:
                last = (header.start, header.end)
                break
            yield header
            reached = header.end
        else:
            if last is None or last[1] <= reached:
                return
        # The next ones were compacted while these were read, or they are lost.
        compacted = self._base()
        if compacted is None or compacted[1] <= reached:
            raise self._gap(reached, last[0])
        if after is not None or base is not None or reached > first:
            raise compacted_away(reached, compacted[1])
        yield from self.batches()

    def read(self, header: BatchHeader) -> list[bytes]:
        place = (header.start, header.end)
        base = _base_in(self._files.last_listing())
        if place == base:
            found, body = read_batch(BASE_FORMAT, self._base_path(base), self._store)
        else:
            read = self._files.read(place)
            if read is None:
                raise self._missing(place)
            found, body = read
        if found != header:
            raise CorruptionError(
                f"batch {header} is there for subscriptions before {found.active}, "
                f"not before {header.active}",
                detail=f"in {self.directory}",
            )
        return decode_body(_DECODER, body, self.directory)

    def publish(
        self, header: BatchHeader, messages: Sequence[bytes], bad: Sequence[QuarantinedEvent] = ()
    ) -> None:
        place = (header.start, header.end)
        path = self._files.path(place)
        body = PackedMessages.of(messages).packed
        with os_errors("publish a batch", path):
            frontier = self.frontier
            if frontier is not None and place <= (frontier.start, frontier.end):
                if self._is_covered(place):
                    return
                published = self._files.read(place)
                if published is not None:
                    if published != (header, body):
                        raise already_published(header, path)
                    return
            check_follows(frontier, header, self.directory)
            self.quarantine.write(header, bad)
            self._store.publish(path, *encode_batch(MESSAGE_FORMAT, header, body))
            self._files.roll()
            self.quarantine.roll()

    def bytes_of(self, start: int, end: int) -> int:
        """The size of the messages of a batch on disk; 0 if there is no such batch."""
        return self._files.bytes_of((start, end))

    def checksum(self, header: BatchHeader) -> int | None:
        """The checksum of a batch as stored; None if this exact batch does not exist."""
        place, base = (header.start, header.end), self._base()
        if base is None or place > base:
            found = self._files.checksum(place)
        elif place < base:
            return None
        else:
            path = self._base_path(base)
            with os_errors("read a base", path):
                found = SingleFile(BASE_FORMAT, path, self._store).checksum(0)
        return found[1] if found is not None and found[0] == header else None

    @property
    def base(self) -> BatchHeader | None:
        """The batch at which the base ends, if there is a base."""
        base = self._base()
        return None if base is None else self._base_header(base)

    def write_base(self, header: BatchHeader, messages: Sequence[bytes]) -> None:
        """Replace a batch and all before it by a base; only for the holder of the processing
        lock."""
        path = self.directory / batch_name(header.start, header.end, BASE_SUFFIX)
        body = PackedMessages.of(messages).packed
        with os_errors("compact the message log", path):
            self._store.publish(path, *encode_batch(BASE_FORMAT, header, body))
        self._files.forget_listing()

    def sweep(self, compacted_to: int = 0) -> None:
        """Remove what a crashed writer left, and what a base covers. Only for the holder of the
        processing lock; `compacted_to` is how far the log is compacted.

        CorruptionError if there is something to remove, and the base is damaged.
        """
        with os_errors("tidy the message log", self.directory):
            self._store.sweep(self.directory)
            self._files.sweep()
            listing, base = self._files.list_files(), self._base()
            covered = [one.name for one in listing.extents if self._is_covered(one.last)]
            covered += [
                name
                for name in listing.others
                if base is not None and (_base_place(name) or base) != base
            ]
            if covered and base is not None:
                read_batch(BASE_FORMAT, self._base_path(base), self._store)
            for name in covered:
                self._store.remove(self.directory / name)
            self._files.forget_listing()
        self.quarantine.sweep(compacted_to)

    def put_aside(self, offset: int, directory: Path) -> int:
        """Move the batches that end after an offset aside, with their quarantine; returns how many.
        Only for the holder of the processing lock."""
        self.quarantine.put_aside(offset, directory)
        return self._files.put_aside(offset, directory)

    def _base(self) -> Place | None:
        """The place of the batch at which the newest base ends."""
        return _base_in(self._files.list_files())

    def _base_header(self, base: Place) -> BatchHeader:
        path = self._base_path(base)
        with os_errors("read a base", path):
            return SingleFile(BASE_FORMAT, path, self._store).last

    def _base_path(self, base: Place) -> Path:
        return self.directory / batch_name(*base, BASE_SUFFIX)

    def _is_covered(self, place: Place) -> bool:
        base = self._base()
        return base is not None and place <= base

    def _missing(self, place: Place) -> HomeError:
        base = self._base()
        if base is not None and place < base:
            return compacted_away(place[0], base[1])
        return HomeError(
            f"batch [{place[0]}, {place[1]}) is not in the message log",
            detail=f"in {self.directory}",
        )

    def _gap(self, reached: int, start: int) -> CorruptionError:
        return CorruptionError(
            f"the message log has a gap: one batch ends at {reached}, the next begins at {start}",
            detail=f"in {self.directory}",
            hint="restore the missing files from a backup",
        )


def _base_in(listing: Listing) -> Place | None:
    places = map(_base_place, listing.others)
    return max((place for place in places if place is not None), default=None)


def _base_place(name: str) -> Place | None:
    return parse_batch_name(name, BASE_SUFFIX) if name.endswith(BASE_SUFFIX) else None
