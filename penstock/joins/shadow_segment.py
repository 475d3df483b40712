"""A segment: some points of a space, with their own codes, in one tree; and its queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from penstock.catalog import Key
from penstock.joins.array_codes import ArrayCodes, Values
from penstock.joins.column_values import places
from penstock.joins.cut_ranges import NO_RANGES, Flat, bridge_ranges
from penstock.joins.kernels.gap_prepare import (
    CodedNumbers,
    GroupEffects,
    GroupRows,
    run_group,
    run_group_numbers,
)
from penstock.joins.kernels.gap_steps import PointTree, StepOps
from penstock.joins.kernels.gaps import Parted, all_gaps, any_point, split_gap
from penstock.joins.kernels.probes import exposed_values, gaps_holding
from penstock.joins.point_arrays import CodeArray, CodedRanges
from penstock.kernels.trees import Forest, Unions, plant, unions_of
from penstock.predicates.codes import NULL_CODE
from penstock.predicates.intervals import Cut, Interval

FilterAndBase = tuple[Interval, Interval]
"""A filter interval and an interval over the index's base column."""


def key_of(cut: Cut) -> Key | None:
    """The key of a cut `below(key)`."""
    return cut[1] if len(cut) == 3 else None


class BaseValues:
    """The values of some base rows in the index's base column, and their codes in segments.

    It is maintained incrementally: a join value may have many rows, and most steps change one.
    """

    def __init__(self, values: Iterable[Key | None]) -> None:
        self._rows = Counter(values)
        self._codes: dict[ShadowSegment, CodeCounts] = {}

    def add(self, value: Key | None) -> None:
        self._rows[value] += 1
        if self._rows[value] == 1:
            for segment, codes in self._codes.items():
                codes.add(segment.base_value_codes.value(value))

    def remove(self, value: Key | None) -> None:
        self._rows[value] -= 1
        if not self._rows[value]:
            del self._rows[value]
            for segment, codes in self._codes.items():
                codes.remove(segment.base_value_codes.value(value))

    def codes_in(self, segment: ShadowSegment) -> CodeArray:
        """The distinct codes of the values in a segment, sorted."""
        known = self._codes.get(segment)
        if known is None:
            keys: list[Key | None] = [key for key in self._rows if key is not None]
            coded = segment.base_value_codes.all_values(keys)
            null = [NULL_CODE] if None in self._rows else []
            known = self._codes[segment] = CodeCounts(np.append(coded, null).astype(np.int64))
        return known.distinct

    def keep(self, segments: Collection[ShadowSegment]) -> None:
        """Drop the codes in segments that no longer exist."""
        for gone in self._codes.keys() - set(segments):
            del self._codes[gone]


class CodeCounts:
    """The number of distinct values by code."""

    def __init__(self, codes: CodeArray) -> None:
        self.distinct, counts = np.unique(codes, return_counts=True)
        self._counts = Counter(dict(zip(self.distinct.tolist(), counts.tolist(), strict=True)))

    def add(self, code: int) -> None:
        self._counts[code] += 1
        if self._counts[code] == 1:
            self.distinct = np.insert(self.distinct, np.searchsorted(self.distinct, code), code)

    def remove(self, code: int) -> None:
        self._counts[code] -= 1
        if not self._counts[code]:
            del self._counts[code]
            self.distinct = np.delete(self.distinct, np.searchsorted(self.distinct, code))


class Plan(NamedTuple):
    """Precomputed data for the points of a segment."""

    forest: Forest
    unions: Unions
    next_high: CodeArray


