"""Messages, and the regions of subscription space they are addressed to.

A subscription's selection of rows of one table is a point in a *space*: a box over the table's own
columns (its base), and an interval over one or more columns of the table it is joined with (its
filter). A message names a space and carries one row of the base table. It is addressed to the
points whose base contains that row and whose filter lies within one of the message's *reaches*.
Whether a point gets a message depends on the point and the message only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from penstock.catalog import Key, Relation, Row, RowKey, Stored
from penstock.predicates.boxes import Box, contains
from penstock.predicates.intervals import BOTTOM, TOP, Cut, Interval


class Reach(NamedTuple):
    """Bounds on the two ends of a filter interval: one box of a region."""

    low_from: Cut
    low_to: Cut
    high_from: Cut
    high_to: Cut

    def covers(self, interval: Interval) -> bool:
        return (
            self.low_from <= interval.low <= self.low_to
            and self.high_from <= interval.high <= self.high_to
        )

    def meets(self, point: Point) -> bool:
        """Whether the filter of a point lies within."""
        return self.covers(point.filter)


ANY_FILTER = Reach(BOTTOM, TOP, BOTTOM, TOP)
"""Matches every filter, over any number of columns."""

Vector: TypeAlias = tuple[Key | None, ...]
"""The values of a row in all filter columns of a space."""


class Envelope(NamedTuple):
    """One box of a region in a space with several filter columns: a reach for each of them.

    Filters that contain one of the vectors in `without` are excluded.
    """

    reaches: tuple[Reach, ...]
    without: tuple[Vector, ...] = ()

    def meets(self, point: Point) -> bool:
        """Whether the filter of a point lies within."""
        bounds = zip(self.reaches, point.filters, strict=True)
        return all(reach.covers(interval) for reach, interval in bounds) and not any(
            point.admits(vector) for vector in self.without
        )


Reaches: TypeAlias = tuple[Reach | Envelope, ...]
EVERYONE: Reaches = (ANY_FILTER,)
"""The region of all points: one shared object instead of one for every message."""


INITIAL_STEP = 0
"""At one offset, initial content comes before all other steps."""


class PointId(NamedTuple):
    """The part of a subscription that a point stands for."""

    subscription: int
    branch: int
    node: int


class Position(NamedTuple):
    """The position of a message in the total order in which clients apply messages."""

    offset: int
    step: int


@dataclass(frozen=True, slots=True)
class Point:
    """One subscription's selection of rows of one of its tables, in one space.

    `more` are the intervals over further filter columns of the space. A point with `changes_only`
    holds no rows: it has no initial content, and its messages must carry the old row.
    """

    id: PointId
    space: int
    base: Box
    filter: Interval
    more: tuple[Interval, ...] = ()
    changes_only: bool = False

    @property
    def filters(self) -> tuple[Interval, ...]:
        return (self.filter, *self.more)

    def admits(self, vector: Vector) -> bool:
        """Whether the filter contains a row with these values."""
        return all(i.contains(key) for i, key in zip(self.filters, vector, strict=True))


class Message(NamedTuple):
    """One row of a base table, and the points that must upsert or remove it.

    A point in the `upsert` region upserts `row`; any other point in the `remove` region removes the
    row with this key. The remove region is tested against `old`, the values before the change of
    the columns that conditions mention (as (column, value) pairs), or against `row` if `old` is
    None.

    A message with `recipients` is addressed to exactly these points: to upsert `row` or, without
    one, to remove the row with this key. A message with a `partner` stands for one join row, this
    row and the partner with that key: a point holds the row as long as it knows a partner. A
    message with `since` is addressed only to subscriptions that were recorded from that offset on:
    the initial content of many of them, addressed by a region.

    (A tuple, because a change takes a few microseconds, and creating a frozen class takes four
    times as long.)
    """

    position: Position
    space: int
    key: RowKey
    row: Row | None = None
    upsert: Reaches = ()
    old: tuple[tuple[int, Stored], ...] | None = None
    remove: Reaches = ()
    recipients: tuple[PointId, ...] = ()
    partner: RowKey | None = None
    since: int = 0

    def upserts(self, point: Point, base: Relation) -> bool:
        """Whether the point must upsert the row."""
        if self.recipients:
            return self.row is not None and point.id in self.recipients
        if self.row is None or not self._concerns(point) or not _within(self.upsert, point):
            return False
        return contains(point.base, base, self.row)

    def removes(self, point: Point, base: Relation) -> bool:
        """Whether the point must remove the row, unless it upserts it."""
        if self.recipients:
            return self.row is None and point.id in self.recipients
        if not self._concerns(point) or not _within(self.remove, point):
            return False
        return contains(point.base, base, self.row_before(base))

    def _concerns(self, point: Point) -> bool:
        # A subscription's number is the offset of its record.
        return point.id.subscription >= self.since

    def row_before(self, base: Relation) -> Row:
        """The row that the remove region is tested against; columns without conditions are NULL."""
        if self.old is None:
            assert self.row is not None
            return self.row
        values: list[Stored] = [None] * len(base.columns)
        for column, value in self.old:
            values[column] = value
        return tuple(values)


def _within(reaches: Reaches, point: Point) -> bool:
    return any(reach.meets(point) for reach in reaches)


class MessageBatch(NamedTuple):
    """Messages that differ in their rows only: a step shows many rows to some points, or hides them
    from some. Rows are shown if there is an upsert region."""

    position: Position
    space: int
    rows: Sequence[tuple[RowKey, Row]]
    upsert: Reaches
    remove: Reaches
    mentioned: Sequence[int]
    """The columns that conditions mention."""

    def messages(self) -> Iterator[Message]:
        position, space, rows, upsert, remove, _ = self
        for key, row in rows:
            if upsert:
                yield Message(position, space, key, row, upsert, None, remove)
            else:
                yield Message(position, space, key, None, (), self.old(row), remove)

    def old(self, row: Row) -> tuple[tuple[int, Stored], ...]:
        """The old values in the message of a row that is hidden."""
        return tuple([(column, row[column]) for column in self.mentioned])


AnyMessage: TypeAlias = Message | MessageBatch


def each_message(told: Iterable[AnyMessage]) -> Iterator[Message]:
    for one in told:
        if isinstance(one, MessageBatch):
            yield from one.messages()
        else:
            yield one
