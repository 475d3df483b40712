"""State in dictionaries: the Hub's stores, and copy-on-write stores for attempts."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.catalog import Relation, Row, RowKey
from penstock.flow.changes import Delta
from penstock.flow.kinds import StreamEvents
from penstock.flow.state import GroupStore, RowStore
from penstock.joins import Group
from penstock.spaces import Edge, JoinValue


class MemoryRows:
    def __init__(self) -> None:
        self._tables: dict[str, dict[RowKey, Row]] = {}

    def get(self, relation: Relation, key: RowKey) -> Row | None:
        return self._tables.get(relation.name, {}).get(key)

    def put(self, relation: Relation, key: RowKey, row: Row | None) -> None:
        table = self._tables.setdefault(relation.name, {})
        if row is None:
            table.pop(key, None)
        else:
            table[key] = row

    def keep_events(self, _first_offset: int, events: bytes | StreamEvents) -> None:
        stream, kept = StreamEvents.read(events)
        self._tables.setdefault(stream, {}).update(((offset,), row) for offset, row in kept)

    def note(self, deltas: list[Delta]) -> None:
        """Ignored."""

    def rows(self, relation: Relation) -> Iterator[tuple[RowKey, Row]]:
        return iter(self._tables.get(relation.name, {}).items())


class MemoryGroups:
    def __init__(self) -> None:
        self._edges: dict[Edge, dict[JoinValue, Group]] = {}

    def get(self, edge: Edge, value: JoinValue) -> Group:
        return self._edges.get(edge, {}).get(value) or Group()

    def put(self, edge: Edge, value: JoinValue, group: Group) -> None:
        groups = self._edges.setdefault(edge, {})
        if group.is_empty:
            groups.pop(value, None)
        else:
            groups[value] = group

    def groups(self, edge: Edge) -> Iterator[tuple[JoinValue, Group]]:
        return iter(self._edges.get(edge, {}).items())

    def clear(self, edge: Edge) -> None:
        self._edges.pop(edge, None)


class RowsAside:
    """Copy-on-write rows: changes do not affect the store below."""

    def __init__(self, below: RowStore) -> None:
        self._below = below
        self._changed: dict[tuple[str, RowKey], Row | None] = {}

    def get(self, relation: Relation, key: RowKey) -> Row | None:
        place = (relation.name, key)
        return self._changed[place] if place in self._changed else self._below.get(relation, key)

    def put(self, relation: Relation, key: RowKey, row: Row | None) -> None:
        self._changed[relation.name, key] = row

    def keep_events(self, _first_offset: int, events: bytes | StreamEvents) -> None:
        stream, kept = StreamEvents.read(events)
        self._changed.update(((stream, (offset,)), row) for offset, row in kept)

    def note(self, deltas: list[Delta]) -> None:
        """Ignored."""

    def rows(self, relation: Relation) -> Iterator[tuple[RowKey, Row]]:
        for key, row in self._below.rows(relation):
            if (relation.name, key) not in self._changed:
                yield key, row
        for (name, key), changed in self._changed.items():
            if name == relation.name and changed is not None:
                yield key, changed


class GroupsAside:
    """Copy-on-write groups: changes do not affect the store below."""

    def __init__(self, below: GroupStore) -> None:
        self._below = below
        self._taken: dict[tuple[Edge, JoinValue], Group] = {}

    def get(self, edge: Edge, value: JoinValue) -> Group:
        place = (edge, value)
        if place not in self._taken:
            left, right = self._below.get(edge, value).sides
            self._taken[place] = Group((dict(left), dict(right)))
        return self._taken[place]

    def put(self, edge: Edge, value: JoinValue, group: Group) -> None:
        self._taken[edge, value] = group

    def groups(self, edge: Edge) -> Iterator[tuple[JoinValue, Group]]:
        for value, group in self._below.groups(edge):
            if (edge, value) not in self._taken:
                yield value, group
        for (taken_edge, value), group in self._taken.items():
            if taken_edge == edge and not group.is_empty:
                yield value, group

    def clear(self, edge: Edge) -> None:
        for value, _ in self._below.groups(edge):
            self._taken[edge, value] = Group()
