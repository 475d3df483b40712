"""Forests of static k-d trees over filter intervals, in flat arrays.

A point of a space is four codes: its filter interval (low, high) and its range over one base
column. A tree splits its points at the median of the code with the widest spread: of filter low and
filter high, or of all four. Nodes are in preorder; `skip[i]` is the node after the subtree of i, so
a walk needs no stack: it enters node i by going to i + 1 and skips it by going to `skip[i]`. Each
node stores the bounds of its points in all four codes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.kernels.compiled import njit_when_large
from penstock.kernels.unions import Codes64, coarsen, merge, unite

LEAF_POINTS = 16
"""Maximum points of a leaf, which is scanned: 16 points of 32 bytes are eight cache lines."""
MAX_NODE_RANGES = 1024
"""A node's union is coarsened to at most this many ranges, so that unions of a tree over n points
take at most n / 16 * 1024 / 512 * log n ranges, and in practice a few per node."""

LOW, HIGH, BASE_LOW, BASE_HIGH = 0, 1, 2, 3
"""Columns of a point."""
LOW_MIN, LOW_MAX, HIGH_MIN, HIGH_MAX, BASE_MIN, BASE_MAX, BASE_LOW_MAX, BASE_HIGH_MIN = range(8)
"""Columns of a node's bounds."""
SMALLEST = (LOW_MIN, HIGH_MIN, BASE_MIN, BASE_HIGH_MIN)
LARGEST = (LOW_MAX, HIGH_MAX, BASE_LOW_MAX, BASE_MAX)
"""By column of a point: where a node's bounds have its smallest and its largest code."""
BY_FILTER, BY_ALL = 2, 4
"""The number of leading columns of a point by which a tree may be split."""

Points = npt.NDArray[np.int64]


class Forest(NamedTuple):
    """Concatenated trees; tree t has the nodes `roots[t] : roots[t + 1]`."""

    points: Points
    """One row of four codes per point, in the order of the trees."""
    order: Codes64
    """By row of `points`: the number of the point in the input."""
    roots: Codes64
    skip: Codes64
    first: Codes64
    last: Codes64
    """A node's points are points[first:last]."""
    bounds: Points


class Unions(NamedTuple):
    """The union of the base ranges of each node: ranges `start[node] : end[node]`."""

    start: Codes64
    end: Codes64
    low: Codes64
    high: Codes64


@njit_when_large
def select_place(
    points: npt.NDArray[Any], order: Codes64, column: int, left: int, right: int, k: int
) -> None:
    """Quickselect: order[left:right+1] is partitioned around the entry that belongs at k."""
    while left < right:
        pivot = points[order[(left + right) >> 1], column]
        i, j = left, right
        while i <= j:
            while points[order[i], column] < pivot:
                i += 1
            while points[order[j], column] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if k <= j:
            right = j
        elif k >= i:
            left = i
        else:
            return


@njit_when_large
def _bounds_of(points: Points, order: Codes64, first: int, last: int, out: Codes64) -> None:
    for column in range(4):
        smallest = largest = points[order[first], column]
        for i in range(first + 1, last):
            value = points[order[i], column]
            smallest, largest = min(smallest, value), max(largest, value)
        if column == LOW:
            out[LOW_MIN], out[LOW_MAX] = smallest, largest
        elif column == HIGH:
            out[HIGH_MIN], out[HIGH_MAX] = smallest, largest
        elif column == BASE_LOW:
            out[BASE_MIN], out[BASE_LOW_MAX] = smallest, largest
        else:
            out[BASE_HIGH_MIN], out[BASE_MAX] = smallest, largest


@njit_when_large
def _widest(bounds: Codes64, columns: int) -> int:
    """Of the first `columns` columns, the one with the widest spread of codes."""
    widest, spread = LOW, -1
    for column in range(columns):
        candidate = bounds[LARGEST[column]] - bounds[SMALLEST[column]]
        if candidate > spread:
            widest, spread = column, candidate
    return widest


