"""The effects of a change on the content of a query over documents, by evaluating it twice.

One change of a document changes many rows of an unnested relation, so its effects are not those of
one row (`penstock.flow.effects`). For explanations only: it reads all rows of the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from penstock.catalog import Relation, Row, RowKey, Stored
from penstock.catalog.unnested import is_unnested
from penstock.flow.changes import is_same_row
from penstock.flow.derived import rows_of
from penstock.flow.effects import Effect, ask_operators
from penstock.flow.operator_values import OperatorRuntime
from penstock.flow.state import RowStore
from penstock.joins.group import KeyedRow
from penstock.predicates.boxes import Box, contains
from penstock.query import Query
from penstock.spaces import join_value

_Contents: TypeAlias = dict[tuple[RowKey, ...], tuple[Stored, ...]]


def reads_documents(query: Query) -> bool:
    return any(is_unnested(node.relation.name) for node in query.nodes)


def document_effects(
    query: Query,
    rows: RowStore,
    relation: Relation,
    key: RowKey,
    versions: tuple[Row | None, Row | None],
    operators: Callable[[], OperatorRuntime] | None = None,
) -> set[Effect]:
    """The effects on the content when a row of a table changes; `versions` are the row before and
    after."""
    before, after = (
        _contents(query, _Changed(rows, relation, key, row), operators) for row in versions
    )
    found = set()
    if before.keys() - after.keys():
        found.add(Effect.LEAVE)
    if after.keys() - before.keys():
        found.add(Effect.ENTER)
    # NaN equals NaN: rows are compared as their relations compare them.
    if any(_differ(query, before[one], after[one]) for one in before.keys() & after.keys()):
        found.add(Effect.CHANGE)
    return found


def _differ(query: Query, one: Row, other: Row) -> bool:
    shown = tuple(query.nodes[o.node].relation.columns[o.column] for o in query.outputs)
    return not is_same_row(Relation("", shown, ()), one, other)


@dataclass(frozen=True)
class _Changed:
    """The rows of a store, with one row replaced."""

    below: RowStore
    relation: Relation
    key: RowKey
    row: Row | None

    def get(self, relation: Relation, key: RowKey) -> Row | None:
        is_changed = relation.name == self.relation.name and key == self.key
        return self.row if is_changed else self.below.get(relation, key)

    def put(self, relation: Relation, key: RowKey, row: Row | None) -> None:
        raise NotImplementedError("explanations change nothing")

    def rows(self, relation: Relation) -> Iterator[tuple[RowKey, Row]]:
        is_mine = relation.name == self.relation.name
        for key, row in self.below.rows(relation):
            if not is_mine or key != self.key:
                yield key, row
        if is_mine and self.row is not None:
            yield self.key, self.row


def _contents(
    query: Query, rows: RowStore, operators: Callable[[], OperatorRuntime] | None
) -> _Contents:
    """The content: output values by the keys of the joined rows."""
    of_node = [_rows_of_node(rows, node.relation, operators) for node in query.nodes]
    return {
        tuple(key for key, _ in bound): tuple(bound[o.node][1][o.column] for o in query.outputs)
        for branch in query.branches
        for bound in _bound(query, branch, of_node, [])
    }


def _rows_of_node(
    rows: RowStore, relation: Relation, operators: Callable[[], OperatorRuntime] | None
) -> list[KeyedRow]:
    ask = partial(ask_operators, operators, relation)
    return list(rows_of(rows, relation, lambda _: ask))


def _bound(
    query: Query, branch: tuple[Box, ...], of_node: list[list[KeyedRow]], bound: list[KeyedRow]
) -> Iterator[list[KeyedRow]]:
    """All combinations of joining rows that extend the bound ones."""
    node = len(bound)
    if node == len(query.nodes):
        yield bound
        return
    relation = query.nodes[node].relation
    for one in of_node[node]:
        more = [*bound, one]
        if contains(branch[node], relation, one[1]) and _joins(query, node, more):
            yield from _bound(query, branch, of_node, more)


def _joins(query: Query, last: int, bound: list[KeyedRow]) -> bool:
    """Whether the row that was bound last joins those before it."""
    for join in query.joins:
        if max(join.left, join.right) == last:
            left, right = (
                join_value(
                    query.nodes[node].relation, tuple(pair[side] for pair in join.columns), row
                )
                for side, node, (_, row) in (
                    (0, join.left, bound[join.left]),
                    (1, join.right, bound[join.right]),
                )
            )
            if left is None or left != right:
                return False
    return True
