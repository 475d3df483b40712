"""Tree walks for a few given base values.

The walks of `penstock.joins.kernels.gaps` collect the base ranges of all points concerned, whatever
base rows there are. Where only a few base values matter, these walks skip every node whose ranges
miss all of them, and stop as soon as nothing can be added.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from penstock.joins.kernels.gaps import all_gaps_reference, gap_of, split_gap_reference
from penstock.kernels.compiled import njit_when_large
from penstock.kernels.trees import (
    BASE_HIGH,
    BASE_LOW,
    BASE_MAX,
    BASE_MIN,
    HIGH,
    HIGH_MAX,
    HIGH_MIN,
    LOW,
    LOW_MAX,
    LOW_MIN,
    Forest,
    Points,
    Unions,
)
from penstock.kernels.unions import Codes64, stabs

Marks = npt.NDArray[np.bool_]


@njit_when_large
def exposed_values(
    forest: Forest, unions: Unions, x: int, c: int, y: int, base: Codes64, marks: Marks
) -> int:
    """Mark the base values (sorted) that are selected by points inside (x, y) containing c.

    Returns how many were marked; `marks`, one flag per base value, must be clear before.
    """
    marked, count = 0, base.shape[0]
    node, end = 0, forest.skip.shape[0]
    while node < end and marked < count:
        bounds = forest.bounds[node]
        if (
            bounds[LOW_MAX] <= x
            or bounds[HIGH_MIN] >= y
            or bounds[HIGH_MAX] < c
            or bounds[LOW_MIN] > c
            or not _any_unmarked(base, marks, bounds[BASE_MIN], bounds[BASE_MAX])
        ):
            node = forest.skip[node]
            continue
        is_inside = bounds[LOW_MIN] > x and bounds[HIGH_MAX] < y
        if is_inside and bounds[LOW_MAX] <= c <= bounds[HIGH_MIN]:
            for i in range(unions.start[node], unions.end[node]):
                marked += _mark(base, marks, unions.low[i], unions.high[i])
            node = forest.skip[node]
            continue
        if forest.skip[node] == node + 1:
            for place in range(forest.first[node], forest.last[node]):
                point = forest.points[place]
                if x < point[LOW] <= c <= point[HIGH] < y:
                    marked += _mark(base, marks, point[BASE_LOW], point[BASE_HIGH])
        node += 1
    return marked


@njit_when_large
def _any_unmarked(base: Codes64, marks: Marks, low: int, high: int) -> bool:
    i = np.searchsorted(base, low)
    while i < base.shape[0] and base[i] <= high:
        if not marks[i]:
            return True
        i += 1
    return False


@njit_when_large
def _mark(base: Codes64, marks: Marks, low: int, high: int) -> int:
    """Mark the values of a range; returns how many are newly marked."""
    fresh = 0
    i = np.searchsorted(base, low)
    while i < base.shape[0] and base[i] <= high:
        if not marks[i]:
            marks[i] = True
            fresh += 1
        i += 1
    return fresh


@njit_when_large
def gaps_holding(forest: Forest, unions: Unions, values: Codes64, code: int) -> Marks:
    """For each part of `all_gaps`: whether its shadow holds a base value.

    `values` are sorted; part i is the gap (value i-1, value i), the last part are the points that
    contain some value. The two gaps that are open to one side are left out.
    """
    count = values.shape[0]
    marks = np.zeros(count + 2, np.bool_)
    marks[0] = marks[count] = True  # open gaps are not wanted: treat them as done
    node, end = 0, forest.skip.shape[0]
    while node < end:
        bounds = forest.bounds[node]
        if code < bounds[BASE_MIN] or code > bounds[BASE_MAX]:
            node = forest.skip[node]
            continue
        part = gap_of(values, bounds[LOW_MIN], bounds[HIGH_MAX])
        if part > count:
            nearest = np.searchsorted(values, bounds[LOW_MAX])
            is_hit = nearest < count and values[nearest] <= bounds[HIGH_MIN]
            part = count + 1 if is_hit else -1
        if part >= 0:
            if not marks[part]:
                start, stop = unions.start[node], unions.end[node]
                marks[part] = stabs(unions.low, unions.high, start, stop, code)
            node = forest.skip[node]
            continue
        if marks[count + 1] and _all_marked(values, marks, bounds[LOW_MIN], bounds[HIGH_MAX]):
            node = forest.skip[node]
            continue
        if forest.skip[node] == node + 1:
            for place in range(forest.first[node], forest.last[node]):
                point = forest.points[place]
                if point[BASE_LOW] <= code <= point[BASE_HIGH]:
                    marks[gap_of(values, point[LOW], point[HIGH])] = True
        node += 1
    marks[0] = marks[count] = False
    return marks


@njit_when_large
def _all_marked(values: Codes64, marks: Marks, low: int, high: int) -> bool:
    """Whether all gaps that a range within these bounds can lie in are marked."""
    for gap in range(np.searchsorted(values, low), np.searchsorted(values, high) + 1):
        if not marks[gap]:
            return False
    return True


def exposed_values_reference(
    points: Points, x: int, c: int, y: int, base: Sequence[int]
) -> list[bool]:
    """`exposed_values` by testing every point."""
    middle = split_gap_reference(points, x, c, y)[1]
    return [any(low <= code <= high for low, high in middle) for code in base]


def gaps_holding_reference(points: Points, values: Sequence[int], code: int) -> list[bool]:
    """`gaps_holding` by testing every point."""
    parts = all_gaps_reference(points, values)
    return [any(low <= code <= high for low, high in part) for part in parts]
