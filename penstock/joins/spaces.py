"""Spaces: the coordinate systems in which subscriptions are points.

A subscription over one table has one point per branch in that table's own space. A subscription
over several tables is split into select-semijoins, one per node (Chandramouli and Yang, 2008):
the rows of the base node that satisfy its box and have a joining row in one neighbour, the filter,
whose value in one column lies in the filter interval. All semijoins with the same base, the same
join condition and the same filter column share one space, whichever queries they come from.

Filtering by a single neighbour and a single column may keep rows that the whole query does not
need, never fewer than it needs; the client joins what it holds.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from penstock.catalog import Key, Relation, Row
from penstock.messages import Point, PointId
from penstock.predicates.boxes import Box
from penstock.predicates.intervals import EVERYTHING, Interval
from penstock.sql.query import Join, Query

JoinValue: TypeAlias = tuple[Key, ...]


@dataclass(frozen=True, slots=True, order=True)
class Side:
    """One end of an edge: the columns of a table that are compared."""

    table: str
    columns: tuple[int, ...]


@dataclass(frozen=True)
class Edge:
    """A join condition between two tables, as every query that has it sees it.

    The sides stand in one canonical order. In a self-join both sides are fed by one table.
    """

    sides: tuple[Side, Side]

    @cached_property
    def name(self) -> str:
        return "=".join(f"{s.table}({','.join(map(str, s.columns))})" for s in self.sides)


@dataclass(frozen=True)
class Space:
    """Where the points of one kind of semijoin live; without an edge, of one table's selections."""

    table: str
    edge: Edge | None = None
    side: int = 0
    attribute: int | None = None

    @cached_property
    def name(self) -> str:
        if self.edge is None:
            return self.table
        return f"{self.edge.name}/{self.side}/{'' if self.attribute is None else self.attribute}"

    @cached_property
    def id(self) -> int:
        """A stable number, the same in every process: messages name spaces by it."""
        digest = hashlib.blake2b(self.name.encode(), digest_size=8).digest()
        return int.from_bytes(digest) >> 1

    @property
    def filter_side(self) -> Side:
        assert self.edge is not None
        return self.edge.sides[1 - self.side]


def join_value(relation: Relation, columns: tuple[int, ...], row: Row) -> JoinValue | None:
    """What the row is joined by, in comparable form; None if it joins nothing (SQL NULL)."""
    keys = []
    for column in columns:
        value = row[column]
        if value is None:
            return None
        keys.append(relation.columns[column].type.join_key(value))
    return tuple(keys)


@dataclass(frozen=True, slots=True)
class Placed:
    """A point and the space it lies in."""

    space: Space
    point: Point


def place(query: Query, subscription: int) -> list[Placed]:
    """All points of a subscription, one per branch and node."""
    return [
        _placed(query, branch, node, PointId(subscription, b, node))
        for b, branch in enumerate(query.branches)
        for node in range(len(query.nodes))
    ]


def _placed(query: Query, branch: tuple[Box, ...], node: int, point_id: PointId) -> Placed:
    table = query.nodes[node].relation.name
    incident = [join for join in query.joins if node in (join.left, join.right)]
    if not incident:
        space = Space(table)
        return Placed(space, Point(point_id, space.id, branch[node], EVERYTHING))
    join = max(incident, key=lambda j: _selectivity(_tightest(branch[_other(j, node)])[1]))
    attribute, interval = _tightest(branch[_other(join, node)])
    edge, left_side = edge_of(query, join)
    side = left_side if node == join.left else 1 - left_side
    space = Space(table, edge, side, attribute)
    return Placed(space, Point(point_id, space.id, branch[node], interval))


def _other(join: Join, node: int) -> int:
    return join.right if node == join.left else join.left


def edge_of(query: Query, join: Join) -> tuple[Edge, int]:
    """The edge of a join, and the side on which its left node stands."""
    left, right = query.nodes[join.left].relation.name, query.nodes[join.right].relation.name
    there = _sides(left, right, sorted(join.columns))
    back = _sides(right, left, sorted((b, a) for a, b in join.columns))
    return (Edge(there), 0) if there <= back else (Edge(back), 1)


def _sides(first: str, second: str, pairs: list[tuple[int, int]]) -> tuple[Side, Side]:
    one, other = zip(*pairs, strict=True)
    return Side(first, tuple(one)), Side(second, tuple(other))


def _tightest(box: Box) -> tuple[int | None, Interval]:
    """The column of a box that promises to exclude most rows, and its interval."""
    if not box:
        return None, EVERYTHING
    return max(box, key=lambda pair: (_selectivity(pair[1]), -pair[0]))


def _selectivity(interval: Interval) -> int:
    """A guess without statistics: equality beats a range, a range beats an open end."""
    if interval == EVERYTHING:
        return 0
    low, high = interval.low, interval.high
    if len(low) == 1 or len(high) == 1:
        return 1
    is_point = low[1] == high[1] or (isinstance(low[1], int) and low[1] + 1 == high[1])
    return 3 if is_point else 2
