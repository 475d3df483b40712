"""From tables and expressions over them to relations with derived columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from penstock.catalog.derived import Definition, definition_order, extend
from penstock.catalog.unnested import UnnestedRelation, unnest
from penstock.predicates.boxes import Box
from penstock.query import Node, Query
from penstock.sql.scope import FIRST_DERIVED


def with_derived(query: Query, derived: Sequence[Sequence[Definition]]) -> Query:
    """The query over relations that have the derived columns it uses after those of its tables,
    node by node, and without documents that it does not read."""
    query = _without_documents(query, derived)
    if not any(derived):
        return query
    needed = [_needed(query, node, mine) for node, mine in enumerate(derived)]
    pairs = list(zip(query.nodes, derived, needed, strict=True))
    nodes = tuple(_extended(node, mine) for node, _, mine in pairs)
    moves = [_move(node, bound, mine) for node, bound, mine in pairs]
    return replace(
        query,
        nodes=nodes,
        branches=tuple(
            tuple(_moved(box, move) for box, move in zip(branch, moves, strict=True))
            for branch in query.branches
        ),
        outputs=tuple(replace(one, column=moves[one.node](one.column)) for one in query.outputs),
    )


def _needed(query: Query, node: int, derived: Sequence[Definition]) -> list[Definition]:
    """The definitions that are still used by a condition or an output, in their order."""
    used = _used(query, node)
    needed = (one for i, one in enumerate(derived) if FIRST_DERIVED + i in used)
    return sorted(needed, key=definition_order)


def _used(query: Query, node: int) -> set[int]:
    """The columns of a node that conditions and outputs use."""
    used = {column for branch in query.branches for column, _ in branch[node]}
    return used | {one.column for one in query.outputs if one.node == node}


def _without_documents(query: Query, derived: Sequence[Sequence[Definition]]) -> Query:
    """The same over unnested relations without the documents that the query does not read."""
    nodes = list(query.nodes)
    for number, node in enumerate(query.nodes):
        relation = node.relation
        if isinstance(relation, UnnestedRelation):
            read = {column for one in derived[number] for column in one.reads}
            read |= _used(query, number)
            omitted = tuple(i for i in relation.document_columns if i not in read)
            nodes[number] = Node(node.alias, unnest(relation.base, relation.tables, omitted))
    return query if nodes == list(query.nodes) else replace(query, nodes=tuple(nodes))


def _extended(node: Node, needed: Sequence[Definition]) -> Node:
    return Node(node.alias, extend(node.relation, tuple(needed))) if needed else node


def _move(
    node: Node, bound: Sequence[Definition], needed: Sequence[Definition]
) -> Callable[[int], int]:
    """The final position of a used column, given the position at which it was bound."""
    first = len(node.relation.columns)

    def move(column: int) -> int:
        if column < FIRST_DERIVED:
            return column
        return first + needed.index(bound[column - FIRST_DERIVED])

    return move


def _moved(box: Box, move: Callable[[int], int]) -> Box:
    return tuple(sorted((move(column), interval) for column, interval in box))
