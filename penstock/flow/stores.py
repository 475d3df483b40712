"""Rows and groups over a key-value state, one entry for each row.

A batch works on decoded rows and groups, and writes changes at its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from operator import add, itemgetter, methodcaller
from typing import Any, Protocol, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from penstock.catalog import Relation, Row, RowKey
from penstock.flow.changes import Delta
from penstock.flow.kinds import StreamEvents
from penstock.flow.streams import is_keyless_stream
from penstock.joins import Group
from penstock.joins.packed import MemberPlaces, Members
from penstock.packing import pack, read_extension
from penstock.spaces import Edge, JoinValue

MAX_KEY_BYTES = 400
"""Longer keys are replaced by a digest: the mirror's limit is 511 bytes."""

_DIGEST_MARK = b"\xc1"  # never begins a packed value
Flags: TypeAlias = npt.NDArray[np.bool_]
_Values = tuple[Any, ...]
_decode_row = msgspec.msgpack.Decoder(tuple[_Values, _Values], ext_hook=read_extension).decode
_decode_member = msgspec.msgpack.Decoder(
    tuple[_Values, _Values, _Values], ext_hook=read_extension
).decode

_Sides: TypeAlias = tuple[dict[RowKey, Row], dict[RowKey, Row]]


class Entries(Protocol):
    """A map from bytes to bytes."""

    def get(self, key: bytes) -> bytes | None: ...

    def put(self, key: bytes, value: bytes | None) -> None: ...

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]: ...


class ManyEntries(Entries, Protocol):
    """`Entries` with bulk operations: `BucketState`."""

    def get_many(self, keys: list[bytes]) -> dict[bytes, bytes]: ...

    def put_many(self, entries: Iterable[tuple[bytes, bytes]]) -> None: ...

    def drop_many(self, keys: Iterable[bytes]) -> None: ...

    def groups(self, prefixes: Iterable[bytes]) -> tuple[list[tuple[bytes, bytes]], list[int]]: ...


@dataclass(slots=True)
class _Table:
    """The rows of one relation that a batch has read or changed."""

    prefix: bytes
    known: dict[RowKey, Row | None] = field(default_factory=dict)
    changed: set[RowKey] = field(default_factory=set)


class StoredRows:
    """The rows of one bucket: a `RowStore`, and for packed rows a `PackedRows`.

    In one batch, a relation is used in one of the two ways only.
    """

    def __init__(self, entries: ManyEntries) -> None:
        self._entries = entries
        self._tables: dict[str, _Table] = {}

    def get(self, relation: Relation, key: RowKey) -> Row | None:
        table = self._tables.get(relation.name) or self._table(relation)
        known = table.known
        row = known.get(key)
        if row is None and key not in known:
            data = self._entries.get(table.prefix + _key_bytes(key))
            row = known[key] = None if data is None else _decode_row(data)[1]
        return row

    def put(self, relation: Relation, key: RowKey, row: Row | None) -> None:
        table = self._tables.get(relation.name) or self._table(relation)
        table.known[key] = row
        table.changed.add(key)

    def keep_events(self, first_offset: int, events: bytes | StreamEvents) -> None:
        """Store events of a keyless stream, which never change."""
        data = events if isinstance(events, bytes) else events.to_bytes()
        place = _events_prefix(StreamEvents.read(events).stream) + first_offset.to_bytes(8)
        self._entries.put(place, data)

    def note(self, deltas: list[Delta]) -> None:
        """Ignored."""

    def rows(self, relation: Relation) -> Iterator[tuple[RowKey, Row]]:
        """All rows of a relation, as they are now."""
        if is_keyless_stream(relation):
            for _, data in self._entries.scan(_events_prefix(relation.name)):
                yield from (((offset,), row) for offset, row in StreamEvents.read(data).events)
        table = self._table(relation)
        changed = {table.prefix + _key_bytes(key) for key in table.changed}
        for place, data in self._entries.scan(table.prefix):
            if place not in changed:
                yield _decode_row(data)
        for key in table.changed:
            row = table.known[key]
            if row is not None:
                yield key, row

    def packed(self, relation: Relation, keys: list[bytes]) -> tuple[list[bytes], Flags]:
        """The stored entries of these packed keys, and which of the keys have one."""
        places = self._places(relation, keys)
        found = self._entries.get_many(places)
        is_there = np.fromiter(map(found.__contains__, places), np.bool_, len(places))
        return list(found.values()), is_there

    def keep(self, relation: Relation, keys: Iterable[bytes], entries: Iterable[bytes]) -> None:
        """Store packed rows with their keys."""
        self._entries.put_many(zip(self._places(relation, keys), entries, strict=True))

    def drop(self, relation: Relation, keys: Iterable[bytes]) -> None:
        self._entries.drop_many(self._places(relation, keys))

    def _places(self, relation: Relation, keys: Iterable[bytes]) -> list[bytes]:
        return list(map(self._table(relation).prefix.__add__, _limited(list(keys))))

    def flush(self) -> None:
        for table in self._tables.values():
            for key in table.changed:
                row = table.known[key]
                place = table.prefix + _key_bytes(key)
                self._entries.put(place, None if row is None else pack((key, row)))
            table.changed.clear()

    def _table(self, relation: Relation) -> _Table:
        table = self._tables.get(relation.name)
        if table is None:
            table = self._tables[relation.name] = _Table(_digest(relation.name.encode(), 8))
        return table


