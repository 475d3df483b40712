"""An index over the points of one space that finds those in a message's region.

Points live in a few *segments*, each with codes of its own and one tree over them. A new point goes
to an open list that is looked through; when the list is full it becomes a segment, and segments of
similar size are merged, so a point is built into a tree O(log n) times. A point that is withdrawn
is struck out where it stands; a segment of which most is struck out is built anew. The answer is
exact: the tree decides over the (first) filter interval and the base column that most points
constrain, and further columns are tested on what it finds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.catalog import Key, Relation, Row
from penstock.joins.point_arrays import CodedRanges
from penstock.joins.points import SpacePoints
from penstock.kernels.trees import BY_ALL, plant
from penstock.kernels.unions import Codes64
from penstock.messages import Envelope, Point, PointId, Reach, Reaches
from penstock.messages.point_masks import PointMasks
from penstock.predicates.codes import Codes
from penstock.predicates.intervals import Cut
from penstock.predicates.masks import bits
from penstock.routing.kernels import points_in_region

OPEN_POINTS = 512
"""So many new points are kept as bit masks: made anew, at 2 us a point, when points have come."""
MERGE_RATIO = 4
"""A segment is merged with the one before it unless that one is so many times larger."""


class _Segment:
    """Some points in codes of their own, in one tree."""

    def __init__(self, points: SpacePoints, base: Relation) -> None:
        self.ids = points.ids
        self._relation = base
        self._column = points.main_column
        filters, ranges = points.filters, points.base_ranges(self._column)
        self._codes, self._base_codes = filters.codes, ranges.codes
        columns = (filters.low, filters.high, ranges.low, ranges.high)
        self._forest = plant(np.stack(columns, axis=1), columns=BY_ALL)
        self._others: list[tuple[int, CodedRanges]] = [
            (column, points.base_ranges(column))
            for column in points.base_columns
            if column != self._column
        ]
        self.subscriptions = np.array([one.subscription for one in self.ids], np.int64)
        self._is_alive = np.ones(len(self.ids), np.bool_)
        self._numbers: dict[PointId, int] | None = None
        self.alive = len(self.ids)

    def strike_out(self, point: PointId) -> bool:
        """Whether the point was here."""
        if self._numbers is None:
            self._numbers = {one: number for number, one in enumerate(self.ids)}
        number = self._numbers.pop(point, None)
        if number is None:
            return False
        self._is_alive[number] = False
        self.alive -= 1
        return True

    def living(self) -> list[PointId]:
        return [self.ids[number] for number in np.flatnonzero(self._is_alive)]

    def within(self, reaches: Sequence[Reach], row: Row) -> Codes64:
        """The numbers of the points in the region."""
        boxes = np.array([coded_reach(reach, self._codes) for reach in reaches], np.int64)
        code = self._base_codes.value(self._key(self._column, row))
        found = points_in_region(self._forest, boxes, code)
        if self.alive < len(self.ids):
            found = found[self._is_alive[found]]
        for column, ranges in self._others:
            code = ranges.codes.value(self._key(column, row))
            found = found[(ranges.low[found] <= code) & (code <= ranges.high[found])]
        return found

    def _key(self, column: int | None, row: Row) -> Key | None:
        value = None if column is None else row[column]
        if column is None or value is None:
            return None
        return self._relation.columns[column].type.key(value)


class RegionIndex:
    """Notified by the space of every point that comes and goes. Not thread-safe, like the space."""

    def __init__(self, points: SpacePoints) -> None:
        self._points = points
        self._segments = [_Segment(points, points.base)] if len(points) else []
        self._open: dict[PointId, Point] = {}
        self._open_masks: PointMasks | None = None

    def add(self, point: Point) -> None:
        self._open[point.id] = point
        self._open_masks = None
        if len(self._open) > OPEN_POINTS:
            self._close()

    def remove(self, point: Point) -> None:
        if self._open.pop(point.id, None) is not None:
            self._open_masks = None
            return
        for number, segment in enumerate(self._segments):
            if segment.strike_out(point.id):
                if 2 * segment.alive < len(segment.ids):
                    self._replace(number, segment)
                return

    def within(self, reaches: Reaches, row: Row) -> list[PointId]:
        """The points in the region whose base boxes contain the row."""
        found = self._open_within(reaches, row)
        for segment in self._segments:
            ids = segment.ids
            found += [ids[number] for number in self._found(segment, reaches, row).tolist()]
        return found

    def subscriptions_within(self, reaches: Reaches, row: Row) -> set[int]:
        """The subscriptions of these points. (Their numbers stand in an array; each PointId would
        have to be fetched from its own place in memory.)"""
        found = {point.subscription for point in self._open_within(reaches, row)}
        for segment in self._segments:
            found.update(segment.subscriptions[self._found(segment, reaches, row)].tolist())
        return found

    def _open_within(self, reaches: Reaches, row: Row) -> list[PointId]:
        if not self._open:
            return []
        if self._open_masks is None:
            self._open_masks = PointMasks(list(self._open.values()), self._points.base)
        masks = self._open_masks
        found = masks.within(reaches) & masks.selecting(row)
        return [masks.points[number].id for number in bits(found)]

    def _found(self, segment: _Segment, reaches: Reaches, row: Row) -> Codes64:
        """The numbers of those in a segment."""
        if not reaches:
            return np.zeros(0, np.int64)
        first = [one.reaches[0] if isinstance(one, Envelope) else one for one in reaches]
        found = segment.within(first, row)
        if self._points.has_envelopes:
            points = (self._points[segment.ids[number]] for number in found.tolist())
            found = found[[any(reach.meets(point) for reach in reaches) for point in points]]
        return found

    def _replace(self, number: int, segment: _Segment) -> None:
        living = segment.living()
        self._segments[number : number + 1] = [self._segment(living)] if living else []

    def _close(self) -> None:
        ids = list(self._open)
        while self._segments and self._segments[-1].alive < MERGE_RATIO * len(ids):
            ids += self._segments.pop().living()
        self._segments.append(self._segment(ids))
        self._open, self._open_masks = {}, None

    def _segment(self, ids: list[PointId]) -> _Segment:
        return _Segment(self._points.subset(ids), self._points.base)


def coded_reach(reach: Reach, codes: Codes) -> tuple[int, int, int, int]:
    """The reach in codes. Its cuts need not be among the constants, the points' ends are."""
    return (
        codes.lowest_at_or_above(reach.low_from),
        _last_low(reach.low_to, codes),
        _first_high(reach.high_from, codes),
        codes.highest_at_or_below(reach.high_to),
    )


def _last_low(cut: Cut, codes: Codes) -> int:
    code = codes.lowest_at_or_above(cut)
    return code if codes.low_cut(code) == cut else code - 1


def _first_high(cut: Cut, codes: Codes) -> int:
    code = codes.highest_at_or_below(cut)
    return code if codes.high_cut(code) == cut else code + 1
