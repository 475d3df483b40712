"""A directory of batch files, of which old ones are rolled into larger files.

One process writes, any number read. A batch is in a file of its own, or in a rolled file, or for a
moment in both: then the larger file counts. It is never in none, so whoever misses a file lists the
directory again and finds the batch elsewhere (docs/notes/rolling.md).
"""

from __future__ import annotations

import os
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

from penstock.errors import PenstockError
from penstock.storage.batch_codec import (
    Place,
    SingleFile,
    StoredBatch,
    batch_name,
    parse_batch_name,
)
from penstock.storage.disk import FileFormat, os_errors, write_aside
from penstock.storage.interfaces import BatchHeader
from penstock.storage.rolled import SUFFIX as ROLLED_SUFFIX
from penstock.storage.rolled import (
    Extent,
    RolledFile,
    encode_rolled,
    extents_in_order,
    parse_rolled_name,
)
from penstock.storage.tiers import stretch_to_roll

# A directory's time of change moves in ticks of up to 10 ms. A listing made later than this after
# the last change has seen all of it; one made earlier may have missed a file of the same tick.
_SETTLED_SECONDS = 1.0
_LISTINGS = 100
"""Listings of a directory, at most, until it holds still; its writer changes it every few
milliseconds."""
_LOOKS = 10
"""Looks for a batch, at most, whose file was rolled away before it was opened."""
_INDEXES = 8
"""Rolled files whose indexes are kept in memory: up to 5 MiB each."""

_T = TypeVar("_T")


class BatchFile(Protocol):
    """A file that holds batches, numbered from 0. All methods: OSError if it cannot be read,
    CorruptionError if it is damaged."""

    @property
    def last(self) -> BatchHeader: ...

    def headers(self) -> list[BatchHeader]: ...

    def find(self, place: Place, /) -> int | None: ...

    def bytes_of(self, number: int, /) -> int: ...

    def checksum(self, number: int, /) -> tuple[BatchHeader, int]: ...

    def read(self, number: int, /) -> tuple[BatchHeader, bytes]: ...

    def stored(self) -> Iterable[StoredBatch]: ...


@dataclass(frozen=True, slots=True)
class BatchKind:
    """What the files of a directory are."""

    single: FileFormat
    suffix: str
    rolled: FileFormat
    without_gaps: bool
    """Whether each batch starts where the one before ended. Then files are not rolled across a gap:
    what is missing there may be restored."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What a directory held."""

    extents: list[Extent] = field(default_factory=list)
    """The files that count, in the order of their batches."""
    left_over: list[str] = field(default_factory=list)
    """Files whose batches are in larger files."""
    others: list[str] = field(default_factory=list)
    """All other names."""

    @property
    def last(self) -> Place | None:
        """The place of the last batch."""
        return self.extents[-1].last if self.extents else None


