"""A walk over a tree of points that finds those in a region.

A region is a union of boxes over the two ends of the filter interval. In addition, the range over
one base column must contain the code of the message's row. A node that no box intersects, or whose
base ranges all miss the code, is skipped; one that lies entirely in a box, and whose base ranges
all contain the code, is taken without tests; the others are entered.
"""

from __future__ import annotations

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
from penstock.kernels.unions import Codes64

LOW_FROM, LOW_TO, HIGH_FROM, HIGH_TO = 0, 1, 2, 3
"""Columns of a box: inclusive bounds of the low and the high end of a filter interval."""


@njit
def points_in_region(forest: Forest, boxes: Points, code: int) -> Codes64:
    """The numbers of the points in one of the boxes whose base range contains the code.

    A node adds at most its own points; that much room is made before it is read. Nodes that are
    read are disjoint, so each point is found once.
    """
    found = np.empty(256, np.int64)
    used = 0
    node, end = 0, forest.skip.shape[0]
    while node < end:
        bounds = forest.bounds[node]
        if code < bounds[BASE_MIN] or code > bounds[BASE_MAX]:
            node = forest.skip[node]
            continue
        is_touched, is_inside = _compared(boxes, bounds)
        if not is_touched:
            node = forest.skip[node]
            continue
        is_leaf = forest.skip[node] == node + 1
        is_selected = bounds[BASE_LOW_MAX] <= code <= bounds[BASE_HIGH_MIN]
        if not is_leaf and not (is_inside and is_selected):
            node += 1
            continue
        first, last = forest.first[node], forest.last[node]
        if used + last - first > found.shape[0]:
            grown = np.empty(2 * (used + last - first), np.int64)
            grown[:used] = found[:used]
            found = grown
        for place in range(first, last):
            point = forest.points[place]
            is_wanted = is_selected or point[BASE_LOW] <= code <= point[BASE_HIGH]
            if is_wanted and (is_inside or _is_in(boxes, point[LOW], point[HIGH])):
                found[used] = forest.order[place]
                used += 1
        node = forest.skip[node]
    return found[:used]


@njit
def _compared(boxes: Points, bounds: Codes64) -> tuple[bool, bool]:
    """Whether some box intersects the bounds, and whether one contains them entirely."""
    is_touched = False
    for i in range(boxes.shape[0]):
        box = boxes[i]
        if (
            bounds[LOW_MIN] <= box[LOW_TO]
            and bounds[LOW_MAX] >= box[LOW_FROM]
            and bounds[HIGH_MIN] <= box[HIGH_TO]
            and bounds[HIGH_MAX] >= box[HIGH_FROM]
        ):
            is_touched = True
            if (
                bounds[LOW_MIN] >= box[LOW_FROM]
                and bounds[LOW_MAX] <= box[LOW_TO]
                and bounds[HIGH_MIN] >= box[HIGH_FROM]
                and bounds[HIGH_MAX] <= box[HIGH_TO]
            ):
                return True, True
    return is_touched, False


@njit
def _is_in(boxes: Points, low: int, high: int) -> bool:
    for i in range(boxes.shape[0]):
        box = boxes[i]
        if box[LOW_FROM] <= low <= box[LOW_TO] and box[HIGH_FROM] <= high <= box[HIGH_TO]:
            return True
    return False


def points_in_region_reference(points: Points, boxes: Points, code: int) -> list[int]:
    """`points_in_region` by testing every point."""
    return [
        number
        for number, (low, high, base_low, base_high) in enumerate(points.tolist())
        if base_low <= code <= base_high
        and any(a <= low <= b and c <= high <= d for a, b, c, d in boxes.tolist())
    ]