@njit_when_large
def _plant(
    points: Points,
    order: Codes64,
    span: tuple[int, int],
    node: int,
    skip: Codes64,
    first: Codes64,
    last: Codes64,
    bounds: Points,
    columns: int,
) -> int:
    """Build one tree over order[span]; returns the node after it."""
    # Halving leaves at most one waiting sibling per level, and there are fewer than 60 levels.
    stack_first = np.empty(64, np.int64)
    stack_last = np.empty(64, np.int64)
    stack_first[0], stack_last[0] = span
    depth = 1
    root = node
    while depth > 0:
        depth -= 1
        first[node], last[node] = stack_first[depth], stack_last[depth]
        _bounds_of(points, order, first[node], last[node], bounds[node])
        if last[node] - first[node] > LEAF_POINTS:
            column = _widest(bounds[node], columns)
            middle = (first[node] + last[node]) >> 1
            select_place(points, order, column, first[node], last[node] - 1, middle)
            stack_first[depth], stack_last[depth] = middle, last[node]
            stack_first[depth + 1], stack_last[depth + 1] = first[node], middle
            depth += 2
        node += 1
    for i in range(node - 1, root - 1, -1):
        is_leaf = last[i] - first[i] <= LEAF_POINTS
        skip[i] = i + 1 if is_leaf else skip[skip[i + 1]]
    return node


@njit_when_large
def _plant_all(points: Points, order: Codes64, starts: Codes64, columns: int) -> Forest:
    trees = starts.shape[0] - 1
    # A node of more than LEAF_POINTS points is split in half, so a leaf that is not a root has at
    # least LEAF_POINTS / 2; a tree of k leaves has 2 k - 1 nodes.
    most = 2 * (points.shape[0] // (LEAF_POINTS // 2) + trees) + 2
    roots = np.zeros(trees + 1, np.int64)
    skip, first, last = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    bounds = np.empty((most, 8), np.int64)
    node = 0
    for tree in range(trees):
        roots[tree] = node
        span = (starts[tree], starts[tree + 1])
        if span[0] < span[1]:
            node = _plant(points, order, span, node, skip, first, last, bounds, columns)
    roots[trees] = node
    return Forest(
        points[order],
        order,
        roots,
        skip[:node].copy(),
        first[:node].copy(),
        last[:node].copy(),
        bounds[:node].copy(),
    )


def plant(points: Points, starts: Codes64 | None = None, columns: int = BY_FILTER) -> Forest:
    """One tree over all points, or one over each points[starts[t]:starts[t + 1]]."""
    if starts is None:
        starts = np.array([0, len(points)], np.int64)
    assert points.ndim == 2
    assert points.shape[1] == 4
    assert starts[0] == 0
    assert starts[-1] == len(points)
    assert (np.diff(starts) >= 0).all()
    order = np.arange(len(points), dtype=np.int64)
    return _plant_all(np.ascontiguousarray(points, np.int64), order, starts, columns)


@njit_when_large
def unions_of(forest: Forest) -> Unions:
    """The unions of all nodes, computed in reverse preorder: children before parents."""
    nodes = forest.skip.shape[0]
    start, end = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    low, high = np.empty(1024, np.int64), np.empty(1024, np.int64)
    used = 0
    for node in range(nodes - 1, -1, -1):
        size = forest.last[node] - forest.first[node]
        children = 0
        if forest.skip[node] > node + 1:
            left, right = node + 1, forest.skip[node + 1]
            children = end[left] - start[left] + end[right] - start[right]
        need = used + max(size if size <= LEAF_POINTS else 0, children)
        if need > low.shape[0]:
            grown_low, grown_high = np.empty(2 * need, np.int64), np.empty(2 * need, np.int64)
            grown_low[:used], grown_high[:used] = low[:used], high[:used]
            low, high = grown_low, grown_high
        if children == 0:
            for i in range(size):
                low[used + i] = forest.points[forest.first[node] + i, BASE_LOW]
                high[used + i] = forest.points[forest.first[node] + i, BASE_HIGH]
            kept = unite(low[used : used + size], high[used : used + size])
        else:
            first, second = (start[left], end[left]), (start[right], end[right])
            kept = merge(low, high, first, second, low[used:], high[used:])
            kept = coarsen(low[used:], high[used:], kept, MAX_NODE_RANGES)
        start[node], end[node] = used, used + kept
        used += kept
    return Unions(start, end, low[:used].copy(), high[:used].copy())
