"""Whether the boxes of one subscription can contain the same row.

IN lists and negations give disjoint boxes, which need no deduplication. The test is cheap and
conservative: it may answer "may overlap" for disjoint boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

from penstock.predicates.boxes import Box, interval_of, is_empty
from penstock.predicates.boxes import intersect as intersect_boxes

_PAIRWISE_BOXES = 16
"""Up to this many boxes, all pairs are tested: 120 intersections."""


def may_overlap(boxes: Sequence[Box]) -> bool:
    if len(boxes) < 2 or any(_apart_in(boxes, column) for column, _ in boxes[0]):
        return False
    if len(boxes) > _PAIRWISE_BOXES:
        return True
    return any(not is_empty(intersect_boxes(a, b)) for a, b in combinations(boxes, 2))


def _apart_in(boxes: Sequence[Box], column: int) -> bool:
    """Whether the intervals of one column are disjoint."""
    intervals = sorted(interval_of(one, column) for one in boxes)
    return all(a.high <= b.low for a, b in pairwise(intervals))
