"""A directory of batch files; old files are rolled into larger ones.

One process writes, any number read. A batch is in a file of its own, or in a rolled file, or for a
moment in both: then the larger file counts. It is never in neither, so a reader that misses a file
lists the directory again and finds the batch elsewhere (docs/notes/rolling.md).
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from penstock.errors import PenstockError
from penstock.storage.batch_codec import Place, SingleFile, StoredBatch, batch_name
from penstock.storage.batch_directory import BatchDirectory, BatchKind, Listing
from penstock.storage.disk import os_errors
from penstock.storage.file_store import LOCAL_FILES, FileStore
from penstock.storage.interfaces import BatchHeader
from penstock.storage.rolled import ROLLED_SUFFIX, Extent, RolledFile, encode_rolled
from penstock.storage.tiers import stretch_to_roll

_LOOKS = 10
"""Maximum attempts to find a batch whose file was rolled before it could be opened."""
_INDEXES = 8
"""Number of rolled files whose indexes are cached: up to 5 MiB each."""

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

    def stored_batches(self) -> Iterable[StoredBatch]: ...


class BatchFiles:
    """Thread-safe for readers. `roll` and `sweep` are for the single writing process."""

    def __init__(self, directory: Path, kind: BatchKind, store: FileStore = LOCAL_FILES) -> None:
        self.directory = directory
        self._store = store
        self.kind = kind
        self._directory = BatchDirectory(directory, kind, store)
        self._indexes: dict[str, RolledFile] = {}
        self._sizes: dict[str, int] = {}
        self._left_alone: set[str] = set()
        self._guard = threading.RLock()

    def list_files(self) -> Listing:
        """The current files; the directory is listed again only if it changed."""
        with self._guard:
            return self._directory.list_files()

    def last_listing(self) -> Listing:
        """The files as of the last listing, for looking up a known batch: it is still there unless
        its file is gone."""
        last = self._directory.last
        return last if last.extents or last.others else self.list_files()

    def forget_listing(self) -> None:
        """List the directory again the next time."""
        self._directory.forget()

    # Reading

    def headers(self, after: Place | None = None) -> Iterator[BatchHeader]:
        """All current batches, or those after a place, in order. Ends early if the remaining ones
        are compacted meanwhile."""
        extents = self.list_files().extents
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
        """The batches of the file that continues after a place, and the files among which it was
        found: the known ones, unless the file is gone."""

        def look(extents: list[Extent]) -> tuple[list[Extent], list[BatchHeader]]:
            at = 0 if after is None else bisect_right(extents, after, key=_last)
            headers = [] if at == len(extents) else self.open_extent(extents[at]).headers()
            behind = [one for one in headers if after is None or (one.start, one.end) > after]
            return extents, behind

        return self._until_found(look, known)

    def last_header(self, listing: Listing) -> BatchHeader | None:
        def look(extents: list[Extent]) -> BatchHeader | None:
            return self.open_extent(extents[-1]).last if extents else None

        return self._until_found(look, listing.extents)

    def batch_over(self, offset: int) -> BatchHeader | None:
        """The batch that contains a record, if it exists."""

        def look(extents: list[Extent]) -> BatchHeader | None:
            at = bisect_right(extents, offset, key=_end)
            headers = [] if at == len(extents) else self.open_extent(extents[at]).headers()
            return next((one for one in headers if one.start <= offset < one.end), None)

        return self._until_found(look)

    def read(self, place: Place) -> tuple[BatchHeader, bytes] | None:
        """The batch at this place and its content; CorruptionError if it is damaged."""
        return self._looked_up(place, lambda file, number: file.read(number))

    def bytes_of(self, place: Place) -> int:
        """The size of a batch on disk; 0 if it does not exist."""
        return self._looked_up(place, lambda file, number: file.bytes_of(number)) or 0

    def checksum(self, place: Place) -> tuple[BatchHeader, int] | None:
        """The batch at this place, and the checksum of its stored content."""
        return self._looked_up(place, lambda file, number: file.checksum(number))

    def __contains__(self, place: Place) -> bool:
        return self._looked_up(place, lambda *_: True) is not None

    def path(self, place: Place) -> Path:
        """The file of a batch before it is rolled."""
        return self.directory / batch_name(*place, self.kind.suffix)

    def _looked_up(self, place: Place, look: Callable[[BatchFile, int], _T]) -> _T | None:
        """The result of `look` on the file that holds a batch; None if there is none."""
        looked = self._looked_up_in(self.last_listing().extents, place, look)
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
            file = self.open_extent(extents[at])
            number = file.find(place)
            return None if number is None else look(file, number)

        return self._until_found(look_up, known)

    def _until_found(
        self, look: Callable[[list[Extent]], _T], known: list[Extent] | None = None
    ) -> _T:
        """Retry if a file is gone: its batches are in another file by then."""
        with os_errors("read batches", self.directory):
            for _ in range(_LOOKS):
                try:
                    return look(self.list_files().extents if known is None else known)
                except FileNotFoundError:
                    self.forget_listing()
                    known = None
            return look(self.list_files().extents)

    def open_extent(self, extent: Extent) -> BatchFile:
        path = self.directory / extent.name
        if not extent.name.endswith(ROLLED_SUFFIX):
            return SingleFile(self.kind.single, path, self._store)
        with self._guard:
            file = self._indexes.pop(extent.name, None)
            if file is None:
                file = RolledFile(self.kind.rolled, self.kind.single, path, self._store)
            self._indexes[extent.name] = file  # most recently used last
            if len(self._indexes) > _INDEXES:
                del self._indexes[next(iter(self._indexes))]
        return file

    # Rolling

    def roll(self, may_roll: Callable[[Place], bool] = lambda _: True) -> None:
        """Roll some files into one, if it is due.

        A damaged file is left alone, and so are all files if there is no room for a copy, until
        another process writes here: publishing a batch must not fail because of rolling.
        """
        extents = self.list_files().extents
        stretch = stretch_to_roll(extents, self._file_bytes, self._may_follow)
        if not stretch or not all(may_roll(extent.last) for extent in stretch):
            return
        try:
            self._roll(stretch)
        except OSError:
            self._left_alone.update(extent.name for extent in stretch)
        self.forget_listing()

    def _roll(self, stretch: Sequence[Extent]) -> None:
        batches: list[StoredBatch] = []
        for extent in stretch:
            try:
                batches += self.open_extent(extent).stored_batches()
            except PenstockError:
                self._left_alone.add(extent.name)
                return
        name, content = encode_rolled(self.kind.rolled, batches)
        self._store.publish(self.directory / name, *content)
        for extent in stretch:
            self._store.remove(self.directory / extent.name)
            self._sizes.pop(extent.name, None)

    def sweep(self) -> None:
        """Remove files whose batches are in larger ones."""
        self.forget_listing()
        for name in self.list_files().left_over:
            self._store.remove(self.directory / name)
        self.forget_listing()

    def put_aside(self, offset: int, directory: Path) -> int:
        """Move the batches that end after an offset into another directory; returns how many.

        Other batches of the same rolled file are first written as single files.
        """
        moved = 0
        for extent in [one for one in self.list_files().extents if one.last[1] > offset]:
            if extent.batches == 1:
                moved += 1
            else:
                for batch in self.open_extent(extent).stored_batches():
                    if batch.header.end > offset:
                        moved += 1
                    else:
                        place = (batch.header.start, batch.header.end)
                        self._store.publish(self.path(place), batch.raw)
            self._store.move(self.directory / extent.name, directory / extent.name)
        self.forget_listing()
        return moved

    def _file_bytes(self, extent: Extent) -> int:
        size = self._sizes.get(extent.name)
        if size is None:
            size = self._sizes[extent.name] = self._store.size(self.directory / extent.name)
        return size

    def _may_follow(self, before: Extent, extent: Extent) -> bool:
        """Whether a file can be rolled together with the one before it."""
        if self.kind.without_gaps and extent.first[0] != before.last[1]:
            return False
        return not {before.name, extent.name} & self._left_alone


def _last(extent: Extent) -> Place:
    return extent.last


def _end(extent: Extent) -> int:
    return extent.last[1]
