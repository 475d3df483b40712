"""The volume of a union of boxes, by cutting it into slabs dimension by dimension."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

Range: TypeAlias = tuple[float, float]
FlatBox: TypeAlias = tuple[Range, ...]
"""A half-open range per dimension; a box with an empty range is empty."""

MAX_EXACT_BOXES = 24
"""A union of n boxes over d dimensions takes up to (2 n) ** d steps; above, a lower bound does."""


def union_volume(boxes: Sequence[FlatBox]) -> float:
    """The volume of the union of boxes in the unit cube. A lower bound if there are many boxes that
    differ in more than one dimension."""
    distinct = [one for one in dict.fromkeys(boxes) if all(low < high for low, high in one)]
    if not distinct:
        return 0.0
    different = [d for d in range(len(distinct[0])) if len({one[d] for one in distinct}) > 1]
    if not different:
        return _volume(distinct[0])
    shared = 1.0
    for d, (low, high) in enumerate(distinct[0]):
        if d not in different:
            shared *= high - low
    if len(different) == 1:
        return shared * _union_length([one[different[0]] for one in distinct])
    if len(distinct) > MAX_EXACT_BOXES:
        return max(map(_volume, distinct))
    return shared * _slabs([tuple(one[d] for d in different) for one in distinct])


def _volume(box: FlatBox) -> float:
    volume = 1.0
    for low, high in box:
        volume *= high - low
    return volume


def _union_length(ranges: Sequence[Range]) -> float:
    length, reached = 0.0, float("-inf")
    for low, high in sorted(ranges):
        if high > reached:
            length += high - max(low, reached)
            reached = high
    return length


def _slabs(boxes: Sequence[FlatBox]) -> float:
    if len(boxes[0]) == 1:
        return _union_length([one[0] for one in boxes])
    ends = sorted({end for one in boxes for end in one[0]})
    volume = 0.0
    for low, high in pairwise(ends):
        rest = [one[1:] for one in boxes if one[0][0] <= low and high <= one[0][1]]
        if rest:
            volume += (high - low) * _slabs(list(dict.fromkeys(rest)))
    return volume
