"""Walks over the trees of stabbing clusters (Chandramouli and Yang, 2008, 3.1.1, 3.2, appendix B).

Cluster t has one tree and an anchor that all its filter intervals contain. For a base value `a`,
"selected" means `base low <= a <= base high`.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from penstock.kernels.compiled import njit
from penstock.kernels.trees import (
    BASE_HIGH,
    BASE_HIGH_MIN,
    BASE_LOW,
    BASE_LOW_MAX,
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
)
from penstock.kernels.unions import Codes64, union_reference, unite

NOWHERE_BELOW = -(1 << 62)
NOWHERE_ABOVE = 1 << 62
"""Sentinels for anchors without a partner value below, or above."""


@njit
def nearest_partners(anchors: Codes64, partners: Codes64) -> tuple[Codes64, Codes64]:
    """For each anchor the nearest partner values: at or below it, at or above it."""
    before = np.empty(anchors.shape[0], np.int64)
    after = np.empty(anchors.shape[0], np.int64)
    for t in range(anchors.shape[0]):
        following = np.searchsorted(partners, anchors[t])
        after[t] = partners[following] if following < partners.shape[0] else NOWHERE_ABOVE
        if following < partners.shape[0] and partners[following] == anchors[t]:
            before[t] = anchors[t]
        else:
            before[t] = partners[following - 1] if following > 0 else NOWHERE_BELOW
    return before, after


@njit
def affected_places(
    forest: Forest, anchors: Codes64, partners: Codes64, a: int, out: Codes64
) -> int:
    """Write the positions of all selected points that contain a partner value; returns how many.

    All members of a cluster contain its anchor, so a member contains a partner value if it contains
    the nearest one on either side of the anchor. A position occurs once: `out` needs one entry per
    point.
    """
    before, after = nearest_partners(anchors, partners)
    count = 0
    for t in range(anchors.shape[0]):
        x, y = before[t], after[t]
        node, end = forest.roots[t], forest.roots[t + 1]
        while node < end:
            bounds = forest.bounds[node]
            hit = bounds[LOW_MIN] <= x or bounds[HIGH_MAX] >= y
            if not hit or a < bounds[BASE_MIN] or a > bounds[BASE_MAX]:
                node = forest.skip[node]
            elif forest.skip[node] == node + 1:
                for i in range(forest.first[node], forest.last[node]):
                    point = forest.points[i]
                    hit = point[LOW] <= x or point[HIGH] >= y
                    if hit and point[BASE_LOW] <= a <= point[BASE_HIGH]:
                        out[count] = i
                        count += 1
                node += 1
            else:
                node += 1
    return count


@njit
def any_affected(forest: Forest, anchors: Codes64, partners: Codes64, a: int) -> bool:
    """Whether `affected_places` would find a point."""
    before, after = nearest_partners(anchors, partners)
    for t in range(anchors.shape[0]):
        x, y = before[t], after[t]
        node, end = forest.roots[t], forest.roots[t + 1]
        while node < end:
            bounds = forest.bounds[node]
            hit = bounds[LOW_MIN] <= x or bounds[HIGH_MAX] >= y
            if not hit or a < bounds[BASE_MIN] or a > bounds[BASE_MAX]:
                node = forest.skip[node]
                continue
            hit = bounds[LOW_MAX] <= x or bounds[HIGH_MIN] >= y
            if hit and bounds[BASE_LOW_MAX] <= a <= bounds[BASE_HIGH_MIN]:
                return True
            if forest.skip[node] == node + 1:
                for i in range(forest.first[node], forest.last[node]):
                    point = forest.points[i]
                    hit = point[LOW] <= x or point[HIGH] >= y
                    if hit and point[BASE_LOW] <= a <= point[BASE_HIGH]:
                        return True
            node += 1
    return False


@njit
def disposable(forest: Forest, anchors: Codes64, a: int, q: Codes64, out: Codes64) -> None:
    """out[j] = 1 if no selected point lies inside (q[j], q[j + 1]): then the triangle between those
    two skyline points is disposable, and they can be merged.

    A point inside contains its anchor, so only clusters with anchors inside are searched.
    """
    for j in range(q.shape[0] - 1):
        x, y = q[j], q[j + 1]
        out[j] = 1
        t = np.searchsorted(anchors, x, side="right")
        while t < anchors.shape[0] and anchors[t] < y and out[j] == 1:
            if _someone_inside(forest, t, a, x, y):
                out[j] = 0
            t += 1


@njit
def _someone_inside(forest: Forest, t: int, a: int, x: int, y: int) -> bool:
    node, end = forest.roots[t], forest.roots[t + 1]
    while node < end:
        bounds = forest.bounds[node]
        outside = bounds[LOW_MAX] <= x or bounds[HIGH_MIN] >= y
        if outside or a < bounds[BASE_MIN] or a > bounds[BASE_MAX]:
            node = forest.skip[node]
            continue
        inside = bounds[LOW_MIN] > x and bounds[HIGH_MAX] < y
        if inside and bounds[BASE_LOW_MAX] <= a <= bounds[BASE_HIGH_MIN]:
            return True
        if forest.skip[node] == node + 1:
            for i in range(forest.first[node], forest.last[node]):
                point = forest.points[i]
                is_inside = x < point[LOW] and point[HIGH] < y
                if is_inside and point[BASE_LOW] <= a <= point[BASE_HIGH]:
                    return True
        node += 1
    return False


@njit
def exposed_ranges(
    forest: Forest, anchors: Codes64, x: int, c: int, y: int
) -> tuple[Codes64, Codes64]:
    """The union of the base ranges of the points inside (x, y) that contain c: the base rows in it
    become visible to some point when c is added, and invisible when c is removed.

    A leaf has at most LEAF_POINTS = 16 points; before one is read, 64 entries are free.
    """
    low, high = np.empty(64, np.int64), np.empty(64, np.int64)
    count = 0
    t = np.searchsorted(anchors, x, side="right")
    while t < anchors.shape[0] and anchors[t] < y:
        node, end = forest.roots[t], forest.roots[t + 1]
        while node < end:
            bounds = forest.bounds[node]
            out_of_gap = bounds[LOW_MAX] <= x or bounds[HIGH_MIN] >= y
            if out_of_gap or bounds[LOW_MIN] > c or bounds[HIGH_MAX] < c:
                node = forest.skip[node]
                continue
            if forest.skip[node] == node + 1:
                if count + 64 > low.shape[0]:
                    count = unite(low[:count], high[:count])
                    grown_low = np.empty(2 * count + 128, np.int64)
                    grown_high = np.empty(2 * count + 128, np.int64)
                    grown_low[:count], grown_high[:count] = low[:count], high[:count]
                    low, high = grown_low, grown_high
                for i in range(forest.first[node], forest.last[node]):
                    point = forest.points[i]
                    if x < point[LOW] <= c <= point[HIGH] < y:
                        low[count], high[count] = point[BASE_LOW], point[BASE_HIGH]
                        count += 1
            node += 1
        t += 1
    count = unite(low[:count], high[:count])
    return low[:count], high[:count]


@njit
def skylines(
    forest: Forest, anchors: Codes64, partners: Codes64, values: Codes64, is_merged: bool
) -> tuple[Codes64, Codes64, Codes64]:
    """The concatenated cluster-based skylines of many base values of one join value: where each
    begins, and the x and y of its points; with `is_merged`, merged over disposable triangles.

    A skyline has at most one point per value of `q`; that much room is made before it is written.
    """
    q = neighbours_of_anchors(anchors, partners)
    begin = np.zeros(values.shape[0] + 1, np.int64)
    xs, ys = np.empty(64, np.int64), np.empty(64, np.int64)
    triangles = np.zeros(max(q.shape[0], 1), np.int64)
    used = 0
    for e in range(values.shape[0]):
        begin[e] = used
        if q.shape[0] == 0 or not any_affected(forest, anchors, partners, values[e]):
            continue
        if is_merged:
            disposable(forest, anchors, values[e], q, triangles)
        if used + q.shape[0] > xs.shape[0]:
            grown_xs = np.empty(2 * (used + q.shape[0]), np.int64)
            grown_ys = np.empty(2 * (used + q.shape[0]), np.int64)
            grown_xs[:used], grown_ys[:used] = xs[:used], ys[:used]
            xs, ys = grown_xs, grown_ys
        first = 0
        for j in range(q.shape[0]):
            if j + 1 == q.shape[0] or not (is_merged and triangles[j] == 1):
                xs[used], ys[used] = q[j], q[first]
                used += 1
                first = j + 1
    begin[values.shape[0]] = used
    return begin, xs[:used], ys[:used]


@njit
def neighbours_of_anchors(anchors: Codes64, partners: Codes64) -> Codes64:
    """The partner values next to some anchor, sorted: the points of the cluster-based skyline.

    An anchor has at most two neighbours, which bounds `q`. Anchors ascend, so duplicates are
    adjacent.
    """
    before, after = nearest_partners(anchors, partners)
    q = np.empty(2 * anchors.shape[0], np.int64)
    count = 0
    for t in range(anchors.shape[0]):
        for value in (before[t], after[t]):
            is_new = count == 0 or value > q[count - 1]
            if is_new and value != NOWHERE_BELOW and value != NOWHERE_ABOVE:
                q[count] = value
                count += 1
    return q[:count]


def affected_reference(points: Points, partners: list[int], a: int) -> list[int]:
    """The positions of `affected_places`, sorted, by testing every point."""
    return [
        i
        for i, (low, high, base_low, base_high) in enumerate(points.tolist())
        if base_low <= a <= base_high and any(low <= p <= high for p in partners)
    ]


def disposable_reference(points: Points, a: int, q: list[int]) -> list[bool]:
    """`disposable` by testing every point."""
    selected = [(p[LOW], p[HIGH]) for p in points.tolist() if p[BASE_LOW] <= a <= p[BASE_HIGH]]
    return [not any(x < low and high < y for low, high in selected) for x, y in pairwise(q)]


def exposed_reference(points: Points, x: int, c: int, y: int) -> list[tuple[int, int]]:
    """`exposed_ranges` by testing every point."""
    return union_reference(
        (base_low, base_high)
        for low, high, base_low, base_high in points.tolist()
        if x < low <= c <= high < y
    )