class ShadowSegment:
    """Some points, with their own codes, in one tree."""

    def __init__(self, filters: CodedRanges, base: CodedRanges, plan: Plan | None = None) -> None:
        """`plan` is the data that another process has precomputed for the same points."""
        self._filters, self._base = filters, base
        self._codes, self._base_codes = filters.codes, base.codes
        self._plan = _planned(filters, base) if plan is None else plan
        self._forest, self._unions, self._next_high = self._plan

    @classmethod
    def of(cls, points: Sequence[FilterAndBase]) -> ShadowSegment:
        filters, base = [one for one, _ in points], [one for _, one in points]
        return cls(CodedRanges.of(filters), CodedRanges.of(base))

    def __len__(self) -> int:
        return len(self._filters)

    @property
    def dead_count(self) -> int:
        """Always 0: segments do not know point ids; the index counts removed points."""
        return 0

    @property
    def plan(self) -> Plan:
        return self._plan

    @property
    def filter_codes(self) -> ArrayCodes:
        return self._codes

    @property
    def base_value_codes(self) -> ArrayCodes:
        return self._base_codes

    def intervals(self) -> Iterator[FilterAndBase]:
        return ((self._filters.interval(i), self._base.interval(i)) for i in range(len(self)))

    def next_end(self, after: Cut | None) -> Cut | None:
        """The least high end of all filter intervals wholly above a value; None without any."""
        codes = self._filters.codes
        code = NULL_CODE if after is None else self._code(after) + 1
        high = int(self._next_high[code - NULL_CODE])
        return None if high > codes.top else codes.high_cut(high)

    def split(self, x: Cut | None, cut: Cut, y: Cut | None) -> tuple[Flat, Flat, Flat]:
        low = NULL_CODE - 1 if x is None else self._code(x)
        high = self._filters.codes.top + 1 if y is None else self._code(y)
        code = self._code(cut)
        parted = split_gap(self._forest, self._unions, low, code, high)
        left, middle, right = (self._flat(parted, part) for part in range(3))
        return left, middle, right

    def gaps(self, cuts: list[Cut]) -> tuple[dict[Cut, Flat], Flat]:
        """The non-empty shadows of the gaps between values, by the value on their left, and the
        shadow of the points that contain a value."""
        coded = np.array([self._code(cut) for cut in cuts], np.int64)
        last_of = np.flatnonzero(np.append(np.diff(coded) > 0, True))
        parted = all_gaps(self._forest, self._unions, coded[last_of])
        begin, count = parted[0], len(last_of)
        inner = np.flatnonzero(np.diff(begin[: count + 1]))
        shadows = {cuts[last_of[gap - 1]]: self._flat(parted, int(gap)) for gap in inner}
        return shadows, self._flat(parted, count + 1)

    def exposed(self, x: Cut | None, cut: Cut, y: Cut | None, base: BaseValues) -> Flat:
        """The base values that are selected by points that lie inside the gap (x, y) and contain a
        value of it."""
        codes = base.codes_in(self)
        marks = np.zeros(len(codes), np.bool_)
        low = NULL_CODE - 1 if x is None else self._code(x)
        high = self._filters.codes.top + 1 if y is None else self._code(y)
        exposed_values(self._forest, self._unions, low, self._code(cut), high, codes, marks)
        return self.flat(codes[marks], codes[marks])

    def holding(self, cuts: list[Cut], value: Key | None) -> tuple[list[Cut], bool]:
        """The gaps between values, by the value on their left, whose shadows hold a base value; and
        whether that of the points that contain a value does."""
        coded = np.array([self._code(cut) for cut in cuts], np.int64)
        last_of = np.flatnonzero(np.append(np.diff(coded) > 0, True))
        code = self._base_codes.value(value)
        marks = gaps_holding(self._forest, self._unions, coded[last_of], code)
        inner = np.flatnonzero(marks[: len(last_of)])
        return [cuts[last_of[gap - 1]] for gap in inner], bool(marks[-1])

    @cached_property
    def point_tree(self) -> PointTree:
        """The points, for kernels."""
        return PointTree(self._forest, self._unions, self._next_high, self._filters.codes.top)

    def run_group(
        self, base: Values, filters: Values, there: tuple[int, int], steps: StepOps
    ) -> tuple[list[Key | None], GroupEffects]:
        """The distinct filter values, sorted, and the effects of steps, which refer to them by
        position. `base` and `filters` are the values of all rows of both sides, by number; `there`
        is how many of each are present before the first step."""
        assert there[0] <= len(base)
        assert there[1] <= len(filters)
        base_constants, constants = self._base_codes.numbers, self._codes.numbers
        if (
            isinstance(base, np.ndarray)
            and isinstance(filters, np.ndarray)
            and base_constants is not None
            and constants is not None
        ):
            numbers = CodedNumbers(base_constants, base), CodedNumbers(constants, filters)
            found, effects = run_group_numbers(self.point_tree, *numbers, *there, steps)
            return found.tolist(), effects
        distinct, place = places(filters)
        values = self._codes.all_values(distinct)
        group_rows = GroupRows(self._base_codes.all_values(base), place, values, *there)
        return distinct, run_group(self.point_tree, group_rows, steps)

    def flat(self, low: CodeArray, high: CodeArray) -> Flat:
        """Ranges of base codes as cuts."""
        codes = self._base.codes
        flat: Flat = []
        for first, last in zip(low.tolist(), high.tolist(), strict=True):
            flat += (codes.low_cut(first), codes.high_cut(last))
        return bridge_ranges(flat) if flat else NO_RANGES

    def any_point(self, value: Key | None, runs: Sequence[tuple[Cut, Cut]]) -> bool:
        """Whether a point selects the base value and, for some run (last and first partner value),
        begins at or below the last and ends at or above the first."""
        last, first = (np.array([self._code(run[end]) for run in runs], np.int64) for end in (0, 1))
        return any_point(self._forest, self._unions, self._base_codes.value(value), last, first)

    def _code(self, cut: Cut) -> int:
        """The code of the filter value of a cut."""
        return self._codes.value(key_of(cut))

    def _flat(self, parted: Parted, part: int) -> Flat:
        begin, low, high = parted
        return self.flat(low[begin[part] : begin[part + 1]], high[begin[part] : begin[part + 1]])


def _planned(filters: CodedRanges, base: CodedRanges) -> Plan:
    some = (filters.low <= filters.high) & (base.low <= base.high)
    columns = (filters.low, filters.high, base.low, base.high)
    forest = plant(np.stack([column[some] for column in columns], axis=1))
    next_high = next_highs(filters.low[some], filters.high[some], filters.codes.top)
    return Plan(forest, unions_of(forest), next_high)


def next_highs(low: CodeArray, high: CodeArray, top: int) -> CodeArray:
    """By code, from NULL's on: the least high end of the ranges that start there or later."""
    lowest = np.full(top - NULL_CODE + 2, top + 1, np.int64)
    np.minimum.at(lowest, low - NULL_CODE, high)
    return np.minimum.accumulate(lowest[::-1])[::-1]
