"""The client side: from messages to a subscription's content and its changes.

A client keeps the rows that messages upsert, per branch and node, and their join. It never reads
the database: it only applies messages in the order of their positions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from penstock.catalog import Outside, RowKey
from penstock.catalog.types import ValueType
from penstock.client.own_points import OwnPoints
from penstock.client.tuples import BranchTuples, JoinKey, JoinPlan, JoinRow
from penstock.messages import INITIAL_STEP, Message, Point, PointId, Position
from penstock.predicates.masks import bits
from penstock.query import Query
from penstock.spaces import Decomposition, Placed, Replan, place

ContentRow: TypeAlias = dict[str, Outside]


@dataclass(frozen=True, slots=True)
class Notification:
    """One change of a content: `before` is None for a new row, `after` for a removed one.

    `id` is the same on every retry and after every crash: subscription, offset, row key. For
    initial content it contains "initial": the record at the same offset may come in the next batch,
    and change the same rows.
    """

    subscription: int
    offset: int
    key: JoinKey
    before: ContentRow | None
    after: ContentRow | None
    is_initial: bool = False

    @property
    def id(self) -> str:
        """Built on demand: many readers count notifications, or read only their rows."""
        moment = f"{self.offset}:initial" if self.is_initial else f"{self.offset}"
        return f"{self.subscription}:{moment}:{key_text(self.key)}"

    @property
    def kind(self) -> str:
        if self.before is None:
            return "insert"
        return "delete" if self.after is None else "update"


@dataclass(frozen=True, slots=True)
class Switch:
    """From this position on a subscription has another decomposition: the rows of points that move
    to another space are removed, and sent again at the same offset."""

    position: Position
    subscription: int
    decomposition: Decomposition

    @classmethod
    def at(cls, offset: int, replan: Replan) -> Switch:
        """At an offset, before all other steps."""
        return cls(Position(offset, _SWITCH_STEP), replan.subscription, replan.decomposition)


_SWITCH_STEP = -1

Delivery: TypeAlias = Message | Switch
"""The input of a client, in the order of positions."""


class Content:
    """The result of a subscription's query, built from messages. Not thread-safe."""

    def __init__(
        self,
        subscription: int,
        query: Query,
        chosen: Decomposition | None = None,
        *,
        quiet: bool = False,
    ) -> None:
        """`quiet`: no notifications of initial content."""
        self.subscription = subscription
        self.query = query
        self._show = row_view(query)
        self._quiet = quiet
        self.chosen = chosen
        plan = JoinPlan(query)
        self.branches = [BranchTuples(plan) for _ in query.branches]
        self._placed = place(query, subscription, chosen)
        self._points = own_points(query, self._placed)
        self._rows: dict[JoinKey, JoinRow] = {}
        self._copies: dict[JoinKey, int] = {}  # the number of branches with a join row
        # For schemes that send join rows: the partners that each row was sent with.
        self.partners: dict[tuple[PointId, RowKey], set[RowKey]] = {}

    def joined(self) -> Iterator[tuple[JoinKey, JoinRow, int]]:
        """All join rows, and the number of branches in which each occurs."""
        for key, row in self._rows.items():
            yield key, row, self._copies[key]

    def restore_joined(self, joined: Iterable[tuple[JoinKey, JoinRow, int]]) -> None:
        """Restore the result of `joined`; the branches must hold the same rows as then."""
        for key, row, copies in joined:
            self._rows[key], self._copies[key] = row, copies

    @property
    def spaces(self) -> Iterable[int]:
        """The spaces whose messages concern this subscription."""
        return self._points.keys()

    def rows(self) -> list[ContentRow]:
        return list(map(self._show, self._rows.values()))

    def apply(self, deliveries: Sequence[Delivery]) -> list[Notification]:
        """Apply messages, ordered by position; returns what they changed, offset by offset."""
        notifications: list[Notification] = []
        for (offset, is_reported), group in groupby(deliveries, self._moment):
            before: dict[JoinKey, JoinRow | None] = {}
            is_initial = True
            for one in group:
                is_initial = is_initial and one.position.step <= INITIAL_STEP
                self._apply_one(one, before)
            if is_reported:
                notifications += self._changes(offset, before, is_initial)
        return notifications

    def absorb(self, deliveries: Sequence[Delivery]) -> None:
        """`apply` without notifications."""
        for one in deliveries:
            self._apply_one(one, {})

    def _apply_one(self, one: Delivery, before: dict[JoinKey, JoinRow | None]) -> None:
        if isinstance(one, Switch):
            self._switch(one, before)
        else:
            self._apply_message(one, before)

    def _moment(self, one: Delivery) -> tuple[int, bool]:
        """The offset, and whether changes at it are reported: initial content may not be, and a
        switch of decompositions has no net effect."""
        offset, step = one.position
        return offset, not self._quiet or step > INITIAL_STEP

    def _switch(self, switch: Switch, before: dict[JoinKey, JoinRow | None]) -> None:
        placed = place(self.query, self.subscription, switch.decomposition)
        for old, new in zip(self._placed, placed, strict=True):
            if old.space != new.space:
                for key in self.branches[old.point.id.branch].keys(old.point.id.node):
                    self.partners.pop((old.point.id, key), None)
                    self._remove(old.point, key, before)
        self._placed, self._points = placed, own_points(self.query, placed)
        self.chosen = switch.decomposition

    def _apply_message(self, message: Message, before: dict[JoinKey, JoinRow | None]) -> None:
        own = self._points.get(message.space)
        if own is None:
            return
        upserting = own.upserting(message)
        for number in bits(upserting | own.removing(message)):
            point = own.points[number]
            if upserting >> number & 1:
                self._note_partner(point, message)
                self._remove(point, message.key, before)
                self._upsert(point, message, before)
            elif not self._has_partner_left(point, message):
                self._remove(point, message.key, before)

    def _note_partner(self, point: Point, message: Message) -> None:
        if message.partner is not None:
            self.partners.setdefault((point.id, message.key), set()).add(message.partner)

    def _has_partner_left(self, point: Point, message: Message) -> bool:
        """Whether the row stays because it has another partner."""
        partners = self.partners.get((point.id, message.key))
        if message.partner is None or partners is None:
            return False
        partners.discard(message.partner)
        if not partners:
            del self.partners[point.id, message.key]
        return bool(partners)

    def _upsert(
        self, point: Point, message: Message, before: dict[JoinKey, JoinRow | None]
    ) -> None:
        tuples, node = self.branches[point.id.branch], point.id.node
        assert message.row is not None
        tuples.put(node, message.key, message.row)
        for key, row in tuples.join_rows(node, message.key, message.row):
            before.setdefault(key, self._rows.get(key))
            self._copies[key] = self._copies.get(key, 0) + 1
            self._rows[key] = row

    def _remove(self, point: Point, key: RowKey, before: dict[JoinKey, JoinRow | None]) -> None:
        tuples, node = self.branches[point.id.branch], point.id.node
        held = tuples.held(node, key)
        if held is None:
            return
        for join_key, _ in tuples.join_rows(node, key, held):
            before.setdefault(join_key, self._rows.get(join_key))
            self._copies[join_key] -= 1
            if not self._copies[join_key]:
                del self._copies[join_key], self._rows[join_key]
        tuples.pop(node, key)

    def _changes(
        self, offset: int, before: dict[JoinKey, JoinRow | None], is_initial: bool
    ) -> Iterable[Notification]:
        for key, old in before.items():
            new = self._rows.get(key)
            shown_old = None if old is None else self._show(old)
            shown_new = None if new is None else self._show(new)
            yield from notified(
                self.subscription, offset, key, shown_old, shown_new, is_initial=is_initial
            )


