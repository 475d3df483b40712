"""The range outcomes of one test: which of many intervals of one attribute hold for a value?

`x BETWEEN 2 AND 3` implies `x > 1`. Outcomes are therefore arranged as a forest in which each
interval lies inside its parent: if the parent does not hold, nothing below it is looked at. In a
family of siblings no interval contains another, so both ends ascend, and those that contain a
value are neighbours: two binary searches find them all, and none of them is tested by itself.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from penstock.catalog import Key
from penstock.predicates.intervals import Cut, Interval, above, below

T = TypeVar("T")

_FRESH_AT_LEAST = 8
"""Up to this many outcomes are tested one by one; a forest for them would not pay."""
_FRESH_SHARE = 8
"""The forest is rebuilt when more than one outcome in eight was added or removed since."""


@dataclass(slots=True)
class _Siblings:
    """Intervals of which none contains another, both ends ascending."""

    lows: list[Cut] = field(default_factory=list)
    highs: list[Cut] = field(default_factory=list)
    intervals: list[Interval] = field(default_factory=list)
    inside: list[_Siblings | None] = field(default_factory=list)

    def append(self, interval: Interval) -> None:
        self.lows.append(interval.low)
        self.highs.append(interval.high)
        self.intervals.append(interval)
        self.inside.append(None)


class RangeOutcomes(Generic[T]):
    """A map from intervals to their successors, searched by value."""

    __slots__ = ("_edges", "_forest", "_fresh", "_placed")

    def __init__(self) -> None:
        self._edges: dict[Interval, T] = {}
        self._fresh: dict[Interval, None] = {}
        self._placed: set[Interval] = set()
        self._forest = _Siblings()

    def __len__(self) -> int:
        return len(self._edges)

    def get(self, interval: Interval) -> T | None:
        return self._edges.get(interval)

    def __setitem__(self, interval: Interval, following: T) -> None:
        self._edges[interval] = following
        if interval not in self._placed:
            self._fresh[interval] = None

    def __delitem__(self, interval: Interval) -> None:
        del self._edges[interval]
        self._fresh.pop(interval, None)

    def values(self) -> Iterable[T]:
        return self._edges.values()

    def holding(self, key: Key | None) -> Iterator[T]:
        """The values of the intervals that contain a key (None: NULL)."""
        dead = len(self._placed) + len(self._fresh) - len(self._edges)
        if len(self._fresh) + dead > max(_FRESH_AT_LEAST, len(self._edges) // _FRESH_SHARE):
            self._build()
        low, high = below(key), above(key)
        for interval in self._fresh:
            if interval.low <= low and high <= interval.high:
                yield self._edges[interval]
        waiting = [self._forest]
        while waiting:
            family = waiting.pop()
            for i in range(bisect_left(family.highs, high), bisect_right(family.lows, low)):
                following = self._edges.get(family.intervals[i])
                if following is not None:
                    yield following
                inside = family.inside[i]
                if inside is not None:
                    waiting.append(inside)

    def _build(self) -> None:
        """The forest of all intervals: sorted by low end, wide before narrow, then one pass."""
        self._forest = _Siblings()
        open_families = [self._forest]
        for interval in sorted(self._edges, key=_by_low_then_wide):
            # Intervals come by low end. Whatever an open interval that ends before this one still
            # contains, this one contains, too: the open one can be closed.
            while len(open_families) > 1 and open_families[-2].highs[-1] < interval.high:
                open_families.pop()
            family = open_families[-1]
            family.append(interval)
            open_families.append(_Siblings())
            family.inside[-1] = open_families[-1]
        self._placed = set(self._edges)
        self._fresh = {}

    def nbytes(self) -> int:
        return sys.getsizeof(self._edges) + sys.getsizeof(self._placed) + sys.getsizeof(self._fresh)


class _Widest:
    """Reverses the order of cuts."""

    __slots__ = ("cut",)

    def __init__(self, cut: Cut) -> None:
        self.cut = cut

    def __lt__(self, other: _Widest) -> bool:
        return other.cut < self.cut


def _by_low_then_wide(interval: Interval) -> tuple[Cut, _Widest]:
    return interval.low, _Widest(interval.high)
