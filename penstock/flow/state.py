"""Interfaces of the state of stages, independent of where rows and groups are stored."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Protocol

from penstock.catalog import Relation, Row, RowKey
from penstock.joins import Group
from penstock.spaces import Edge, JoinValue

ROWS_AT_ONCE = 4096


class RowStore(Protocol):
    """The current rows of the tables (or of one partition of them)."""

    def get(self, relation: Relation, key: RowKey) -> Row | None: ...

    def put(self, relation: Relation, key: RowKey, row: Row | None) -> None: ...

    def rows(self, relation: Relation) -> Iterator[tuple[RowKey, Row]]: ...


class GroupStore(Protocol):
    """The groups of all edges (or of one partition of them)."""

    def get(self, edge: Edge, value: JoinValue) -> Group: ...

    def put(self, edge: Edge, value: JoinValue, group: Group) -> None: ...

    def groups(self, edge: Edge) -> Iterator[tuple[JoinValue, Group]]: ...


def in_parts(rows: Iterator[tuple[RowKey, Row]]) -> Iterator[list[tuple[RowKey, Row]]]:
    """Rows of a store, in parts that are large enough for a call and bound memory."""
    while part := list(islice(rows, ROWS_AT_ONCE)):
        yield part