def row_view(query: Query) -> Callable[[JoinRow], ContentRow]:
    """A function that shows join rows with the column names of the SELECT."""
    types = [query.nodes[one.node].relation.columns[one.column].type for one in query.outputs]
    places = [(one.label, one.node, one.column) for one in query.outputs]
    columns = [(*place, kind.show) for place, kind in zip(places, types, strict=True)]

    def show_stored(row: JoinRow) -> ContentRow:
        return {label: row[node][column] for label, node, column in places}

    if all(type(kind).show is ValueType.show for kind in types):
        return show_stored  # takes half the time, for every row of every notification

    def show(row: JoinRow) -> ContentRow:
        return {
            label: None if (value := row[node][column]) is None else shown(value)
            for label, node, column, shown in columns
        }

    return show


def notified(
    subscription: int,
    offset: int,
    key: JoinKey,
    before: ContentRow | None,
    after: ContentRow | None,
    *,
    is_initial: bool = False,
) -> list[Notification]:
    """The notification of a row that may have changed; none if a subscriber sees no difference."""
    if _same(before, after):
        return []
    return [Notification(subscription, offset, key, before, after, is_initial)]


def own_points(query: Query, placed: Iterable[Placed]) -> dict[int, OwnPoints]:
    """The points of a subscription by space."""
    by_space: dict[int, list[Point]] = {}
    for one in placed:
        by_space.setdefault(one.space.id, []).append(one.point)
    return {
        space: OwnPoints(points, query.nodes[points[0].id.node].relation)
        for space, points in by_space.items()
    }


def _same(one: ContentRow | None, other: ContentRow | None) -> bool:
    """Whether a subscriber would see no difference. NaN equals NaN: rows are sent as bytes, so
    object identity cannot decide."""
    if one is None or other is None:
        return one is other
    return all(
        a == b or (a != a and b != b) for a, b in zip(one.values(), other.values(), strict=True)
    )


# Created once: `json.dumps` would create an encoder for each key.
_JSON = json.JSONEncoder(separators=(",", ":"))


def key_text(key: JoinKey) -> str:
    """A join row's key as text: the keys of its parts, in an unambiguous form."""
    return _JSON.encode(key)
