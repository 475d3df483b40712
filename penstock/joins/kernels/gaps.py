"""Tree walks for gap shadows: the points inside a gap, and the points that contain a value.

A walk descends only into nodes that are partly inside the query region; for nodes wholly inside it
takes the stored union of base ranges. So it visits nodes along the boundary of the region, not the
points inside. "Inside (x, y)" means `x < low` and `high < y`; "containing c" means
`low <= c <= high`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
from penstock.kernels.unions import Codes64, stabs, union_reference, unite

LEFT, MIDDLE, RIGHT = 0, 1, 2
"""The parts into which a value divides the points inside a gap: below, containing, above it."""

Parted = tuple[Codes64, Codes64, Codes64]
"""Concatenated unions, one per part: part boundaries, and the lows and highs of ranges."""


@njit_when_large
def ensure_room(array: Codes64, need: int) -> Codes64:
    """An array with room for `need` numbers and the same beginning; growth is geometric, so
    appending n numbers copies O(n)."""
    if need <= array.shape[0]:
        return array
    larger = np.empty(2 * need, np.int64)
    larger[: array.shape[0]] = array
    return larger


@njit_when_large
def _union_parts(part: Codes64, low: Codes64, high: Codes64, used: int, parts: int) -> Parted:
    """One union per part, from `used` ranges labelled with parts, in any order.

    A counting sort by part, then the union of each part in place: a union has no more ranges than
    its input, so compacting to the left never overwrites unread ranges.
    """
    begin = np.zeros(parts + 1, np.int64)
    for i in range(used):
        begin[part[i] + 1] += 1
    for p in range(parts):
        begin[p + 1] += begin[p]
    place = begin[:-1].copy()
    sorted_low, sorted_high = np.empty(used, np.int64), np.empty(used, np.int64)
    for i in range(used):
        sorted_low[place[part[i]]], sorted_high[place[part[i]]] = low[i], high[i]
        place[part[i]] += 1
    kept = 0
    for p in range(parts):
        first, last = begin[p], begin[p + 1]
        begin[p] = kept
        count = unite(sorted_low[first:last], sorted_high[first:last])
        for i in range(count):
            sorted_low[kept + i] = sorted_low[first + i]
            sorted_high[kept + i] = sorted_high[first + i]
        kept += count
    begin[parts] = kept
    return begin, sorted_low[:kept], sorted_high[:kept]


@njit_when_large
def split_gap(forest: Forest, unions: Unions, x: int, c: int, y: int) -> Parted:
    """The base ranges of the points inside (x, y): one union per part, LEFT, MIDDLE, RIGHT of c."""
    part, low, high = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
    used = 0
    node, end = 0, forest.skip.shape[0]
    while node < end:
        bounds = forest.bounds[node]
        if bounds[LOW_MAX] <= x or bounds[HIGH_MIN] >= y:
            node = forest.skip[node]
            continue
        label = -1
        if bounds[LOW_MIN] > x and bounds[HIGH_MAX] < y:
            if bounds[HIGH_MAX] < c:
                label = LEFT
            elif bounds[LOW_MIN] > c:
                label = RIGHT
            elif bounds[LOW_MAX] <= c <= bounds[HIGH_MIN]:
                label = MIDDLE
        if label >= 0:
            first, last = unions.start[node], unions.end[node]
            need = used + last - first
            part, low, high = (
                ensure_room(part, need),
                ensure_room(low, need),
                ensure_room(high, need),
            )
            for i in range(first, last):
                part[used], low[used], high[used] = label, unions.low[i], unions.high[i]
                used += 1
            node = forest.skip[node]
        elif forest.skip[node] == node + 1:
            need = used + forest.last[node] - forest.first[node]
            part, low, high = (
                ensure_room(part, need),
                ensure_room(low, need),
                ensure_room(high, need),
            )
            for i in range(forest.first[node], forest.last[node]):
                point = forest.points[i]
                if point[LOW] > x and point[HIGH] < y:
                    label = LEFT if point[HIGH] < c else RIGHT if point[LOW] > c else MIDDLE
                    part[used], low[used], high[used] = label, point[BASE_LOW], point[BASE_HIGH]
                    used += 1
            node += 1
        else:
            node += 1
    return _union_parts(part, low, high, used, 3)


@njit_when_large
def code_of(constants: Codes64, key: int) -> int:
    """The order code of a key among sorted constants (see `penstock.predicates.codes`)."""
    place = int(np.searchsorted(constants, key))
    is_constant = place < constants.shape[0] and constants[place] == key
    return 2 * place + 1 if is_constant else 2 * place


@njit_when_large
def all_gaps(forest: Forest, unions: Unions, values: Codes64) -> Parted:
    """The shadows of all gaps between sorted values.

    Part i holds the points inside (value i-1, value i); part `count` + 1 those that contain some
    value. Parts 0 and `count`, the gaps that are open to one side, are left empty.
    """
    count = values.shape[0]
    part, low, high = np.empty(256, np.int64), np.empty(256, np.int64), np.empty(256, np.int64)
    used = 0
    node, end = 0, forest.skip.shape[0]
    while node < end:
        bounds = forest.bounds[node]
        label = gap_of(values, bounds[LOW_MIN], bounds[HIGH_MAX])
        if label > count:  # not inside one gap
            nearest = np.searchsorted(values, bounds[LOW_MAX])
            is_hit = nearest < count and values[nearest] <= bounds[HIGH_MIN]
            label = count + 1 if is_hit else -1
        if label == 0 or label == count:
            node = forest.skip[node]
        elif label > 0:
            first, last = unions.start[node], unions.end[node]
            need = used + last - first
            part, low, high = (
                ensure_room(part, need),
                ensure_room(low, need),
                ensure_room(high, need),
            )
            for i in range(first, last):
                part[used], low[used], high[used] = label, unions.low[i], unions.high[i]
                used += 1
            node = forest.skip[node]
        elif forest.skip[node] == node + 1:
            need = used + forest.last[node] - forest.first[node]
            part, low, high = (
                ensure_room(part, need),
                ensure_room(low, need),
                ensure_room(high, need),
            )
            for i in range(forest.first[node], forest.last[node]):
                point = forest.points[i]
                label = gap_of(values, point[LOW], point[HIGH])
                if label != 0 and label != count:
                    part[used], low[used], high[used] = label, point[BASE_LOW], point[BASE_HIGH]
                    used += 1
            node += 1
        else:
            node += 1
    return _union_parts(part, low, high, used, count + 2)


@njit_when_large
def gap_of(values: Codes64, low: int, high: int) -> int:
    """The part of `all_gaps` of a range: its gap, or `len(values) + 1` if it contains a value."""
    following = int(np.searchsorted(values, low))
    is_hit = following < values.shape[0] and values[following] <= high
    return len(values) + 1 if is_hit else following


@njit_when_large
def any_point(forest: Forest, unions: Unions, code: int, last: Codes64, first: Codes64) -> bool:
    """Whether some point selects the code and extends, for some i, from last[i] or below to
    first[i] or above. Both are sorted."""
    node, end = 0, forest.skip.shape[0]
    while node < end:
        bounds = forest.bounds[node]
        i = np.searchsorted(last, bounds[LOW_MIN])
        misses = i == last.shape[0] or first[i] > bounds[HIGH_MAX]
        if misses or code < bounds[BASE_MIN] or code > bounds[BASE_MAX]:
            node = forest.skip[node]
            continue
        i = np.searchsorted(last, bounds[LOW_MAX])
        if i < last.shape[0] and first[i] <= bounds[HIGH_MIN]:
            if stabs(unions.low, unions.high, unions.start[node], unions.end[node], code):
                return True
            node = forest.skip[node]
        elif forest.skip[node] == node + 1:
            for p in range(forest.first[node], forest.last[node]):
                point = forest.points[p]
                i = np.searchsorted(last, point[LOW])
                reaches = i < last.shape[0] and first[i] <= point[HIGH]
                if reaches and point[BASE_LOW] <= code <= point[BASE_HIGH]:
                    return True
            node += 1
        else:
            node += 1
    return False


Ranges = list[tuple[int, int]]


def split_gap_reference(points: Points, x: int, c: int, y: int) -> list[Ranges]:
    """`split_gap` by testing every point."""
    parts: list[Ranges] = [[], [], []]
    for low, high, base_low, base_high in points.tolist():
        if x < low and high < y:
            label = LEFT if high < c else RIGHT if low > c else MIDDLE
            parts[label].append((base_low, base_high))
    return [union_reference(part) for part in parts]


def all_gaps_reference(points: Points, values: Sequence[int]) -> list[Ranges]:
    """`all_gaps` by testing every point."""
    parts: list[Ranges] = [[] for _ in range(len(values) + 2)]
    for low, high, base_low, base_high in points.tolist():
        if any(low <= value <= high for value in values):
            parts[-1].append((base_low, base_high))
        else:
            gap = sum(value < low for value in values)
            if 0 < gap < len(values):
                parts[gap].append((base_low, base_high))
    return [union_reference(part) for part in parts]


def any_point_reference(
    points: Points, code: int, last: Sequence[int], first: Sequence[int]
) -> bool:
    """`any_point` by testing every point."""
    return any(
        base_low <= code <= base_high
        and any(low <= x and high >= y for x, y in zip(last, first, strict=True))
        for low, high, base_low, base_high in points.tolist()
    )
