"""A bound SELECT: a subscription's text resolved against the catalog."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from penstock.catalog import Catalog, Relation
from penstock.catalog.derived import ExtendedRelation
from penstock.catalog.payload_split import columns_like, is_payload
from penstock.predicates.boxes import Box
from penstock.predicates.intervals import Cut, Interval

MAX_TABLES = 32
"""Maximum per query."""


@dataclass(frozen=True)
class Node:
    """One occurrence of a relation in FROM; a self-join has two nodes of one relation."""

    alias: str
    relation: Relation


@dataclass(frozen=True, slots=True)
class Join:
    """All equalities between two nodes: pairs of (column of left, column of right), sorted."""

    left: int
    right: int
    columns: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the content, under the name the SELECT gives it."""

    label: str
    node: int
    column: int


@dataclass(frozen=True)
class Query:
    """Nodes joined by equalities, and the union of branches that rows must satisfy.

    A branch holds one box per node. A query without branches can never match; that is legal, and
    reported in `warnings`. At most one Join connects two nodes, the smaller node on the left; the
    graph of joins is connected and may have cycles.
    """

    sql: str
    nodes: tuple[Node, ...]
    joins: tuple[Join, ...]
    branches: tuple[tuple[Box, ...], ...]
    outputs: tuple[Output, ...]
    warnings: tuple[str, ...] = ()

    @cached_property
    def key_nodes(self) -> tuple[int, ...]:
        """The nodes whose row keys identify a row of the content. A payload belongs to the row that
        has it."""
        names = (node.relation.name for node in self.nodes)
        return tuple(i for i, name in enumerate(names) if not is_payload(name))


def calls_operators(query: Query) -> bool:
    """Whether some of its conditions use columns computed by operators."""
    return any(one.lazy_columns for one in extended_relations(query))


def extended_relations(query: Query) -> list[ExtendedRelation]:
    """The relations with derived columns that a query reads, or whose halves it reads."""
    relations = (columns_like(node.relation) for node in query.nodes)
    return [one for one in relations if isinstance(one, ExtendedRelation)]


def plain_query(query: Query) -> list[object]:
    """The query as plain lists, for storing; relations by name."""
    return [
        query.sql,
        [[node.alias, node.relation.name] for node in query.nodes],
        [[join.left, join.right, join.columns] for join in query.joins],
        [[[(c, i.low, i.high) for c, i in one] for one in b] for b in query.branches],
        [[output.label, output.node, output.column] for output in query.outputs],
        list(query.warnings),
    ]


def query_from_plain(plain: Any, catalog: Catalog) -> Query:
    sql, nodes, joins, branches, outputs, warnings = plain
    return Query(
        sql=sql,
        nodes=tuple(Node(alias, catalog[name]) for alias, name in nodes),
        joins=tuple(Join(a, b, tuple((x, y) for x, y in pairs)) for a, b, pairs in joins),
        branches=tuple(
            tuple(
                tuple((c, Interval(_cut(low), _cut(high))) for c, low, high in one)
                for one in branch
            )
            for branch in branches
        ),
        outputs=tuple(Output(*output) for output in outputs),
        warnings=tuple(warnings),
    )


def _cut(plain: Any) -> Cut:
    return tuple(plain)
