"""An index over the points of one space that answers gap-shadow queries without a full scan.

Points are kept in a few *segments* (`penstock.matching.tiers`), each with its own codes and tree;
the delta is a small segment too. Withdrawn points stay in segments until most points are gone: a
shadow that is too large costs a skyline point or a needless message, never a missing tuple.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.catalog import Key
from penstock.joins.cut_ranges import Flat, union_ranges
from penstock.joins.points import SpacePoints
from penstock.joins.shadow_segment import BaseValues, FilterAndBase, ShadowSegment
from penstock.matching.tiers import TierPolicy, Tiers
from penstock.messages import Point, PointId
from penstock.predicates.boxes import interval_of
from penstock.predicates.intervals import EVERYTHING, TOP, Cut

POLICY = TierPolicy(delta_items=256, smallest=2048, ratio_bits=3, fanout=2)
"""The delta's segment is rebuilt after each insertion: half a millisecond at 256 points. Each query
goes to all segments, so there is at most one per tier, and tiers are far apart."""
KEPT_ARRIVALS = 1024
"""Insertions kept so that derived data can catch up; older derived data is rebuilt."""


@dataclass(frozen=True, slots=True)
class PreparedShadows:
    """The precomputed segment of all frozen points of a space."""

    column: int | None
    segment: ShadowSegment


class ShadowIndex:
    """All points of a space in segments; the space notifies it of insertions and removals.

    `stamp` changes with every insertion or removal; `generation` changes when everything is
    rebuilt, possibly over another base column.
    """

    def __init__(self, points: SpacePoints) -> None:
        self._points = points
        self.generation = 0
        self.stamp = 0
        self._arrivals: list[Point] = []
        self._forgotten = 0  # insertions that are no longer kept
        self._build()

    def _build(self) -> None:
        self.generation += 1
        self.column = self._points.main_column
        self._built_points = len(self._points)
        self._tiers: Tiers[PointId, Point, ShadowSegment] = Tiers(
            POLICY, self._merged, [self._segment_of_all()] if len(self._points) else []
        )
        self._delta_segment: ShadowSegment | None = None
        self._gone = 0
        self._stale = False

    def _segment_of_all(self) -> ShadowSegment:
        prepared = self._points.prepared(self.column)
        if isinstance(prepared, PreparedShadows):
            return prepared.segment
        return ShadowSegment(self._points.filters, self._points.base_ranges(self.column))

    def add(self, point: Point) -> None:
        self.stamp += 1
        self._tiers.add(point.id, point)
        self._delta_segment = None
        self._arrivals.append(point)
        if len(self._arrivals) > 2 * KEPT_ARRIVALS:
            self._forgotten += KEPT_ARRIVALS
            del self._arrivals[:KEPT_ARRIVALS]
        self._stale = self._stale or self._points.has_outgrown(self.column, self._built_points)

    def remove(self, point: Point) -> None:
        self.stamp += 1
        if self._tiers.delta.pop(point.id, None) is not None:
            self._delta_segment = None
            return
        self._gone += 1
        if self._gone > POLICY.delta_items:
            held = self._gone + len(self._points)
            self._stale = self._stale or POLICY.is_mostly_dead(self._gone, held)

    def refresh(self) -> None:
        """Call before a series of queries: rebuilds the index if it is too stale."""
        if self._stale:
            self._build()

    @property
    def arrived(self) -> int:
        """The number of points inserted so far."""
        return self._forgotten + len(self._arrivals)

    def arrivals_since(self, arrived: int) -> list[FilterAndBase] | None:
        """The points inserted after the first `arrived` ones; None if they are no longer kept."""
        if arrived < self._forgotten:
            return None
        return [
            self._filter_and_base(point) for point in self._arrivals[arrived - self._forgotten :]
        ]

    def next_end(self, after: Cut | None) -> Cut:
        """A lower bound of the high ends of all filter intervals above a value; TOP may mean none.

        A gap from `after` to a value below that bound contains no interval.
        """
        ends = [segment.next_end(after) for segment in self._segments()]
        return min((end for end in ends if end is not None), default=NEVER)

    def split(self, x: Cut | None, cut: Cut, y: Cut | None) -> tuple[Flat, Flat, Flat]:
        """The base ranges of points inside the gap (x, y): below, containing and above a value."""
        parts = [segment.split(x, cut, y) for segment in self._segments()]
        left, middle, right = (union_ranges([part[i] for part in parts]) for i in range(3))
        return left, middle, right

    def exposed(self, x: Cut | None, cut: Cut, y: Cut | None, base: BaseValues) -> Flat:
        """The base values that are selected by points inside the gap (x, y) containing a value."""
        segments = self._segments()
        base.keep(segments)
        return union_ranges([segment.exposed(x, cut, y, base) for segment in segments])

    def holding(self, cuts: list[Cut], value: Key | None) -> tuple[list[Cut], bool]:
        """The gaps, by the value on the left, whose shadows hold a base value, sorted; and whether
        the shadow of the points that contain a value does."""
        found = [segment.holding(cuts, value) for segment in self._segments()]
        lefts = {left for some, _ in found for left in some}
        return sorted(lefts), any(is_affected for _, is_affected in found)

    def gaps(self, cuts: list[Cut]) -> tuple[dict[Cut, Flat], Flat]:
        """The shadows of all gaps between values, and that of the points that contain a value."""
        found = [segment.gaps(cuts) for segment in self._segments()]
        if len(found) == 1:
            return found[0]
        lefts = {left for shadows, _ in found for left in shadows}
        gaps = {left: union_ranges([s[left] for s, _ in found if left in s]) for left in lefts}
        return gaps, union_ranges([affected for _, affected in found])

    def any_point(self, value: Key | None, runs: Sequence[tuple[Cut, Cut]]) -> bool:
        return any(segment.any_point(value, runs) for segment in self._segments())

    @property
    def only_segment(self) -> ShadowSegment | None:
        """The only segment; None if there are several, for example a delta of recent points."""
        segments = self._tiers.segments
        return segments[0] if len(segments) == 1 and not self._tiers.delta else None

    def _filter_and_base(self, point: Point) -> FilterAndBase:
        base = EVERYTHING if self.column is None else interval_of(point.base, self.column)
        return point.filter, base

    def _segments(self) -> list[ShadowSegment]:
        delta = self._tiers.delta
        if delta and self._delta_segment is None:
            self._delta_segment = self._merged(list(delta.values()), ())
        segments = self._tiers.segments
        return [*segments, self._delta_segment] if self._delta_segment else segments

    def _merged(self, points: Sequence[Point], old: Sequence[ShadowSegment]) -> ShadowSegment:
        intervals = [self._filter_and_base(point) for point in points]
        for segment in old:
            intervals += segment.intervals()
        return ShadowSegment.of(intervals)


NEVER: Cut = (TOP[0] + 1,)
"""Above every end of an interval."""