@dataclass(slots=True)
class _Held:
    """A decoded group, and its rows as they are stored."""

    value: JoinValue
    group: Group
    stored: _Sides


class StoredGroups:
    """The groups of one bucket: a `GroupStore`, and for packed rows a `PackedGroups`.

    In one batch, an edge is used in one of the two ways only.
    """

    def __init__(self, entries: ManyEntries) -> None:
        self._entries = entries
        self._edges: dict[str, bytes] = {}
        self._held: dict[bytes, _Held] = {}

    def get(self, edge: Edge, value: JoinValue) -> Group:
        place = self._place(edge, value)
        held = self._held.get(place)
        if held is None:
            sides: _Sides = ({}, {})
            for stored_at, data in self._entries.scan(place):
                _, key, row = _decode_member(data)
                sides[stored_at[len(place)]][key] = row
            held = self._hold(place, value, sides)
        return held.group

    def put(self, edge: Edge, value: JoinValue, group: Group) -> None:
        self.get(edge, value)
        self._held[self._place(edge, value)].group = group

    def groups(self, edge: Edge) -> Iterator[tuple[JoinValue, Group]]:
        """All groups of an edge, as they are now."""
        prefix = self._edge(edge)
        for place, value, sides in self._stored_groups(prefix):
            if place not in self._held:
                yield value, Group(sides)
        for place, held in list(self._held.items()):
            if place.startswith(prefix) and not held.group.is_empty:
                yield held.value, held.group

    def clear(self, edge: Edge) -> None:
        """Drop all groups of an edge that is not used in this batch yet."""
        for place, value, sides in self._stored_groups(self._edge(edge)):
            self._held[place] = _Held(value, Group(), sides)

    def flush(self) -> None:
        for place, held in self._held.items():
            for side, (before, now) in enumerate(zip(held.stored, held.group.sides, strict=True)):
                start = place + bytes([side])
                for key, row in now.items():
                    # Unchanged rows are the same objects.
                    if before.get(key) is not row:
                        self._entries.put(start + _key_bytes(key), pack((held.value, key, row)))
                for key in before.keys() - now.keys():
                    self._entries.put(start + _key_bytes(key), None)
            held.stored = (dict(held.group.sides[0]), dict(held.group.sides[1]))

    def members(self, edge: Edge, values: Iterable[bytes]) -> Members:
        """The stored members of the groups with these packed join values."""
        found, counts = self._entries.groups(self._places(edge, values))
        sides = map(itemgetter(_GROUP_BYTES), map(itemgetter(0), found))
        return Members(
            list(map(itemgetter(1), found)),
            np.fromiter(sides, np.int64, len(found)),
            np.array(counts, np.int64),
        )

    def keep(self, edge: Edge, places: MemberPlaces, entries: Iterable[bytes]) -> None:
        """Store packed members."""
        self._entries.put_many(zip(self._member_places(edge, places), entries, strict=True))

    def drop(self, edge: Edge, places: MemberPlaces) -> None:
        self._entries.drop_many(self._member_places(edge, places))

    def _member_places(self, edge: Edge, places: MemberPlaces) -> Iterable[bytes]:
        groups = np.array(self._places(edge, places.values), object)[places.groups]
        sides = np.array([b"\x00", b"\x01"], object)[places.sides]
        return map(add, map(add, groups.tolist(), sides.tolist()), _limited(list(places.keys)))

    def _places(self, edge: Edge, values: Iterable[bytes]) -> list[bytes]:
        return list(map(self._edge(edge).__add__, map(_DIGEST_OF, map(_HASHED, values))))

    def _hold(self, place: bytes, value: JoinValue, sides: _Sides) -> _Held:
        stored = (dict(sides[0]), dict(sides[1]))
        held = self._held[place] = _Held(value, Group(sides), stored)
        return held

    def _stored_groups(self, prefix: bytes) -> Iterator[tuple[bytes, JoinValue, _Sides]]:
        """The groups in the state, one after the other."""
        current, value = b"", ()
        sides: _Sides = ({}, {})
        for stored_at, data in self._entries.scan(prefix):
            place = stored_at[:_GROUP_BYTES]
            if place != current and current:
                yield current, value, sides
                sides = ({}, {})
            current = place
            value, key, row = _decode_member(data)
            sides[stored_at[_GROUP_BYTES]][key] = row
        if current:
            yield current, value, sides

    def _place(self, edge: Edge, value: JoinValue) -> bytes:
        return self._places(edge, [pack(value)])[0]

    def _edge(self, edge: Edge) -> bytes:
        prefix = self._edges.get(edge.name)
        if prefix is None:
            prefix = self._edges[edge.name] = _digest(edge.name.encode(), 8)
        return prefix


_GROUP_BYTES = 8 + 16
_HASHED, _DIGEST_OF = partial(blake2b, digest_size=16), methodcaller("digest")


def _events_prefix(stream: str) -> bytes:
    return _digest(b"events of " + stream.encode(), 8)


def _digest(data: bytes, size: int) -> bytes:
    return blake2b(data, digest_size=size).digest()


def _key_bytes(key: RowKey) -> bytes:
    return _limited([pack(key)])[0]


def _limited(keys: list[bytes]) -> list[bytes]:
    """Packed keys as they occur in places; long ones as digests."""
    if max(map(len, keys), default=0) <= MAX_KEY_BYTES:
        return keys
    return [key if len(key) <= MAX_KEY_BYTES else _DIGEST_MARK + _digest(key, 32) for key in keys]
