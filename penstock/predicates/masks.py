"""Sets of numbered intervals over one attribute as bit masks, found by binary search.

Sorted by one end, the intervals that begin (or end) before a cut are a prefix, and every prefix is
one mask. So "which of a thousand intervals contain this value?" takes two searches and two
operations on masks of a thousand bits, whether the intervals overlap or not.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping

from penstock.catalog import Key
from penstock.predicates.intervals import Cut, Interval, above, below


class IntervalMasks:
    """The intervals of `count` members: member i has bit i. Members without one are unbounded."""

    __slots__ = ("_free", "_highs", "_lows", "_starting", "_stopping")

    def __init__(self, intervals: Mapping[int, Interval], count: int) -> None:
        by_low = sorted(intervals, key=lambda i: intervals[i].low)
        by_high = sorted(intervals, key=lambda i: intervals[i].high)
        self._lows = [intervals[i].low for i in by_low]
        self._highs = [intervals[i].high for i in by_high]
        self._starting, self._stopping = _prefixes(by_low), _prefixes(by_high)
        self._free = self._starting[-1] ^ ((1 << count) - 1)

    def containing(self, key: Key | None) -> int:
        """The members whose interval contains a value."""
        return self.covering(below(key), above(key))

    def covering(self, low: Cut, high: Cut) -> int:
        """The members whose interval contains everything from `low` to `high`."""
        early = self._starting[bisect_right(self._lows, low)]
        late = self._stopping[-1] ^ self._stopping[bisect_left(self._highs, high)]
        return self._free | (early & late)

    def bounded(self, lows: tuple[Cut, Cut], highs: tuple[Cut, Cut]) -> int:
        """The members whose interval begins between two cuts and ends between two others.

        Unbounded members are not included; the caller decides whether they match.
        """
        ends, masks, (first, last) = self._lows, self._starting, lows
        beginning = masks[bisect_right(ends, last)] & ~masks[bisect_left(ends, first)]
        if not beginning:
            return 0
        ends, masks, (first, last) = self._highs, self._stopping, highs
        return beginning & masks[bisect_right(ends, last)] & ~masks[bisect_left(ends, first)]


def bits(mask: int) -> Iterator[int]:
    """The members of a set, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def _prefixes(order: Iterable[int]) -> list[int]:
    """Masks of the first 0, 1, 2, ... members."""
    prefixes = [0]
    for i in order:
        prefixes.append(prefixes[-1] | (1 << i))
    return prefixes
