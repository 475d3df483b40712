"""Subscriptions over one table: their points in the default matcher.

A space without an edge is stateless: who gets a row follows from the row alone. Few points are
looked through as arrays; many are kept in the matcher that stateless matching is made of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.catalog import Relation, Row, Stored
from penstock.joins.matcher_points import MatcherPoints
from penstock.joins.point_arrays import Mask
from penstock.joins.points import SpacePoints
from penstock.kernels.fast_gear import may_load_kernels
from penstock.matching import DEFAULT_MATCHER, EventBatch, create
from penstock.messages import Point, PointId
from penstock.spaces import Space

SCANNED_POINTS = 2_000
"""Up to here, looking at all points costs less than asking the matcher about a single row: 6 us,
against 40. One query has about half as many branches at most."""
SCANNED_ROWS = 16
"""Up to here, it costs less than asking about so many rows at once: 18 us a row, against some 0.3
ms for any handful of them."""


@dataclass(frozen=True, slots=True)
class Selections:
    """All points of a table's own space: those that are objects, and those that are covered."""

    space: Space
    points: SpacePoints | None
    covered: MatcherPoints | None

    @property
    def mentioned_columns(self) -> set[int]:
        """The columns that any point looks at, before or after a row is gone."""
        return {
            column
            for points in (self.points, self.covered)
            if points is not None
            for column in points.mentioned_columns
        }

    def any_match(self, rows: Sequence[Row]) -> Mask:
        """Which of the rows some point selects."""
        points = self.points
        if not rows or (self.covered is None and _is_scanned(points, len(rows))):
            found = [points is not None and points.selecting(row).any() for row in rows]
            return np.array(found, np.bool_)
        relation = _relation(self.points, self.covered)
        return self.any_match_in(EventBatch.of_stored(relation, rows, self.mentioned_columns))

    def any_match_in(self, batch: EventBatch) -> Mask:
        """The same for many rows, of which only `mentioned_columns` matter."""
        found = np.zeros(len(batch), np.bool_)
        if self.points is not None and len(self.points):
            found |= self.points.index(SelectionIndex).any_match(batch)
        if self.covered is not None:
            found |= self.covered.any_match(batch)
        return found

    def mentioned(self, row: Row) -> tuple[tuple[int, Stored], ...]:
        """The values of a row that any point looks at when the row is no longer there."""
        if self.covered is None:
            return () if self.points is None else self.points.mentioned(row)
        return tuple([(column, row[column]) for column in sorted(self.mentioned_columns)])


@dataclass(frozen=True, slots=True)
class NewSelections:
    """Points of a table's own space that have no content yet: some that are objects, and some that
    are covered."""

    points: SpacePoints | None
    covered: MatcherPoints | None = None
    since: int | None = None
    """If they are all that were recorded from here on."""

    def __len__(self) -> int:
        return len(self.points or ()) + len(self.covered or ())

    @property
    def relation(self) -> Relation:
        return _relation(self.points, self.covered)

    def any_match(self, rows: Sequence[Row]) -> Mask:
        """Which of the rows some point selects."""
        return Selections(Space(self.relation.name), self.points, self.covered).any_match(rows)

    def selecting(self, rows: Sequence[Row]) -> list[tuple[PointId, ...]]:
        """For each row, the points that select it, in order: the same whichever are covered."""
        found: list[tuple[PointId, ...]] = [()] * len(rows)
        if self.covered is not None:
            found = self.covered.selecting(rows)
        if self.points is not None:
            for i, row in enumerate(rows):
                mine = selecting_points(self.points, row)
                found[i] = tuple(sorted([*found[i], *mine]))
        return found


def _is_scanned(points: SpacePoints | None, rows: int) -> bool:
    """Whether all points are looked at for each row. Where the matcher's kernels are not compiled,
    that takes less than compiling them for any number of rows that come at once."""
    if points is None:
        return True
    return len(points) <= SCANNED_POINTS and (rows <= SCANNED_ROWS or not may_load_kernels())


def _relation(points: SpacePoints | None, covered: MatcherPoints | None) -> Relation:
    """Whose points these are."""
    if points is not None:
        return points.base
    assert covered is not None
    return covered.relation


def selecting_points(points: SpacePoints, row: Row) -> list[PointId]:
    """The points that select a row."""
    if len(points) <= SCANNED_POINTS:
        return [points.ids[i] for i in np.flatnonzero(points.selecting(row))]
    return points.index(SelectionIndex).match(row)


class SelectionIndex:
    """A matcher that follows the points of a space. Points are known to it by number."""

    def __init__(self, points: SpacePoints) -> None:
        sample = EventBatch.of_rows(points.base, points.sample) if points.sample else None
        self._matcher = create(DEFAULT_MATCHER, points.base, sample=sample)
        self._numbers: dict[PointId, int] = {}
        self._ids: dict[int, PointId] = {}
        self._next = 0
        self._matcher.insert_many((self._number(i), [points[i].base]) for i in points.ids)

    def add(self, point: Point) -> None:
        self._matcher.insert(self._number(point.id), [point.base])

    def remove(self, point: Point) -> None:
        number = self._numbers.pop(point.id)
        del self._ids[number]
        self._matcher.remove(number)

    def any_match(self, batch: EventBatch) -> Mask:
        return self._matcher.any_match(batch)

    def match(self, row: Row) -> list[PointId]:
        return [self._ids[number] for number in self._matcher.match(row)]

    def _number(self, point: PointId) -> int:
        number = self._next
        self._next += 1
        self._numbers[point], self._ids[number] = number, point
        return number
