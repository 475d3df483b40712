"""Subscriptions over one table: their points in the default matcher.

A space without an edge is stateless: the recipients of a row depend on the row alone. Few points
are scanned as arrays; many are kept in the default matcher of `penstock.matching`.
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
"""Up to this many points, a scan costs less than matching a single row: 6 us against 40. One query
has about half as many branches at most."""
SCANNED_ROWS = 16
"""Up to this many rows, scans cost less than matching a batch: 18 us a row, against some 0.3 ms for
any small batch."""


@dataclass(frozen=True, slots=True)
class Selections:
    """All points of a table's own space: objects, and those covered by a shared matcher."""

    space: Space
    points: SpacePoints | None
    covered: MatcherPoints | None

    @property
    def mentioned_columns(self) -> set[int]:
        """The columns that some point needs, of present or of removed rows."""
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
        """`any_match` for a batch, of which only `mentioned_columns` are read."""
        found = np.zeros(len(batch), np.bool_)
        if self.points is not None and len(self.points):
            found |= self.points.index(SelectionIndex).any_match(batch)
        if self.covered is not None:
            found |= self.covered.any_match(batch)
        return found

    def mentioned(self, row: Row) -> tuple[tuple[int, Stored], ...]:
        """The values of a removed row that some point needs."""
        if self.covered is None:
            return () if self.points is None else self.points.mentioned(row)
        return tuple([(column, row[column]) for column in sorted(self.mentioned_columns)])


@dataclass(frozen=True, slots=True)
class NewSelections:
    """Points of a table's own space without content so far: objects, and those covered by a shared
    matcher."""

    points: SpacePoints | None
    covered: MatcherPoints | None = None
    since: int | None = None
    """Set if these are all points recorded from this offset on."""

    def __len__(self) -> int:
        return len(self.points or ()) + len(self.covered or ())

    @property
    def relation(self) -> Relation:
        return _relation(self.points, self.covered)

    def any_match(self, rows: Sequence[Row]) -> Mask:
        """Which of the rows some point selects."""
        return Selections(Space(self.relation.name), self.points, self.covered).any_match(rows)

    def selecting(self, rows: Sequence[Row]) -> list[tuple[PointId, ...]]:
        """For each row, the points that select it, sorted, whether they are covered or not."""
        found: list[tuple[PointId, ...]] = [()] * len(rows)
        if self.covered is not None:
            found = self.covered.selecting(rows)
        if self.points is not None:
            for i, row in enumerate(rows):
                mine = selecting_points(self.points, row)
                found[i] = tuple(sorted([*found[i], *mine]))
        return found


def _is_scanned(points: SpacePoints | None, rows: int) -> bool:
    """Whether all points are scanned for each row. If the matcher's kernels are not compiled yet,
    scanning is cheaper than compiling them, for any number of rows in a batch."""
    if points is None:
        return True
    return len(points) <= SCANNED_POINTS and (rows <= SCANNED_ROWS or not may_load_kernels())


def _relation(points: SpacePoints | None, covered: MatcherPoints | None) -> Relation:
    """The relation of the points."""
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
    """A matcher maintained over the points of a space. It identifies points by number."""

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
