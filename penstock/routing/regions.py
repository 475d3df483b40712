"""An index over the points of one space that finds those in a message's region.

Points are in a few *segments* (`penstock.matching.tiers`), each with its own codes and one tree;
the delta is kept as bit masks. A withdrawn point is marked as removed in its segment. The answer is
exact: the tree filters by the (first) filter interval and the base column that most points
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
from penstock.matching.tiers import TierPolicy, Tiers
from penstock.messages import Envelope, Point, PointId, Reach, Reaches
from penstock.messages.point_masks import PointMasks
from penstock.predicates.codes import Codes
from penstock.predicates.intervals import Cut
from penstock.predicates.masks import bits
from penstock.routing.region_kernel import points_in_region

POLICY = TierPolicy(delta_items=512, smallest=2048, ratio_bits=2, fanout=2)
"""The delta is kept as bit masks, rebuilt at 2 us a point after insertions. Each query goes to all
segments, so there is at most one per tier."""


class RegionSegment:
    """Some points with their own codes, in one tree."""

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
        self.dead_count = 0

    def __len__(self) -> int:
        return len(self.ids)

    def strike_out(self, point: PointId) -> bool:
        """Remove a point; False if it is not held."""
        if self._numbers is None:
            self._numbers = {one: number for number, one in enumerate(self.ids)}
        number = self._numbers.pop(point, None)
        if number is None:
            return False
        self._is_alive[number] = False
        self.dead_count += 1
        return True

    def living(self) -> list[PointId]:
        return [self.ids[number] for number in np.flatnonzero(self._is_alive)]

    def within(self, reaches: Sequence[Reach], row: Row) -> Codes64:
        """The numbers of the points in the region."""
        boxes = np.array([coded_reach(reach, self._codes) for reach in reaches], np.int64)
        code = self._base_codes.value(self._key(self._column, row))
        found = points_in_region(self._forest, boxes, code)
        if self.dead_count:
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
    """Notified by the space of every insertion and removal. Not thread-safe, like the space."""

    def __init__(self, points: SpacePoints) -> None:
        self._points = points
        self._tiers: Tiers[PointId, Point, RegionSegment] = Tiers(
            POLICY, self._merged, [RegionSegment(points, points.base)] if len(points) else []
        )
        self._delta_masks: PointMasks | None = None

    def add(self, point: Point) -> None:
        self._tiers.add(point.id, point)
        self._delta_masks = None

    def remove(self, point: Point) -> None:
        if self._tiers.delta.pop(point.id, None) is not None:
            self._delta_masks = None
            return
        for segment in self._tiers.segments:
            if segment.strike_out(point.id):
                self._tiers.item_died(segment)
                return

    def within(self, reaches: Reaches, row: Row) -> list[PointId]:
        """The points in the region whose base boxes contain the row."""
        found = self._delta_within(reaches, row)
        for segment in self._tiers.segments:
            ids = segment.ids
            found += [ids[number] for number in self._found(segment, reaches, row).tolist()]
        return found

    def subscriptions_within(self, reaches: Reaches, row: Row) -> set[int]:
        """The subscriptions of these points. (Their numbers are in one array; fetching each PointId
        would be a random memory access.)"""
        found = {point.subscription for point in self._delta_within(reaches, row)}
        for segment in self._tiers.segments:
            found.update(segment.subscriptions[self._found(segment, reaches, row)].tolist())
        return found

    def _delta_within(self, reaches: Reaches, row: Row) -> list[PointId]:
        delta = self._tiers.delta
        if not delta:
            return []
        if self._delta_masks is None:
            self._delta_masks = PointMasks(list(delta.values()), self._points.base)
        masks = self._delta_masks
        found = masks.within(reaches) & masks.selecting(row)
        return [masks.points[number].id for number in bits(found)]

    def _found(self, segment: RegionSegment, reaches: Reaches, row: Row) -> Codes64:
        """The numbers of the points of a segment in the region."""
        if not reaches:
            return np.zeros(0, np.int64)
        first = [one.reaches[0] if isinstance(one, Envelope) else one for one in reaches]
        found = segment.within(first, row)
        if self._points.has_envelopes:
            points = (self._points[segment.ids[number]] for number in found.tolist())
            found = found[[any(reach.meets(point) for reach in reaches) for point in points]]
        return found

    def _merged(
        self, points: Sequence[Point], old: Sequence[RegionSegment]
    ) -> RegionSegment | None:
        ids = [point.id for point in points]
        for segment in old:
            ids += segment.living()
        return RegionSegment(self._points.subset(ids), self._points.base) if ids else None


def coded_reach(reach: Reach, codes: Codes) -> tuple[int, int, int, int]:
    """The reach in codes. Its cuts need not be among the constants; the points' ends are."""
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
