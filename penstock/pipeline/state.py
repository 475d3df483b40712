"""The state of the stages in Spark's state store: one entry per row, one per group.

Every access to the store is a round trip between Python and Java. So a batch reads each entry at
most once, works on the copy it holds, and writes what has changed at its end. Going through all
entries is done in one sweep, and only when a new subscription needs what is there.

Both layouts are one map from (name, key) to a value, so that another layout (docs/notes/
state-layout.md) has to replace `CachedMap` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeAlias, TypeVar

from penstock.catalog import Relation, Row, RowKey
from penstock.joins import Edge, Group, JoinValue
from penstock.packing import pack, unpack

Value = TypeVar("Value")
_Key: TypeAlias = tuple[str, bytes]


class StoredMap(Protocol):
    """The part of Spark's MapState that is used here."""

    def getValue(self, key: tuple[str, bytes]) -> tuple[bytes] | None: ...  # noqa: N802

    def updateValue(self, key: tuple[str, bytes], value: tuple[bytes]) -> None: ...  # noqa: N802

    def removeKey(self, key: tuple[str, bytes]) -> None: ...  # noqa: N802

    def iterator(self) -> Iterator[tuple[tuple[str, bytes], tuple[bytes]]]: ...


class CachedMap(Generic[Value]):
    """A stored map for the length of a batch. Nothing is stored before `flush`."""

    def __init__(
        self,
        stored: StoredMap,
        encode: Callable[[Value], bytes],
        decode: Callable[[bytes], Value],
    ) -> None:
        self._stored = stored
        self._encode = encode
        self._decode = decode
        self._values: dict[_Key, Value | None] = {}  # None: known not to be there
        self._was_stored: set[_Key] = set()
        self._changed: set[_Key] = set()
        self._swept: dict[str, dict[bytes, bytes]] | None = None

    def get(self, name: str, key: bytes) -> Value | None:
        place = (name, key)
        if place not in self._values:
            data = self._data(place)
            self._values[place] = None if data is None else self._decode(data)
            if data is not None:
                self._was_stored.add(place)
        return self._values[place]

    def put(self, name: str, key: bytes, value: Value | None) -> None:
        self.get(name, key)  # whether it was stored decides what to do in the end
        self._values[name, key] = value
        self._changed.add((name, key))

    def items(self, name: str) -> Iterator[tuple[bytes, Value]]:
        """All entries of a name, as they are now."""
        if self._swept is None:
            self._sweep()
        assert self._swept is not None
        keys = dict.fromkeys(self._swept.get(name, ()))
        keys |= dict.fromkeys(key for known, key in self._values if known == name)
        for key in keys:
            value = self.get(name, key)
            if value is not None:
                yield key, value

    def flush(self) -> None:
        """Store what has changed."""
        for place in sorted(self._changed):
            value = self._values[place]
            if value is not None:
                self._stored.updateValue(place, (self._encode(value),))
            elif place in self._was_stored:
                self._stored.removeKey(place)
        self._changed.clear()

    def _data(self, place: _Key) -> bytes | None:
        if self._swept is not None:
            return self._swept.get(place[0], {}).get(place[1])
        found = self._stored.getValue(place)
        return None if found is None else bytes(found[0])

    def _sweep(self) -> None:
        self._swept = {}
        for (name, key), (data,) in self._stored.iterator():
            self._swept.setdefault(name, {})[bytes(key)] = bytes(data)


class StoredRows:
    """The rows of one bucket: a `RowStore`."""

    def __init__(self, stored: StoredMap) -> None:
        self._map: CachedMap[Row] = CachedMap(stored, pack, lambda data: tuple(unpack(data)))

    def get(self, relation: Relation, key: RowKey) -> Row | None:
        return self._map.get(relation.name, pack(key))

    def put(self, relation: Relation, key: RowKey, row: Row | None) -> None:
        self._map.put(relation.name, pack(key), row)

    def rows(self, relation: Relation) -> Iterator[tuple[RowKey, Row]]:
        for key, row in self._map.items(relation.name):
            yield tuple(unpack(key)), row

    def flush(self) -> None:
        self._map.flush()


class StoredGroups:
    """The groups of one bucket: a `GroupStore`."""

    def __init__(self, stored: StoredMap) -> None:
        self._map: CachedMap[Group] = CachedMap(stored, Group.to_bytes, Group.from_bytes)

    def get(self, edge: Edge, value: JoinValue) -> Group:
        return self._map.get(edge.name, pack(value)) or Group()

    def put(self, edge: Edge, value: JoinValue, group: Group) -> None:
        self._map.put(edge.name, pack(value), None if group.is_empty else group)

    def groups(self, edge: Edge) -> Iterator[tuple[JoinValue, Group]]:
        for value, group in self._map.items(edge.name):
            yield tuple(unpack(value)), group

    def flush(self) -> None:
        self._map.flush()
