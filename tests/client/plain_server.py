"""A server that looks at every row for every point: the plainest one that keeps clients right.

It knows nothing of matchers, groups, skylines or schemes. After each change it works out which rows
every point must hold, and sends what is different: to points by name, or to exactly their regions.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from penstock.catalog import Catalog, Relation, Row, RowKey, Stored
from penstock.client import Delivery, Switch
from penstock.flow.changes import Change, Op
from penstock.messages import (
    INITIAL_STEP,
    Envelope,
    Message,
    Point,
    PointId,
    Position,
    Reach,
    Reaches,
)
from penstock.predicates.boxes import contains
from penstock.query import Query
from penstock.spaces import Decomposition, Placed, Replan, join_value, place
from penstock.sql import parse_relation

Held = dict[PointId, dict[RowKey, Row]]


class PlainServer:
    """`chance` decides how each message is addressed, and the order within an offset."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.catalog = Catalog()
        self.tables: dict[str, dict[RowKey, Row]] = {}
        self.offset = 0

    def define(self, sql: str) -> Relation:
        relation = parse_relation(sql)
        self.catalog.add(relation, self.offset)
        self.tables[relation.name] = {}
        self.offset += 1
        return relation

    def apply(self, change: Change) -> None:
        """Carry out a change that is known to be valid."""
        relation = self.catalog[change.table]
        rows = self.tables[relation.name]
        named = {relation.positions[name.lower()]: value for name, value in change.row.items()}
        stored: list[Stored] = [None] * len(relation.columns)
        for column, value in named.items():
            stored[column] = relation.store_value(relation.columns[column], value)
        key = relation.key_of(tuple(stored), self.offset)
        if change.op in (Op.DELETE, Op.REMOVE):
            rows.pop(key, None)
        elif change.op is Op.UPDATE:
            rows[key] = tuple(
                new if i in named else old
                for i, (old, new) in enumerate(zip(rows[key], stored, strict=True))
            )
        else:
            rows[key] = tuple(stored)
        self.offset += 1


class PlainFeed:
    """What the server sends to one subscription."""

    def __init__(
        self, server: PlainServer, number: int, query: Query, chosen: Decomposition | None
    ) -> None:
        self._server = server
        self._number = number
        self._query = query
        self._placed = place(query, number, chosen)
        self.held: Held = {one.point.id: {} for one in self._placed}
        """What its points hold, if it does as it is told."""

    def initial(self) -> list[Delivery]:
        """What it starts with."""
        return self._differences(self._server.offset - 1, INITIAL_STEP)

    def changes(self) -> list[Delivery]:
        """What the last change means to it."""
        return self._differences(self._server.offset - 1, 1)

    def replan(self, chosen: Decomposition) -> list[Delivery]:
        """Another decomposition: points that move drop what they hold, and start again."""
        offset, before = self._server.offset - 1, self._placed
        self._placed = place(self._query, self._number, chosen)
        for old, new in zip(before, self._placed, strict=True):
            if old.space != new.space:
                self.held[new.point.id] = {}
        switch = Switch.at(offset, Replan(offset, self._number, chosen))
        return [switch, *self._differences(offset, INITIAL_STEP)]

    def _differences(self, offset: int, step: int) -> list[Delivery]:
        messages: list[Message] = []
        for space in dict.fromkeys(one.space for one in self._placed):
            mine = [one for one in self._placed if one.space == space]
            messages += self._of_space(Position(offset, step), mine)
        self._server._chance.shuffle(messages)
        return list(messages)

    def _of_space(self, position: Position, placed: list[Placed]) -> Iterator[Message]:
        before = {one.point.id: self.held[one.point.id] for one in placed}
        for one in placed:
            self.held[one.point.id] = rows_of(one, self._server)
        for key in {key for one in placed for key in before[one.point.id]} | {
            key for one in placed for key in self.held[one.point.id]
        }:
            olds = {one.point.id: before[one.point.id].get(key) for one in placed}
            news = {one.point.id: self.held[one.point.id].get(key) for one in placed}
            takes = [p.point for p in placed if news[p.point.id] not in (None, olds[p.point.id])]
            had = [p.point for p in placed if olds[p.point.id] not in (None, news[p.point.id])]
            new = next((row for row in news.values() if row is not None), None)
            old = next((row for row in olds.values() if row is not None), None)
            yield from self._addressed(position, placed[0], key, old, new, takes, had)

    def _addressed(
        self,
        position: Position,
        placed: Placed,
        key: RowKey,
        old: Row | None,
        new: Row | None,
        takes: list[Point],
        had: list[Point],
    ) -> Iterator[Message]:
        space = placed.space.id
        if self._server._chance.random() < 0.5:
            if takes:
                named = tuple(point.id for point in takes)
                yield Message(position, space, key, new, recipients=named)
            if drops := tuple(point.id for point in had if point not in takes):
                yield Message(position, space, key, recipients=drops)
        elif takes or had:
            was = None if old is None else tuple(enumerate(old))
            row = new if takes else None
            yield Message(position, space, key, row, region(takes), was, region(had))


def rows_of(placed: Placed, server: PlainServer) -> dict[RowKey, Row]:
    """The rows that a point must hold, found by looking at all of them."""
    space, point = placed.space, placed.point
    base = server.catalog[space.table]
    return {
        key: row
        for key, row in server.tables[base.name].items()
        if contains(point.base, base, row)
        and (space.edge is None or has_partner(placed, row, server))
    }


def has_partner(placed: Placed, row: Row, server: PlainServer) -> bool:
    space, point = placed.space, placed.point
    base, other = server.catalog[space.table], server.catalog[space.filter_side.table]
    value = join_value(base, space.base_side.columns, row)
    if value is None:
        return False
    for partner in server.tables[other.name].values():
        if join_value(other, space.filter_side.columns, partner) == value:
            keys = [
                None if partner[i] is None else other.columns[i].type.key(partner[i])
                for i in space.attributes
            ]
            if not keys or point.admits(tuple(keys)):
                return True
    return False


def region(points: list[Point]) -> Reaches:
    """Exactly the points with these filters. (The base row says which of them are meant.)"""
    return tuple(dict.fromkeys(map(exact, points)))


def exact(point: Point) -> Reach | Envelope:
    reaches = tuple(Reach(f.low, f.low, f.high, f.high) for f in point.filters)
    return reaches[0] if len(reaches) == 1 else Envelope(reaches)
