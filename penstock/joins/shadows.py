"""Gap shadows: a summary of all subscriptions for one join value, in a few ranges.

Take one space and one join value. The filter values of the joining rows, sorted, cut the filter
axis into gaps. A point is unaffected by a base row if its filter interval lies inside a gap. The
*shadow* of a gap is the union of the base ranges of the points inside it; one more shadow is that
of the affected points. For a base row with value `a`: if `a` is not in the shadow of the affected,
no point needs the row. Otherwise neighbouring filter values can share a skyline point (last, first)
wherever `a` is not in the shadow of the gap between them. The resulting skyline is descriptive, and
costs one binary search per gap whatever the number of points. Between two consecutive cuts of all
those shadows the answer is the same for every `a`, so while filter values do not change it becomes
a single binary search.

Adding a filter value splits a gap, removing one joins two. The affected points are those inside the
whole gap that contain the value: joining rows in their base ranges appear to them, or vanish.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable

from penstock.catalog import Key
from penstock.joins.cut_ranges import NO_RANGES, Flat, holds, union_ranges
from penstock.joins.shadow_index import ShadowIndex
from penstock.joins.shadow_segment import BaseValues
from penstock.joins.visibility import Exposure, exposure, reaches
from penstock.messages import Reaches
from penstock.predicates.intervals import TOP, Cut, below

QUIET_AFTER = 4
"""Base rows since the last change of filter values after which precomputing answers pays off."""
IDLE_AFTER = 64
"""Changes of filter values without any base row after which the shadows are dropped; at least as
many as there are filter values, because rebuilding the shadows reads all of them."""
VALUES_PER_STEP = 32
"""Shadows are rebuilt at most once per (filter values / this) steps: a value takes half a
microsecond."""
FEW_VALUES = 32
"""Up to this many filter values, gaps are wide and shadows have many ranges: a tree walk for one
base value takes less than a tenth of the time to collect them."""


class ValueShadows:
    """The filter values of one join value in one space, and the shadows of the gaps between them.

    Everything is stored as cuts, so nothing depends on codes or on how the index is built.
    """

    def __init__(self, index: ShadowIndex, values: Iterable[Key | None]) -> None:
        self.index = index
        self.stamp = index.stamp
        self._generation = index.generation
        self._arrived = index.arrived
        self._counts: dict[Cut, int] = {}
        for value in values:
            cut = below(value)
            self._counts[cut] = self._counts.get(cut, 0) + 1
        self._cuts = sorted(self._counts)
        self._gaps: dict[Cut, Flat] | None = None
        self._lefts: list[Cut] = []
        self._affected: Flat = NO_RANGES
        self._loose = False  # whether the shadow of the affected may be too large
        self._boundaries: Flat | None = None
        self._answers: dict[int, Reaches] = {}
        # Lower bounds: no filter interval above the key ends before the cut. Keys in the set have
        # exact bounds: an interval ends there.
        self._ends: dict[Cut | None, Cut] = {}
        self._exact_ends: set[Cut | None] = set()
        self._base_rows_since = self._values_since = self._steps_since_built = 0

    def describe(self, value: Key | None) -> Reaches:
        """The reaches of the points that select a base value and contain a filter value."""
        if not self._cuts:
            return ()
        self._values_since = 0
        self._base_rows_since += 1
        probe = below(value)
        self._steps_since_built += 1
        if self._boundaries is None:
            if self._base_rows_since <= QUIET_AFTER or self._is_too_soon():
                return self._look_up(value, probe)
            self._settle()
        assert self._boundaries is not None
        cell = bisect_right(self._boundaries, probe)
        answer = self._answers.get(cell)
        if answer is None:
            answer = self._answers[cell] = self._find(value, probe)
        return answer

    def show(self, value: Key | None, base: Callable[[], BaseValues]) -> Exposure | None:
        """Add a filter value; returns which points see which base rows for the first time.

        `base` gives the values of the present base rows; mostly it is not called.
        """
        cut = below(value)
        count = self._counts.get(cut, 0)
        self._counts[cut] = count + 1
        if count:
            return None
        place = bisect_left(self._cuts, cut)
        x, y = self._around(place)
        self._cuts.insert(place, cut)
        left, middle, right = self._split(x, cut, y, base)
        if self._gaps is not None:
            self._put_gap(x, left)
            self._put_gap(cut if y is not None else None, right)
            if middle:
                self._affected = union_ranges([self._affected, middle])
        return exposure(x, cut, y, middle)

    def hide(self, value: Key | None, base: Callable[[], BaseValues]) -> Exposure | None:
        """Remove a filter value; returns which points no longer see which base rows."""
        cut = below(value)
        self._counts[cut] -= 1
        if self._counts[cut]:
            return None
        del self._counts[cut]
        self._ends.pop(cut, None)
        self._exact_ends.discard(cut)
        place = bisect_left(self._cuts, cut)
        del self._cuts[place]
        x, y = self._around(place)
        left, middle, right = self._split(x, cut, y, base)
        if self._gaps is not None:
            self._put_gap(cut, NO_RANGES)
            inner = x is not None and y is not None
            self._put_gap(x, union_ranges([left, middle, right]) if inner else NO_RANGES)
            self._loose = self._loose or bool(middle)
        return exposure(x, cut, y, middle)

    def catch_up(self) -> bool:
        """Add the points inserted since the last call; False if this must be rebuilt."""
        index = self.index
        index.refresh()
        arrivals = index.arrivals_since(self._arrived)
        if index.generation != self._generation or arrivals is None:
            return False
        self.stamp = index.stamp
        self._arrived = index.arrived
        if arrivals:
            self._ends.clear()
            self._exact_ends.clear()
            self._boundaries = None
        if self._gaps is not None:
            for interval, base in arrivals:
                self._take_in(interval.low, interval.high, [base.low, base.high])
        return True

    def _take_in(self, low: Cut, high: Cut, base: Flat) -> None:
        """Add a point to the shadow of its gap, or to that of the affected."""
        assert self._gaps is not None
        place = bisect_left(self._cuts, low)
        if base[0] >= base[1] or low >= high:
            return
        if place < len(self._cuts) and self._cuts[place] < high:
            self._affected = union_ranges([self._affected, base])
        elif 0 < place < len(self._cuts):
            left = self._cuts[place - 1]
            self._put_gap(left, union_ranges([self._gaps.get(left, NO_RANGES), base]))

    def _around(self, place: int) -> tuple[Cut | None, Cut | None]:
        """The filter values on both sides of an insertion position."""
        x = self._cuts[place - 1] if place > 0 else None
        return x, self._cuts[place] if place < len(self._cuts) else None

    def _split(
        self, x: Cut | None, cut: Cut, y: Cut | None, base: Callable[[], BaseValues]
    ) -> tuple[Flat, Flat, Flat]:
        """The shadows inside the gap (x, y): below, containing and above a value added or removed.

        If no shadows are kept, only the middle one is computed, restricted to present base rows.
        """
        self._boundaries = None
        self._base_rows_since = 0
        self._values_since += 1
        self._steps_since_built += 1
        if self._values_since > max(IDLE_AFTER, len(self._cuts)):
            self._gaps = None
        if self._is_empty(x, cut, TOP if y is None else y):
            return NO_RANGES, NO_RANGES, NO_RANGES
        if self._gaps is None:
            return NO_RANGES, self.index.exposed(x, cut, y, base()), NO_RANGES
        return self.index.split(x, cut, y)

    def _is_empty(self, x: Cut | None, cut: Cut, y: Cut) -> bool:
        """Whether it is certain that no point lies inside the gap (x, y).

        A bound of the ends above x also bounds those above a value in the gap; so while values are
        too dense for any interval to fit between them, the index is not queried.
        """
        end = self._ends.get(x)
        if (end is None or end <= y) and x not in self._exact_ends:
            end = self._ends[x] = self.index.next_end(x)
            self._exact_ends.add(x)
        assert end is not None
        if cut in self._counts and cut not in self._exact_ends:
            self._ends[cut] = end
        return end > y

    def _put_gap(self, left: Cut | None, shadow: Flat) -> None:
        assert self._gaps is not None
        if left is None:
            return
        if shadow:
            if left not in self._gaps:
                insort(self._lefts, left)
            self._gaps[left] = shadow
        elif self._gaps.pop(left, None) is not None:
            del self._lefts[bisect_left(self._lefts, left)]

    def _build(self) -> None:
        self._gaps, self._affected = self.index.gaps(self._cuts)
        self._lefts = sorted(self._gaps)
        self._loose = False
        self._steps_since_built = 0

    def _is_too_soon(self) -> bool:
        """Whether to keep a loose shadow of the affected for now: with many filter values, base
        rows and removed values may alternate, and each rebuild reads all values."""
        return self._loose and len(self._cuts) > VALUES_PER_STEP * self._steps_since_built

    def _settle(self) -> None:
        """Filter values seem stable: make the shadows exact and precompute answer boundaries."""
        if self._gaps is None or self._loose:
            self._build()
        assert self._gaps is not None
        self._boundaries = sorted({*self._affected, *(c for g in self._gaps.values() for c in g)})
        self._answers = {}

    def _look_up(self, value: Key | None, probe: Cut) -> Reaches:
        """The answer for a single base value, without building shadows if there are few values."""
        if self._gaps is None and len(self._cuts) <= FEW_VALUES:
            lefts, is_affected = self.index.holding(self._cuts, value)
            return reaches(self._runs(lefts)) if is_affected else ()
        return self._find(value, probe)

    def _find(self, value: Key | None, probe: Cut) -> Reaches:
        """The answer from the shadows."""
        if self._gaps is None:
            self._build()
        assert self._gaps is not None
        if not holds(self._affected, probe):
            return ()
        gaps = self._gaps
        runs = self._runs([left for left in self._lefts if holds(gaps[left], probe)])
        if self._loose and not self.index.any_point(value, runs):
            return ()
        return reaches(runs)

    def _runs(self, lefts: list[Cut]) -> list[tuple[Cut, Cut]]:
        """The runs of values between the gaps that `lefts` begin: last and first of each run."""
        cuts, runs, first = self._cuts, [], self._cuts[0]
        for left in lefts:
            runs.append((left, first))
            first = cuts[bisect_right(cuts, left)]
        runs.append((cuts[-1], first))
        return runs
