"""Many points of one space as arrays of order codes, without an object for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from penstock.catalog import Key
from penstock.garbage import without_garbage
from penstock.joins.array_codes import ArrayCodes, Numbers
from penstock.messages import Point, PointId
from penstock.predicates.boxes import interval_of
from penstock.predicates.codes import NULL_CODE
from penstock.predicates.intervals import EVERYTHING, Interval

Mask = npt.NDArray[np.bool_]
CodeArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CodedRanges:
    """One interval per point over one attribute, as closed ranges of codes."""

    codes: ArrayCodes
    low: CodeArray
    high: CodeArray

    @classmethod
    def of(cls, intervals: Sequence[Interval]) -> CodedRanges:
        codes = ArrayCodes.of_intervals(intervals)
        ranges = np.array([codes.interval(i) for i in intervals], np.int64).reshape(-1, 2)
        return cls(codes, ranges[:, 0].copy(), ranges[:, 1].copy())

    @classmethod
    def everything(cls, count: int) -> CodedRanges:
        """`count` unbounded intervals."""
        codes = ArrayCodes(())
        return cls(codes, np.full(count, NULL_CODE), np.full(count, codes.top))

    def __len__(self) -> int:
        return len(self.low)

    def containing(self, key: Key | None) -> Mask:
        code = self.codes.value(key)
        return (self.low <= code) & (code <= self.high)

    def interval(self, i: int) -> Interval:
        """The interval of one point, decoded."""
        return Interval(
            self.codes.low_cut(int(self.low[i])), self.codes.high_cut(int(self.high[i]))
        )

    @property
    def is_bound(self) -> Mask:
        """Which of the intervals are bounded."""
        return (self.low > NULL_CODE) | (self.high < self.codes.top)

    def take(self, which: Mask | CodeArray | slice) -> CodedRanges:
        return CodedRanges(self.codes, self.low[which], self.high[which])

    def concat(self, other: CodedRanges) -> CodedRanges:
        """These ranges followed by others, in codes over the constants of both."""
        codes = self.codes.union(other.codes)
        (low, high), (other_low, other_high) = self._in(codes), other._in(codes)
        return CodedRanges(
            codes, np.concatenate([low, other_low]), np.concatenate([high, other_high])
        )

    def _in(self, codes: ArrayCodes) -> tuple[CodeArray, CodeArray]:
        """The same ranges in codes over more constants: a gap that is split is covered entirely."""
        place = self.codes.places_in(codes)
        size = len(place)
        # The last gap ends at the top, and the first begins at 0.
        ends = np.concatenate([2 * place, [codes.top]])
        begins = np.concatenate([[0], 2 * place + 2])
        low, high = self.low, self.high
        inner_low, inner_high = np.clip(low, 0, 2 * size), np.clip(high, 0, 2 * size)
        new_low = np.where(low % 2, ends[inner_low // 2] + 1, begins[inner_low // 2])
        new_high = ends[inner_high // 2] + high % 2
        return (
            np.where(low <= NULL_CODE, low, np.where(low > 2 * size, codes.top + 1, new_low)),
            np.where(high <= NULL_CODE, high, new_high),
        )


@dataclass(frozen=True)
class PointArrays:
    """Points of one space, sorted by `numbers`. Base columns that no point constrains are left
    out."""

    numbers: Numbers
    """Subscription, branch and node of each point."""
    base: Mapping[int, CodedRanges]
    filters: tuple[CodedRanges, ...]

    @classmethod
    def of(cls, points: Sequence[Point], more: int) -> PointArrays:
        """Points with intervals over `more` filter columns in addition to the first."""
        columns = sorted({column for point in points for column, _ in point.base})
        base = {
            column: CodedRanges.of([interval_of(point.base, column) for point in points])
            for column in columns
        }
        first = CodedRanges.of([point.filter for point in points])
        others = (CodedRanges.of([point.more[i] for point in points]) for i in range(more))
        numbers = np.array([point.id for point in points], np.int64).reshape(-1, 3)
        return cls(numbers, base, (first, *others))._sorted()

    def _sorted(self) -> PointArrays:
        order = np.lexsort(self.numbers.T[::-1])
        return self if (order[1:] > order[:-1]).all() else self.take(order)

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def ids(self) -> list[PointId]:
        with without_garbage():
            return [PointId(*number) for number in self.numbers.tolist()]

    @cached_property
    def ids_are_sorted(self) -> bool:
        return all(a < b for a, b in pairwise(self.ids))

    @cached_property
    def base_table(self) -> tuple[CodeArray, CodeArray]:
        """The ranges over all base columns: lows and highs, by column and point."""
        nothing = np.empty((0, len(self)), np.int64)
        ranges = self.base.values()
        return (
            np.vstack([nothing, *(one.low for one in ranges)]),
            np.vstack([nothing, *(one.high for one in ranges)]),
        )

    def base_ranges(self, column: int | None) -> CodedRanges:
        """The intervals over one base column; unbounded for None."""
        if column is None or column not in self.base:
            return CodedRanges.everything(len(self))
        return self.base[column]

    def since(self, subscription: int) -> int:
        """The position of the first point of subscriptions from this one on."""
        return int(np.searchsorted(self.numbers[:, 0], subscription))

    def take(self, which: Mask | CodeArray | slice) -> PointArrays:
        return PointArrays(
            self.numbers[which],
            {column: ranges.take(which) for column, ranges in self.base.items()},
            tuple(ranges.take(which) for ranges in self.filters),
        )

    def concat(self, other: PointArrays) -> PointArrays:
        """These points and others."""
        if not len(self) or not len(other):
            return self if len(self) else other
        both = PointArrays(
            np.concatenate([self.numbers, other.numbers]),
            {
                column: self.base_ranges(column).concat(other.base_ranges(column))
                for column in sorted({*self.base, *other.base})
            },
            tuple(a.concat(b) for a, b in zip(self.filters, other.filters, strict=True)),
        )
        return both._sorted()

    def points(self, space: int) -> Iterator[Point]:
        for i, number in enumerate(self.numbers.tolist()):
            boxes = ((column, ranges.interval(i)) for column, ranges in self.base.items())
            yield Point(
                PointId(*number),
                space,
                tuple((column, interval) for column, interval in boxes if interval != EVERYTHING),
                self.filters[0].interval(i),
                tuple(ranges.interval(i) for ranges in self.filters[1:]),
            )
