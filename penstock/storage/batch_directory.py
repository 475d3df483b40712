"""The listing of a directory of batch files, refreshed only if the directory changed."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from penstock.storage.batch_codec import Place, parse_batch_name
from penstock.storage.disk import FileFormat, os_errors
from penstock.storage.file_store import FileStore
from penstock.storage.rolled import ROLLED_SUFFIX, Extent, extents_in_order, parse_rolled_name

# The modification time of a directory moves in ticks of up to 10 ms. A listing made later than this
# after the last change is complete; an earlier one may miss a file of the same tick.
_SETTLED_SECONDS = 1.0
_LISTINGS = 100
"""Maximum number of listings until the directory is stable; its writer changes it every few
milliseconds."""


@dataclass(frozen=True, slots=True)
class BatchKind:
    """What the files of a directory are."""

    single: FileFormat
    suffix: str
    rolled: FileFormat
    without_gaps: bool
    """Whether each batch starts where the one before ended. If so, files are not rolled across a
    gap: the missing ones may be restored."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The content of a directory."""

    extents: list[Extent] = field(default_factory=list)
    """The valid files, in the order of their batches."""
    left_over: list[str] = field(default_factory=list)
    """Files whose batches are also in larger files."""
    others: list[str] = field(default_factory=list)
    """All other names."""

    @property
    def last(self) -> Place | None:
        """The place of the last batch."""
        return self.extents[-1].last if self.extents else None


class BatchDirectory:
    """Not thread-safe: the owning `BatchFiles` serialises access."""

    def __init__(self, directory: Path, kind: BatchKind, store: FileStore) -> None:
        self._path = directory
        self._kind = kind
        self._store = store
        self.last = Listing()
        """The last listing."""
        self._settled_change_ns = -1
        self._extents: dict[str, Extent | None] = {}  # parsed, by name

    def list_files(self) -> Listing:
        with os_errors("read the directory of batches", self._path):
            changed_ns = self._store.changed_ns(self._path)
            if changed_ns == self._settled_change_ns:
                return self.last
            settled = time.time_ns() - changed_ns > _SETTLED_SECONDS * 1e9
            names = self._store.names(self._path)
            if not settled or self._store.changed_ns(self._path) != changed_ns:
                settled, names = False, self._settled_names(names)
            self.last = self._listing_of(names)
            self._settled_change_ns = changed_ns if settled else -1
            return self.last

    def forget(self) -> None:
        """List the directory again the next time."""
        self._settled_change_ns = -1

    def _settled_names(self, names: list[str]) -> list[str]:
        """The names in a directory that is being changed.

        A listing made while files are rolled may miss both the new file and the old ones. The next
        one sees the new file, which was created before the old ones were removed; so two equal
        listings are right.
        """
        for _ in range(_LISTINGS):
            before, names = names, self._store.names(self._path)
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
        if not name.endswith(self._kind.suffix):
            return None
        place = parse_batch_name(name, self._kind.suffix)
        return None if place is None else Extent(place, place, 1, name)
