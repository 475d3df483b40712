"""The points of one space, arranged so that gap shadows can be asked for without a full pass.

Points live in a few *segments*, each with its own codes and its own tree. New points go to a small
open segment; when it is full it is closed, and closed segments of similar size are merged, so a
point is rebuilt O(log n) times. Withdrawn points stay in closed segments until most points are
gone: a shadow that is too large costs a skyline point or a needless message, never a tuple.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.catalog import Key
from penstock.joins.points import SpacePoints
from penstock.joins.ranges import Flat, united
from penstock.joins.shadow_segment import BaseValues, Segment, Wish
from penstock.messages import Point, PointId
from penstock.predicates.boxes import interval_of
from penstock.predicates.intervals import EVERYTHING, TOP, Cut

OPEN_POINTS = 256
"""The open segment is built anew after each arrival: half a millisecond at this size."""
MERGE_RATIO = 8
"""A closed segment is merged with the one before it unless that one is so many times larger."""
KEPT_ARRIVALS = 1024
"""So far back can something derived from the index catch up; after that it starts anew."""


@dataclass(frozen=True, slots=True)
class PreparedShadows:
    """The segment of all frozen points of a space."""

    column: int | None
    segment: Segment


class ShadowIndex:
    """All points of a space in segments; told of points that come and go.

    `stamp` changes with every point that comes or goes; `generation` changes when everything is
    built anew, perhaps over another base column.
    """

    def __init__(self, points: SpacePoints) -> None:
        self._points = points
        self.generation = 0
        self.stamp = 0
        self._arrivals: list[Point] = []
        self._forgotten = 0  # arrivals that are no longer kept
        self._build()

    def _build(self) -> None:
        self.generation += 1
        self.column = self._points.main_column
        self._built_points = len(self._points)
        self._closed: list[Segment] = []
        if len(self._points):
            prepared = self._points.prepared(self.column)
            if isinstance(prepared, PreparedShadows):
                self._closed.append(prepared.segment)
            else:
                self._closed.append(self._segment())
        self._open: dict[PointId, Point] = {}
        self._open_segment: Segment | None = None
        self._gone = 0
        self._stale = False

    def _segment(self) -> Segment:
        return Segment(self._points.filters, self._points.base_ranges(self.column))

    def add(self, point: Point) -> None:
        self.stamp += 1
        self._open[point.id] = point
        self._open_segment = None
        self._arrivals.append(point)
        if len(self._arrivals) > 2 * KEPT_ARRIVALS:
            self._forgotten += KEPT_ARRIVALS
            del self._arrivals[:KEPT_ARRIVALS]
        if len(self._open) >= OPEN_POINTS:
            self._close()
        self._stale = self._stale or self._points.has_outgrown(self.column, self._built_points)

    def remove(self, point: Point) -> None:
        self.stamp += 1
        if self._open.pop(point.id, None) is not None:
            self._open_segment = None
        else:
            self._gone += 1
            self._stale = self._stale or self._gone > max(OPEN_POINTS, len(self._points))

    def refresh(self) -> None:
        """To be called before a series of questions: build anew what has gone too stale."""
        if self._stale:
            self._build()

    @property
    def arrived(self) -> int:
        """How many points have come so far."""
        return self._forgotten + len(self._arrivals)

    def arrivals_since(self, arrived: int) -> list[Wish] | None:
        """The points that came later than that; None if that is too long ago to say."""
        if arrived < self._forgotten:
            return None
        return [self._wish(point) for point in self._arrivals[arrived - self._forgotten :]]

    def next_end(self, after: Cut | None) -> Cut:
        """An end of filter intervals above a value, such that none ends before; TOP may mean none.

        A gap from `after` to a value below that end is empty.
        """
        ends = [segment.next_end(after) for segment in self._segments()]
        return min((end for end in ends if end is not None), default=NEVER)

    def split(self, x: Cut | None, cut: Cut, y: Cut | None) -> tuple[Flat, Flat, Flat]:
        """The base ranges of those inside the gap (x, y): below, containing and above a value."""
        parts = [segment.split(x, cut, y) for segment in self._segments()]
        left, middle, right = (united([part[i] for part in parts]) for i in range(3))
        return left, middle, right

    def exposed(self, x: Cut | None, cut: Cut, y: Cut | None, base: BaseValues) -> Flat:
        """Of some base values those selected by points inside the gap (x, y) containing a value."""
        segments = self._segments()
        base.keep(segments)
        return united([segment.exposed(x, cut, y, base) for segment in segments])

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
        gaps = {left: united([s[left] for s, _ in found if left in s]) for left in lefts}
        return gaps, united([affected for _, affected in found])

    def anyone(self, value: Key | None, runs: Sequence[tuple[Cut, Cut]]) -> bool:
        return any(segment.anyone(value, runs) for segment in self._segments())

    @property
    def only_segment(self) -> Segment | None:
        """The segment, if there is just one, as long as no subscriptions have come lately."""
        return self._closed[0] if len(self._closed) == 1 and not self._open else None

    def _wish(self, point: Point) -> Wish:
        base = EVERYTHING if self.column is None else interval_of(point.base, self.column)
        return point.filter, base

    def _segments(self) -> list[Segment]:
        if self._open and self._open_segment is None:
            self._open_segment = Segment.of([self._wish(p) for p in self._open.values()])
        return [*self._closed, self._open_segment] if self._open_segment else self._closed

    def _close(self) -> None:
        wishes = [self._wish(point) for point in self._open.values()]
        while self._closed and len(self._closed[-1]) < MERGE_RATIO * len(wishes):
            wishes += self._closed.pop().wishes()
        self._closed.append(Segment.of(wishes))
        self._open, self._open_segment = {}, None


NEVER: Cut = (TOP[0] + 1,)
"""Beyond every end of an interval."""
