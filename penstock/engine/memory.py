"""State in dictionaries: what the Hub hands to the stages."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.catalog import Relation, Row, RowKey
from penstock.joins import Edge, Group, JoinValue


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