class BatchFiles:
    """Several threads may read. `roll` and `sweep` are for the one process that writes."""

    def __init__(self, directory: Path, kind: BatchKind) -> None:
        self.directory = directory
        self.kind = kind
        self._listing = Listing()
        self._settled_change_ns = -1
        self._extents: dict[str, Extent | None] = {}  # by name, as parsed
        self._indexes: dict[str, RolledFile] = {}
        self._sizes: dict[str, int] = {}
        self._left_alone: set[str] = set()
        self._guard = threading.RLock()

    # Listing

    def listed(self) -> Listing:
        """What there is now; listed again only if the directory changed."""
        with self._guard, os_errors("read the directory of batches", self.directory):
            changed_ns = self.directory.stat().st_mtime_ns
            if changed_ns == self._settled_change_ns:
                return self._listing
            settled = time.time_ns() - changed_ns > _SETTLED_SECONDS * 1e9
            names = os.listdir(self.directory)
            if not settled or self.directory.stat().st_mtime_ns != changed_ns:
                settled, names = False, self._settled_names(names)
            self._listing = self._listing_of(names)
            self._settled_change_ns = changed_ns if settled else -1
            return self._listing

    def known(self) -> Listing:
        """What there was at the last look, for those who ask for a batch that they know of: it is
        still where it was then, unless its file is gone."""
        return self._listing if self._listing.extents or self._listing.others else self.listed()

    def changed(self) -> None:
        """List the directory again the next time."""
        self._settled_change_ns = -1

    def _settled_names(self, names: list[str]) -> list[str]:
        """The names in a directory that changes.

        A listing made while files are rolled may miss both the new file and the old ones. The next
        one sees the new file, which came before the old ones went; so two that agree are right.
        """
        for _ in range(_LISTINGS):
            before, names = names, os.listdir(self.directory)
            if names == before:
                break
        return names

    def _listing_of(self, names: list[str]) -> Listing:
        known = self._extents
        self._extents = {
            name: known[name] if name in known else self._parsed(name) for name in names
        }
        found = [extent for extent in self._extents.values() if extent is not None]
        kept = extents_in_order(found)
        names_kept = {extent.name for extent in kept}
        return Listing(
            kept,
            [extent.name for extent in found if extent.name not in names_kept],
            [name for name, extent in self._extents.items() if extent is None],
        )

    def _parsed(self, name: str) -> Extent | None:
        if name.endswith(ROLLED_SUFFIX):
            return parse_rolled_name(name)
        if not name.endswith(self.kind.suffix):
            return None
        place = parse_batch_name(name, self.kind.suffix)
        return None if place is None else Extent(place, place, 1, name)

    # Reading

    def headers(self, after: Place | None = None) -> Iterator[BatchHeader]:
        """The batches that are there now, or those behind a place, in order. Ends early if the
        others are compacted meanwhile."""
        extents = self.listed().extents
        last = extents[-1].last if extents else None
        while last is not None and (after is None or after < last):
            extents, headers = self._next_headers(extents, after)
            if not headers:
                return
            for header in headers:
                after = (header.start, header.end)
                if after > last:
                    return
                yield header

    def _next_headers(
        self, known: list[Extent], after: Place | None
    ) -> tuple[list[Extent], list[BatchHeader]]:
        """The batches of the file that goes on behind a place, and the files by which it was found:
        those that are known, unless the file is gone."""

        def look(extents: list[Extent]) -> tuple[list[Extent], list[BatchHeader]]:
            at = 0 if after is None else bisect_right(extents, after, key=_last)
            headers = [] if at == len(extents) else self.opened(extents[at]).headers()
            behind = [one for one in headers if after is None or (one.start, one.end) > after]
            return extents, behind

        return self._until_found(look, known)

    def last_header(self, listing: Listing) -> BatchHeader | None:
        def look(extents: list[Extent]) -> BatchHeader | None:
            return self.opened(extents[-1]).last if extents else None

        return self._until_found(look, listing.extents)

    def over(self, offset: int) -> BatchHeader | None:
        """The batch that holds a record, if it is there."""

        def look(extents: list[Extent]) -> BatchHeader | None:
            at = bisect_right(extents, offset, key=_end)
            headers = [] if at == len(extents) else self.opened(extents[at]).headers()
            return next((one for one in headers if one.start <= offset < one.end), None)

        return self._until_found(look)

    def read(self, place: Place) -> tuple[BatchHeader, bytes] | None:
        """The batch of that place and its content; CorruptionError if it is damaged."""
        return self._looked_up(place, lambda file, number: file.read(number))

    def bytes_of(self, place: Place) -> int:
        """How much room a batch takes on disk; nothing, if it is not there."""
        return self._looked_up(place, lambda file, number: file.bytes_of(number)) or 0

    def checksum(self, place: Place) -> tuple[BatchHeader, int] | None:
        """The batch of that place, and the checksum of its content as it is stored."""
        return self._looked_up(place, lambda file, number: file.checksum(number))

    def __contains__(self, place: Place) -> bool:
        return self._looked_up(place, lambda *_: True) is not None

    def path(self, place: Place) -> Path:
        """The file of a batch before it is rolled."""
        return self.directory / batch_name(*place, self.kind.suffix)

    def _looked_up(self, place: Place, look: Callable[[BatchFile, int], _T]) -> _T | None:
        """What the file that holds a batch says of it; None if no file does."""
        looked = self._looked_up_in(self.known().extents, place, look)
        if looked is None:  # it may be new
            looked = self._looked_up_in(None, place, look)
        return looked

    def _looked_up_in(
        self, known: list[Extent] | None, place: Place, look: Callable[[BatchFile, int], _T]
    ) -> _T | None:
        def look_up(extents: list[Extent]) -> _T | None:
            at = bisect_left(extents, place, key=_last)
            if at == len(extents) or extents[at].first > place:
                return None
            file = self.opened(extents[at])
            number = file.find(place)
            return None if number is None else look(file, number)

        return self._until_found(look_up, known)

    def _until_found(
        self, look: Callable[[list[Extent]], _T], known: list[Extent] | None = None
    ) -> _T:
        """Look again if a file is gone: its batches are elsewhere by then."""
        with os_errors("read batches", self.directory):
            for _ in range(_LOOKS):
                try:
                    return look(self.listed().extents if known is None else known)
                except FileNotFoundError:
                    self.changed()
                    known = None
            return look(self.listed().extents)

    def opened(self, extent: Extent) -> BatchFile:
        path = self.directory / extent.name
        if not extent.name.endswith(ROLLED_SUFFIX):
            return SingleFile(self.kind.single, path)
        with self._guard:
            file = self._indexes.pop(extent.name, None)
            if file is None:
                file = RolledFile(self.kind.rolled, self.kind.single, path)
            self._indexes[extent.name] = file  # the one used last comes last
            if len(self._indexes) > _INDEXES:
                del self._indexes[next(iter(self._indexes))]
        return file

    # Rolling

    def roll(self, may_roll: Callable[[Place], bool] = lambda _: True) -> None:
        """Roll some files into one, if it is time for it.

        A damaged file stays as it is, and so does everything if there is no room for a copy, until
        another process writes here: a batch that is published does not fail for that.
        """
        extents = self.listed().extents
        stretch = stretch_to_roll(extents, self._file_bytes, self._may_follow)
        if not stretch or not all(may_roll(extent.last) for extent in stretch):
            return
        try:
            self._roll(stretch)
        except OSError:
            self._left_alone.update(extent.name for extent in stretch)
        self.changed()

    def _roll(self, stretch: Sequence[Extent]) -> None:
        batches: list[StoredBatch] = []
        for extent in stretch:
            try:
                batches += self.opened(extent).stored()
            except PenstockError:
                self._left_alone.add(extent.name)
                return
        name, content = encode_rolled(self.kind.rolled, batches)
        write_aside(self.directory / name, *content)
        for extent in stretch:
            (self.directory / extent.name).unlink(missing_ok=True)
            self._sizes.pop(extent.name, None)

    def sweep(self) -> None:
        """Remove files whose batches are in larger ones."""
        self.changed()
        for name in self.listed().left_over:
            (self.directory / name).unlink(missing_ok=True)
        self.changed()

    def put_aside(self, offset: int, directory: Path) -> int:
        """Move the batches that end behind an offset into another directory; how many there were.

        Of a rolled file that holds others as well, those are written as single files first.
        """
        moved = 0
        for extent in [one for one in self.listed().extents if one.last[1] > offset]:
            if extent.batches == 1:
                moved += 1
            else:
                for batch in self.opened(extent).stored():
                    if batch.header.end > offset:
                        moved += 1
                    else:
                        place = (batch.header.start, batch.header.end)
                        write_aside(self.path(place), batch.raw)
            (self.directory / extent.name).replace(directory / extent.name)
        self.changed()
        return moved

    def _file_bytes(self, extent: Extent) -> int:
        size = self._sizes.get(extent.name)
        if size is None:
            size = self._sizes[extent.name] = (self.directory / extent.name).stat().st_size
        return size

    def _may_follow(self, before: Extent, extent: Extent) -> bool:
        """Whether a file can be rolled together with the one before."""
        if self.kind.without_gaps and extent.first[0] != before.last[1]:
            return False
        return not {before.name, extent.name} & self._left_alone


def _last(extent: Extent) -> Place:
    return extent.last


def _end(extent: Extent) -> int:
    return extent.last[1]
