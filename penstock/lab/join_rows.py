"""Join rows as messages of their own: Enum-J, Ref-J and Ref-J+ over any number of tables.

As in Chandramouli and Yang (2008, section 2.3 and appendix F), all queries that join the same
tables in the same way share a *signature*. A change inserts and removes join rows, and each is
*one* message with the columns of all tables. A query is then a selection over the join: one point
per branch in the signature's own space, so indexes and networks need no change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from penstock.catalog import Column, Relation, Row, RowKey
from penstock.messages import EVERYONE, Message, Point, PointId, Position
from penstock.predicates.boxes import Box
from penstock.predicates.intervals import EVERYTHING
from penstock.query import Join, Query
from penstock.routing.interest_index import InterestIndex
from penstock.routing.interests import SpaceShape, interest_of
from penstock.spaces import JoinValue, Space, join_value

SCHEMES = ("Enum-J", "Ref-J", "Ref-J+")

Places: TypeAlias = tuple[tuple[int, int, Join], ...]
"""How the other nodes are reached from one: the node, its predecessor, and the join between."""


@dataclass(frozen=True)
class Signature:
    """Tables and how they are joined."""

    relations: tuple[Relation, ...]
    joins: tuple[Join, ...]

    @cached_property
    def relation(self) -> Relation:
        """The join as one table, whose key is the keys of all of them."""
        columns = tuple(
            Column(f"{number}.{column.name}", column.type, column.nullable)
            for number, relation in enumerate(self.relations)
            for column in relation.columns
        )
        keys = zip(self.starts, self.relations, strict=True)
        key = tuple(start + column for start, one in keys for column in one.key)
        conditions = ",".join(f"{j.left}:{j.right}:{j.columns}" for j in self.joins)
        names = " ".join(relation.name for relation in self.relations)
        return Relation(f"\0join {names} {conditions}", columns, key)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Where the columns of each table begin."""
        found, start = [], 0
        for relation in self.relations:
            found.append(start)
            start += len(relation.columns)
        return tuple(found)

    @cached_property
    def shape(self) -> SpaceShape:
        return SpaceShape(Space(self.relation.name).id, self.relation, filters=0)

    def points(self, query: Query, subscription: int) -> list[Point]:
        """One per branch."""
        space = self.shape.space
        return [
            Point(PointId(subscription, number, 0), space, self._box(branch), EVERYTHING)
            for number, branch in enumerate(query.branches)
        ]

    def _box(self, branch: Sequence[Box]) -> Box:
        pairs = zip(self.starts, branch, strict=True)
        return tuple((start + column, i) for start, one in pairs for column, i in one)

    def places(self, first: int) -> Places:
        """The other nodes in an order in which each joins an earlier one."""
        found: list[tuple[int, int, Join]] = []
        seen = [first]
        while len(seen) < len(self.relations):
            node, before, join = next(
                (b, a, join)
                for join in self.joins
                for a, b in ((join.left, join.right), (join.right, join.left))
                if a in seen and b not in seen
            )
            seen.append(node)
            found.append((node, before, join))
        return tuple(found)


def signature_of(query: Query) -> Signature:
    return Signature(tuple(node.relation for node in query.nodes), query.joins)


