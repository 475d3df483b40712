"""The points of one space, arranged so that gap shadows can be asked for without a full pass.

Points live in a few *segments*, each with its own codes and its own tree. New points go to a small
open segment; when it is full it is closed, and closed segments of similar size are merged, so a
point is rebuilt O(log n) times. Withdrawn points stay in closed segments until most points are
gone: a shadow that is too large costs a skyline point or a needless message, never a tuple.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from penstock.catalog import Key
from penstock.joins.kernels.follow import Followed, Lookup, follow
from penstock.joins.kernels.gaps import Parted, all_gaps, anyone, code_of, split_gap
from penstock.joins.kernels.trees import plant, unions_of
from penstock.joins.points import CodeArray, CodedRanges, SpacePoints
from penstock.joins.ranges import NO_RANGES, Flat, bridged, united
from penstock.messages import Point, PointId
from penstock.predicates.boxes import interval_of
from penstock.predicates.codes import NULL_CODE
from penstock.predicates.intervals import EVERYTHING, TOP, Cut, Interval

OPEN_POINTS = 256
"""The open segment is built anew after each arrival: half a millisecond at this size."""
MERGE_RATIO = 8
"""A closed segment is merged with the one before it unless that one is so many times larger."""
KEPT_ARRIVALS = 1024
"""So far back can something derived from the index catch up; after that it starts anew."""

Wish = tuple[Interval, Interval]
"""A filter interval and an interval over the index's base column."""


def key_of(cut: Cut) -> Key | None:
    """The key that a cut `below(key)` stands for."""
    return cut[1] if len(cut) == 3 else None


class Segment:
    """Some points, in codes of their own, in one tree."""

    def __init__(self, filters: CodedRanges, base: CodedRanges) -> None:
        self._filters, self._base = filters, base
        some = (filters.low <= filters.high) & (base.low <= base.high)
        columns = (filters.low, filters.high, base.low, base.high)
        self._forest = plant(np.stack([column[some] for column in columns], axis=1))
        self._unions = unions_of(self._forest)
        self._next_high = _next_highs(filters.low[some], filters.high[some], filters.codes.top)
        self._constants = _as_array(filters.codes.constants)

    @classmethod
    def of(cls, wishes: Sequence[Wish]) -> Segment:
        return cls(CodedRanges.of([w[0] for w in wishes]), CodedRanges.of([w[1] for w in wishes]))

    def __len__(self) -> int:
        return len(self._filters.low)

    def wishes(self) -> Iterator[Wish]:
        return ((self._filters.interval(i), self._base.interval(i)) for i in range(len(self)))

    def next_end(self, after: Cut | None) -> Cut | None:
        """The lowest end of all filter intervals that lie wholly above a value; None if none."""
        codes = self._filters.codes
        code = NULL_CODE if after is None else self._code(after) + 1
        high = int(self._next_high[code - NULL_CODE])
        return None if high > codes.top else codes.high_cut(high)

    def split(
        self, x: Cut | None, cut: Cut, y: Cut | None, only_middle: bool
    ) -> tuple[Flat, Flat, Flat]:
        low = NULL_CODE - 1 if x is None else self._code(x)
        high = self._filters.codes.top + 1 if y is None else self._code(y)
        code = self._code(cut)
        parted = split_gap(self._forest, self._unions, low, code, high, only_middle)
        left, middle, right = (self._flat(parted, part) for part in range(3))
        return left, middle, right

    def gaps(self, cuts: list[Cut]) -> tuple[dict[Cut, Flat], Flat]:
        """The shadows of the gaps between values that are not empty, by the value on the left, and
        the shadow of the points that contain a value."""
        coded = np.array([self._code(cut) for cut in cuts], np.int64)
        last_of = np.flatnonzero(np.append(np.diff(coded) > 0, True))
        parted = all_gaps(self._forest, self._unions, coded[last_of])
        begin, count = parted[0], len(last_of)
        inner = np.flatnonzero(np.diff(begin[: count + 1]))
        shadows = {cuts[last_of[gap - 1]]: self._flat(parted, int(gap)) for gap in inner}
        return shadows, self._flat(parted, count + 1)

    def follow(
        self,
        values: CodeArray,
        counts: CodeArray,
        changed: CodeArray,
        signs: CodeArray,
        *,
        is_anything_to_show: bool,
    ) -> Followed | None:
        """What changes of filter values show and hide; None if values here are not numbers."""
        if self._constants is None:
            return None
        lookup = Lookup(self._constants, self._next_high)
        held = (values, counts, changed, signs)
        return follow(self._forest, self._unions, lookup, *held, is_anything_to_show)

    def flat(self, low: CodeArray, high: CodeArray) -> Flat:
        """Ranges of base codes as cuts."""
        codes = self._base.codes
        flat: Flat = []
        for first, last in zip(low.tolist(), high.tolist(), strict=True):
            flat += (codes.low_cut(first), codes.high_cut(last))
        return bridged(flat) if flat else NO_RANGES

    def anyone(self, value: Key | None, runs: Sequence[tuple[Cut, Cut]]) -> bool:
        """Whether a point selects the base value and contains, for some run of partner values (last
        and first), one of them, or reaches over all of the run."""
        last, first = (np.array([self._code(run[end]) for run in runs], np.int64) for end in (0, 1))
        return anyone(self._forest, self._unions, self._base.codes.value(value), last, first)

    def _code(self, cut: Cut) -> int:
        """The code of the filter value above a cut. Numbers are looked up in a flat array: among a
        million Python objects every comparison would wait for memory."""
        key = key_of(cut)
        if self._constants is not None and isinstance(key, int):
            try:
                return code_of(self._constants, key)
            except OverflowError:
                pass  # beyond 64 bits, as no constant is
        return self._filters.codes.value(key)

    def _flat(self, parted: Parted, part: int) -> Flat:
        begin, low, high = parted
        return self.flat(low[begin[part] : begin[part + 1]], high[begin[part] : begin[part + 1]])


def _as_array(constants: list[Key]) -> CodeArray | None:
    try:
        return np.array(constants, np.int64) if constants else None
    except (OverflowError, ValueError):
        return None  # text, or numbers of more than 64 bits


def _next_highs(low: CodeArray, high: CodeArray, top: int) -> CodeArray:
    """By code from NULL's on: the lowest high of the ranges that start there or later."""
    lowest = np.full(top - NULL_CODE + 2, top + 1, np.int64)
    np.minimum.at(lowest, low - NULL_CODE, high)
    return np.minimum.accumulate(lowest[::-1])[::-1]


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
            base = self._points.base_ranges(self.column)
            self._closed.append(Segment(self._points.filters, base))
        self._open: dict[PointId, Point] = {}
        self._open_segment: Segment | None = None
        self._gone = 0
        self._stale = False

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

    def split(
        self, x: Cut | None, cut: Cut, y: Cut | None, *, only_middle: bool = False
    ) -> tuple[Flat, Flat, Flat]:
        """The base ranges of those inside the gap (x, y): below, containing and above a value."""
        parts = [segment.split(x, cut, y, only_middle) for segment in self._segments()]
        left, middle, right = (united([part[i] for part in parts]) for i in range(3))
        return left, middle, right

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

    def _segments(self) -> Iterable[Segment]:
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
