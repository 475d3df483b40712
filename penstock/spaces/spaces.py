"""Spaces: the coordinate systems in which subscriptions are points.

A subscription over one table has one point per branch in that table's own space. A subscription
over several tables is split into select-semijoins, one per node (Chandramouli and Yang, 2008):
the rows of the base node that satisfy its box and have a joining row in one neighbour, the filter,
whose values in some columns lie in the filter intervals. All semijoins with the same base, the same
join condition and the same filter columns share one space, whichever queries they come from. Which
neighbour and which columns is the subscription's decomposition (`penstock.joins.decomposition`).

Filtering by a single neighbour and some of its columns may keep rows that the whole query does not
need, never fewer than it needs; the client joins what it holds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

from penstock.catalog import Key, Relation, Row, Stored
from penstock.messages import Point, PointId
from penstock.predicates.boxes import interval_of
from penstock.predicates.intervals import EVERYTHING
from penstock.query import Join, Query
from penstock.spaces.decomposition import Choice, Decomposition, decomposition_of

JoinValue: TypeAlias = tuple[Key, ...]

MAX_KNOWN = 10_000
"""Size of the caches of spaces and edges."""


@dataclass(frozen=True, slots=True, order=True)
class Side:
    """One end of an edge: the columns of a table that are compared."""

    table: str
    columns: tuple[int, ...]


@dataclass(frozen=True)
class Edge:
    """A join condition between two tables, shared by all queries that have it.

    The sides are in a canonical order. In a self-join one table feeds both sides.
    """

    sides: tuple[Side, Side]

    def __hash__(self) -> int:
        return hash(self.name)  # cached

    @cached_property
    def name(self) -> str:
        return "=".join(f"{s.table}({','.join(map(str, s.columns))})" for s in self.sides)


@dataclass(frozen=True)
class Space:
    """The space of one kind of semijoin; without an edge, of one table's selections.

    `attribute` is the first column of the filter table that bounds the filter, `more` are the
    others: most spaces have none.
    """

    table: str
    edge: Edge | None = None
    side: int = 0
    attribute: int | None = None
    more: tuple[int, ...] = ()

    @cached_property
    def name(self) -> str:
        if self.edge is None:
            return self.table
        return f"{self.edge.name}/{self.side}/{','.join(map(str, self.attributes))}"

    @property
    def attributes(self) -> tuple[int, ...]:
        """All filter columns."""
        return self.more if self.attribute is None else (self.attribute, *self.more)

    @cached_property
    def id(self) -> int:
        """A stable number, the same in every process, by which messages refer to spaces."""
        digest = hashlib.blake2b(self.name.encode(), digest_size=8).digest()
        return int.from_bytes(digest) >> 1

    @property
    def base_side(self) -> Side:
        assert self.edge is not None
        return self.edge.sides[self.side]

    @property
    def filter_side(self) -> Side:
        assert self.edge is not None
        return self.edge.sides[1 - self.side]


def join_value(relation: Relation, columns: tuple[int, ...], row: Row) -> JoinValue | None:
    """The join value of a row, in comparable form; None if a column is NULL: it joins nothing."""
    keys = []
    for column in columns:
        value = row[column]
        if value is None:
            return None
        keys.append(relation.columns[column].type.join_key(value))
    return tuple(keys)


def joiner(relation: Relation, columns: tuple[int, ...]) -> Callable[[Row], JoinValue | None]:
    """`join_value` for many rows of one relation."""
    if len(columns) != 1:
        return lambda row: join_value(relation, columns, row)
    (column,) = columns
    known: dict[Stored, JoinValue | None] = {None: None}  # equal values have equal keys

    def join_value_of(row: Row) -> JoinValue | None:
        value = row[column]
        found = known.get(value)
        if found is None and value is not None:
            found = known[value] = join_value(relation, columns, row)
        return found

    return join_value_of


@dataclass(frozen=True, slots=True)
class Placed:
    """A point and its space."""

    space: Space
    point: Point


def place(
    query: Query,
    subscription: int,
    chosen: Decomposition | None = None,
    *,
    changes_only: bool = False,
) -> list[Placed]:
    """All points of a subscription, one per branch and node, according to its decomposition.

    `changes_only` is possible over one table only: a join must hold the rows to be joined.
    """
    if len(query.nodes) == 1:
        space = Space(query.nodes[0].relation.name)
        ids = [PointId(subscription, b, 0) for b in range(len(query.branches))]
        return [
            Placed(space, Point(i, space.id, branch[0], EVERYTHING, (), changes_only))
            for i, branch in zip(ids, query.branches, strict=True)
        ]
    assert not changes_only
    spaces: dict[tuple[int, Choice], Space] = {}
    placed: list[Placed] = []
    for b, choices in enumerate(decomposition_of(query, chosen)):
        branch = query.branches[b]
        for node, choice in enumerate(choices):
            if (node, choice) not in spaces:
                spaces[node, choice] = space_of(query, node, choice)
            space = spaces[node, choice]
            bounds = [interval_of(branch[choice.neighbour], column) for column in choice.columns]
            first, *more = bounds or [EVERYTHING]
            point_id = PointId(subscription, b, node)
            point = Point(point_id, space.id, branch[node], first, tuple(more))
            placed.append(Placed(space, point))
    return placed


def space_ids(query: Query, chosen: Decomposition | None = None) -> frozenset[int]:
    """The ids of the spaces in which `place` puts points: a thousand branches share a few."""
    if len(query.nodes) == 1:
        return frozenset([Space(query.nodes[0].relation.name).id])
    used = {pair for choices in decomposition_of(query, chosen) for pair in enumerate(choices)}
    return frozenset(space_of(query, node, choice).id for node, choice in used)


def space_of(query: Query, node: int, choice: Choice) -> Space:
    """The space of the semijoins of a node with this choice."""
    between = {node, choice.neighbour}
    join = next(j for j in query.joins if {j.left, j.right} == between)
    names = query.nodes[join.left].relation.name, query.nodes[join.right].relation.name
    return _space(*names, join.columns, node == join.left, choice.columns)


def edge_of(query: Query, join: Join) -> tuple[Edge, int]:
    """The edge of a join, and the side of its left node."""
    names = query.nodes[join.left].relation.name, query.nodes[join.right].relation.name
    return _edge(*names, join.columns)


# There are many queries and few spaces, so spaces are cached.
@lru_cache(MAX_KNOWN)
def _space(
    left: str,
    right: str,
    pairs: tuple[tuple[int, int], ...],
    is_left: bool,
    columns: tuple[int, ...],
) -> Space:
    edge, left_side = _edge(left, right, pairs)
    side = left_side if is_left else 1 - left_side
    first = columns[0] if columns else None
    return Space(left if is_left else right, edge, side, first, columns[1:])


@lru_cache(MAX_KNOWN)
def _edge(left: str, right: str, pairs: tuple[tuple[int, int], ...]) -> tuple[Edge, int]:
    there = _sides(left, right, sorted(pairs))
    back = _sides(right, left, sorted((b, a) for a, b in pairs))
    return (Edge(there), 0) if there <= back else (Edge(back), 1)


def _sides(first: str, second: str, pairs: list[tuple[int, int]]) -> tuple[Side, Side]:
    one, other = zip(*pairs, strict=True)
    return Side(first, tuple(one)), Side(second, tuple(other))