class JoinedTables:
    """Rows by table, indexed by the join columns of signatures."""

    def __init__(self, signatures: Iterable[Signature]) -> None:
        self._signatures = list(signatures)
        self._found: dict[tuple[str, tuple[int, ...]], dict[JoinValue, dict[RowKey, Row]]] = {}
        for signature in self._signatures:
            for join in signature.joins:
                for node, side in ((join.left, 0), (join.right, 1)):
                    columns = tuple(pair[side] for pair in join.columns)
                    name = signature.relations[node].name
                    self._found[name, columns] = defaultdict(dict)

    def change(
        self, position: Position, relation: Relation, old: Row | None, new: Row | None
    ) -> list[tuple[Signature, Message]]:
        """A row is inserted, deleted or updated: returns one message for each affected join row."""
        before = [self._rows_with(one, relation, old) for one in self._signatures]
        self.enter(relation, old, new)
        after = [self._rows_with(one, relation, new) for one in self._signatures]
        return [
            (signature, message)
            for signature, gone, come in zip(self._signatures, before, after, strict=True)
            for message in _messages(position, signature, gone, come)
        ]

    def enter(self, relation: Relation, old: Row | None, new: Row | None) -> None:
        for (name, columns), rows in self._found.items():
            if name != relation.name:
                continue
            for row, is_new in ((old, False), (new, True)):
                value = None if row is None else join_value(relation, columns, row)
                if row is None or value is None:
                    continue
                key = relation.key_of(row, 0)
                if is_new:
                    rows[value][key] = row
                else:
                    del rows[value][key]

    def _rows_with(
        self, signature: Signature, relation: Relation, row: Row | None
    ) -> dict[RowKey, Row]:
        """The join rows that contain a row, by key. In a self-join it may be at several nodes: keys
        make join rows unique."""
        found: dict[RowKey, Row] = {}
        if row is not None:
            for node, other in enumerate(signature.relations):
                if other.name == relation.name:
                    for rows in self._joined(signature, {node: row}, signature.places(node)):
                        joined = tuple(v for i in range(len(rows)) for v in rows[i])
                        found[signature.relation.key_of(joined, 0)] = joined
        return found

    def _joined(
        self, signature: Signature, rows: dict[int, Row], places: Places
    ) -> Iterator[dict[int, Row]]:
        if not places:
            if all(_holds(signature, join, rows) for join in signature.joins):
                yield rows
            return
        (node, before, join), *rest = places
        sides = (0, 1) if join.left == before else (1, 0)
        mine, its = (tuple(pair[side] for pair in join.columns) for side in sides)
        value = join_value(signature.relations[before], mine, rows[before])
        if value is None:
            return
        there = self._found[signature.relations[node].name, its].get(value, {})
        for row in there.values():
            yield from self._joined(signature, rows | {node: row}, tuple(rest))


def _holds(signature: Signature, join: Join, rows: Mapping[int, Row]) -> bool:
    """Checks joins that close a cycle, which were not followed."""
    left, right = (
        join_value(signature.relations[node], tuple(p[side] for p in join.columns), rows[node])
        for node, side in ((join.left, 0), (join.right, 1))
    )
    return left is not None and left == right


def _messages(
    position: Position, signature: Signature, gone: dict[RowKey, Row], come: dict[RowKey, Row]
) -> Iterator[Message]:
    space = signature.shape.space
    for key, row in come.items():
        was = gone.get(key)
        if was != row:
            old = None if was is None else tuple(enumerate(was))
            remove = () if was is None else EVERYONE
            yield Message(position, space, key, row, EVERYONE, old, remove)
    for key, row in gone.items():
        if key not in come:
            yield Message(position, space, key, None, (), tuple(enumerate(row)), EVERYONE)


class JoinRowServer:
    """The output of a server under each of the three schemes."""

    @classmethod
    def of_queries(cls, queries: Mapping[int, Query]) -> JoinRowServer:
        signatures: dict[Signature, list[Point]] = {}
        for number, query in queries.items():
            signature = signature_of(query)
            signatures.setdefault(signature, []).extend(signature.points(query, number))
        return cls(signatures)

    def __init__(self, signatures: Mapping[Signature, Sequence[Point]]) -> None:
        self.points = [point for own in signatures.values() for point in own]
        self.shapes = {one.shape.space: one.shape for one in signatures}
        self._tables = JoinedTables(signatures)
        self._index: dict[int, InterestIndex] = {}
        for signature, own in signatures.items():
            index = self._index[signature.shape.space] = InterestIndex(signature.shape)
            index.add_many((i, interest_of(point), 0) for i, point in enumerate(own))
        self._own = {one.shape.space: own for one, own in signatures.items()}

    def load(self, relation: Relation, row: Row) -> None:
        """A row that exists from the beginning."""
        self._tables.enter(relation, None, row)

    def change(
        self, position: Position, relation: Relation, old: Row | None, new: Row | None
    ) -> dict[str, list[Message]]:
        """By scheme."""
        sent: dict[str, list[Message]] = {scheme: [] for scheme in SCHEMES}
        for _, message in self._tables.change(position, relation, old, new):
            sent["Ref-J"].append(message)
            wanted = [
                self._own[message.space][i] for i in self._index[message.space].names(message)
            ]
            if wanted:
                sent["Ref-J+"].append(message)
                sent["Enum-J"] += self._addressed(message, wanted)
        return sent

    def _addressed(self, message: Message, wanted: list[Point]) -> Iterator[Message]:
        """The same message to each subscription that wants it, and to each that has to remove
        it."""
        base = self.shapes[message.space].base
        taking = {p.id.subscription: p.id for p in wanted if message.upserts(p, base)}
        leaving = {p.id.subscription: p.id for p in wanted if p.id.subscription not in taking}
        for named, row in ((taking, message.row), (leaving, None)):
            if named:
                bare = Message(message.position, message.space, message.key, row)
                yield bare._replace(recipients=tuple(named.values()))
