"""Ways to cut the state of a bucket into entries of Spark's state store.

=======  ==========================================================================================
blobs    what the pipeline does: blobs of changes, read from a copy on the machine
rows     an entry for each row; a group is found by going through its bucket
keyed    an entry for each row, and every join value is a state key of its own, as the examples of
         Spark do it: a group is found by its key
groups   an entry for each join value, with all its rows
whole    one entry for each bucket, read and written whole
nothing  no state at all: what Spark takes to move the changes
=======  ==========================================================================================

All are a map from bytes to bytes, like `penstock.pipeline.state.BucketState`: writes are stored
when the batch ends, and a scan shows the state before it. Keys begin with `PREFIX_BYTES` that name
a join value, as those of `StoredGroups` do.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeAlias

import msgspec

from penstock.flow.stores import Entries
from penstock.packing import pack
from penstock.pipeline.buckets import spread_of
from penstock.pipeline.state import BucketState, Mirror, StoredMap, mirror_directory
from penstock.storage import DEFAULT_BUCKETS

PREFIX_BYTES = 8 + 16

_Map: TypeAlias = dict[bytes, bytes]
_decode = msgspec.msgpack.Decoder(dict[bytes, bytes]).decode


class _Layout(Entries, Protocol):
    """Entries that must be notified when the batch has ended."""

    def store(self) -> None: ...


@contextmanager
def opened(layout: str, stored: StoredMap, place: int, term: str) -> Iterator[Entries]:
    """The state of one state key, for the duration of a batch."""
    if layout == "blobs":
        mirror = Mirror(mirror_directory(term) / f"groups-{place}")
        with BucketState.opened(
            stored, mirror, rewrite_ratio=1 + spread_of(DEFAULT_BUCKETS).phase(place)
        ) as state:
            yield state
        return
    entries = _LAYOUTS[layout](stored)
    yield entries
    entries.store()


class _Rows:
    """An entry for each row. The store supports single lookups and full scans, nothing in
    between."""

    def __init__(self, stored: StoredMap) -> None:
        self._stored = stored
        self._changed: dict[bytes, bytes | None] = {}
        self._sorted: list[tuple[bytes, bytes]] | None = None

    def get(self, key: bytes) -> bytes | None:
        if key in self._changed:
            return self._changed[key]
        return _found(self._stored, "row", key)

    def put(self, key: bytes, value: bytes | None) -> None:
        self._changed[key] = value

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        if self._sorted is None:
            everything = self._stored.iterator()
            self._sorted = sorted((bytes(key), bytes(value)) for (_, key), (value,) in everything)
        return _with_prefix(self._sorted, prefix)

    def store(self) -> None:
        for key, value in self._changed.items():
            if value is not None:
                self._stored.updateValue(("row", key), (value,))
            elif _found(self._stored, "row", key) is not None:
                self._stored.removeKey(("row", key))


class _Groups:
    """An entry for each join value."""

    def __init__(self, stored: StoredMap) -> None:
        self._stored = stored
        self._groups: dict[bytes, _Map] = {}
        self._changed: dict[bytes, dict[bytes, bytes | None]] = {}

    def get(self, key: bytes) -> bytes | None:
        prefix = key[:PREFIX_BYTES]
        changed = self._changed.get(prefix, {})
        return changed[key] if key in changed else self._group(prefix).get(key)

    def put(self, key: bytes, value: bytes | None) -> None:
        self._changed.setdefault(key[:PREFIX_BYTES], {})[key] = value

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        if len(prefix) >= PREFIX_BYTES:
            group = self._group(prefix[:PREFIX_BYTES])
            yield from _with_prefix(sorted(group.items()), prefix)
            return
        for (_, _), (blob,) in self._stored.iterator():
            yield from _with_prefix(sorted(_decode(blob).items()), prefix)

    def store(self) -> None:
        for prefix, changed in self._changed.items():
            group = self._group(prefix)
            existed = bool(group)
            _apply(group, changed)
            if group:
                self._stored.updateValue(("group", prefix), (pack(group),))
            elif existed:
                self._stored.removeKey(("group", prefix))

    def _group(self, prefix: bytes) -> _Map:
        group = self._groups.get(prefix)
        if group is None:
            blob = _found(self._stored, "group", prefix)
            group = self._groups[prefix] = {} if blob is None else _decode(blob)
        return group


class _Whole:
    """One entry."""

    def __init__(self, stored: StoredMap) -> None:
        self._stored = stored
        blob = _found(stored, "whole", b"")
        self._map: _Map = {} if blob is None else _decode(blob)
        self._changed: dict[bytes, bytes | None] = {}
        self._sorted: list[tuple[bytes, bytes]] | None = None

    def get(self, key: bytes) -> bytes | None:
        return self._changed[key] if key in self._changed else self._map.get(key)

    def put(self, key: bytes, value: bytes | None) -> None:
        self._changed[key] = value

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        if self._sorted is None:
            self._sorted = sorted(self._map.items())
        return _with_prefix(self._sorted, prefix)

    def store(self) -> None:
        if self._changed:
            _apply(self._map, self._changed)
            self._stored.updateValue(("whole", b""), (pack(self._map),))


class _Nothing:
    """Discards everything."""

    def __init__(self, stored: StoredMap) -> None:
        pass

    def get(self, key: bytes) -> bytes | None:
        return None

    def put(self, key: bytes, value: bytes | None) -> None:
        pass

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        return iter(())

    def store(self) -> None:
        pass


_LAYOUTS: dict[str, Callable[[StoredMap], _Layout]] = {
    "rows": _Rows,
    "keyed": _Rows,
    "groups": _Groups,
    "whole": _Whole,
    "nothing": _Nothing,
}
LAYOUTS = ("blobs", *_LAYOUTS)


def _found(stored: StoredMap, name: str, key: bytes) -> bytes | None:
    found = stored.getValue((name, key))
    return None if found is None else bytes(found[0])


def _apply(entries: _Map, changed: dict[bytes, bytes | None]) -> None:
    for key, value in changed.items():
        if value is None:
            entries.pop(key, None)
        else:
            entries[key] = value


def _with_prefix(
    entries: list[tuple[bytes, bytes]], prefix: bytes
) -> Iterator[tuple[bytes, bytes]]:
    for i in range(bisect_left(entries, (prefix, b"")), len(entries)):
        if not entries[i][0].startswith(prefix):
            return
        yield entries[i]
