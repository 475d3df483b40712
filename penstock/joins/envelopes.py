"""Semijoins whose filters have several columns (Chandramouli and Yang, 2008, appendix C).

A filter over d columns is a box, a joining row is a vector of d values, and a point is affected by
a base row if its box contains the vector of a joining row. In the space of the 2d ends of boxes,
each joining vector v describes the boxes with `low <= v <= high` in every column. Vectors that
together cover all affected points are chosen greedily, and neighbouring ones are merged into one
description if that includes no unaffected point.

For a row inserted on the filter side, those points are affected whose boxes contain its vector and
none of its mates'. That is no union of few boxes, so the description lists vectors that must not be
contained. The *skyline envelope* suffices: the mates that have no other mate between themselves and
the vector; and of these only as many as needed to exclude all unaffected points.

All points of a space are tested. The cost grows with their number, which is why a single filter
column is chosen unless several save enough (`penstock.joins.decomposition.costs`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.catalog import Row
from penstock.joins.filter_vectors import Codes, FilterVectors, codes_of
from penstock.joins.group import Group, GroupStep
from penstock.joins.point_arrays import CodeArray, Mask
from penstock.joins.points import SpacePoints
from penstock.joins.semijoin import base_row_message, joining_row_message
from penstock.messages import Envelope, Message, Reach, Reaches, Vector
from penstock.predicates.intervals import BOTTOM, TOP, above, below

TRIED_CORNERS = 3
MASKS_AT_ONCE = 256
"""Masks held at a time; a mask takes a byte per point."""


class _Alone(NamedTuple):
    """The points that contain a vector and none of its mates, as a description and as a mask."""

    envelope: Envelope
    mask: Mask


def envelope_messages(
    group: Group, step: GroupStep, points: SpacePoints, vectors: FilterVectors
) -> Iterator[Message]:
    """The messages of one step, for the points of a space with several filter columns. Advances
    `vectors` past the step."""
    if points.space.side == step.side:
        upsert = () if step.new is None else described(points, step.new, vectors)
        remove = () if step.old is None else described(points, step.old, vectors)
        if upsert or remove:
            yield base_row_message(step, points, upsert, remove)
    else:
        yield from _of_joining_rows(group, step, points, vectors)


def touching(points: SpacePoints, rows: Iterable[Row]) -> Mask:
    """The points whose filter contains at least one of the filter rows."""
    mask = np.zeros(len(points), np.bool_)
    for vector in {points.vector(row) for row in rows}:
        mask |= points.admitting(vector)
    return mask


def seen_alone(
    step: GroupStep, points: SpacePoints, vectors: FilterVectors
) -> tuple[_Alone | None, _Alone | None]:
    """The points whose filters contain the step's new (old) vector and no other vector of its side.
    Advances `vectors` past the step."""
    new = None if step.new is None else points.vector(step.new)
    old = None if step.old is None else points.vector(step.old)
    if new == old:
        return None, None
    # Appearances are computed with the old vector present, disappearances with the new one present.
    shown = None if new is None else _alone(points, new, vectors)
    vectors.follow(step)
    hidden = None if old is None else _alone(points, old, vectors)
    return shown, hidden


def _of_joining_rows(
    group: Group, step: GroupStep, points: SpacePoints, vectors: FilterVectors
) -> Iterator[Message]:
    shown, hidden = seen_alone(step, points, vectors)
    if shown is None and hidden is None:
        return
    for key, row in group.sides[1 - step.side].items():
        upsert, remove = (_reached(alone, points, row) for alone in (shown, hidden))
        if upsert or remove:
            yield joining_row_message(step, points, (key, row), upsert, remove)


def _reached(alone: _Alone | None, points: SpacePoints, row: Row) -> Reaches:
    if alone is None or not (alone.mask & points.selecting(row)).any():
        return ()
    return (alone.envelope,)


def _alone(points: SpacePoints, vector: Vector, mates: FilterVectors) -> _Alone | None:
    """The points that contain the vector and no mate; None if there are none."""
    mask = points.admitting(vector)
    if mates.has(codes_of(points, vector)) or not mask.any():
        return None
    nearest = skyline_envelope(list(mates.representatives().values()), vector)
    seeing = [points.admitting(mate)[mask] for mate in nearest]
    kept_out, seen = _cover(seeing, int(mask.sum()))
    mask[mask] = ~seen
    if not mask.any():
        return None
    reaches = tuple(Reach(BOTTOM, below(key), above(key), TOP) for key in vector)
    return _Alone(Envelope(reaches, tuple(nearest[i] for i in kept_out)), mask)


def skyline_envelope(vectors: Sequence[Vector], centre: Vector) -> list[Vector]:
    """The vectors without another vector between themselves and the centre (definition 2 in
    appendix C): in the smallest box that contains both."""
    if not vectors:
        return []
    coded = _ranked([*vectors, centre])
    middle, others = coded[-1], coded[:-1]
    low, high = np.minimum(others, middle), np.maximum(others, middle)
    # A vector between another one and the centre is nearer to the centre. So the nearest remaining
    # vector is in the envelope, and all vectors behind it can be discarded.
    left = np.argsort(np.abs(others - middle).sum(axis=1), kind="stable")
    nearest: list[int] = []
    while len(left):
        first = others[left[0]]
        nearest.append(int(left[0]))
        is_behind = ((low[left] <= first) & (first <= high[left])).all(axis=1)
        left = left[~is_behind]
    return [vectors[i] for i in sorted(nearest)]


def described(points: SpacePoints, row: Row, partners: FilterVectors) -> Reaches:
    """A description of the points that select a base row and contain one of the partners."""
    selected = points.selecting(row)
    if not selected.any():
        return ()
    boxes = _Boxes(
        [ranges.low[selected] for ranges in points.all_filters],
        [ranges.high[selected] for ranges in points.all_filters],
    )
    vectors = partners.codes()
    chosen, hit = _cover((boxes.around(v, v) for v in vectors), int(selected.sum()))
    coders = [ranges.codes for ranges in points.all_filters]
    return tuple(
        Envelope(
            tuple(
                Reach(BOTTOM, codes.low_cut(x), codes.high_cut(y), TOP)
                for codes, x, y in zip(coders, first, last, strict=True)
            )
        )
        for first, last in _merged([vectors[i] for i in chosen], boxes.only(~hit))
    )


class _Boxes(NamedTuple):
    """Filters in codes: for each column, the low and the high ends."""

    low: list[CodeArray]
    high: list[CodeArray]

    def around(self, first: Codes, last: Codes) -> Mask:
        """The boxes with `low <= first` and `high >= last` in every column."""
        mask = (self.low[0] <= first[0]) & (self.high[0] >= last[0])
        for column in range(1, len(first)):
            mask &= self.low[column] <= first[column]
            mask &= self.high[column] >= last[column]
        return mask

    def only(self, mask: Mask) -> _Boxes:
        return _Boxes([low[mask] for low in self.low], [high[mask] for high in self.high])


def _merged(vectors: Iterable[Codes], missed: _Boxes) -> list[tuple[Codes, Codes]]:
    """Corners (first, last) that cover the boxes around the vectors and no box in `missed`, merged.

    A vector is tried with a few preceding corners only: each trial tests all boxes in `missed`.
    """
    merged: list[tuple[Codes, Codes]] = []
    for vector in vectors:
        for i in range(len(merged) - 1, max(-1, len(merged) - 1 - TRIED_CORNERS), -1):
            first = tuple(map(max, merged[i][0], vector))
            last = tuple(map(min, merged[i][1], vector))
            if not missed.around(first, last).any():
                merged[i] = first, last
                break
        else:
            merged.append((vector, vector))
    return merged


def _cover(marks: Iterable[Mask], size: int) -> tuple[list[int], Mask]:
    """A greedy set cover: numbers of masks that together cover the union of all, and the union.

    Each pick is the mask that covers most of the rest, within portions that fit in memory.
    """
    chosen: list[int] = []
    covered = np.zeros(size, np.bool_)
    waiting = iter(marks)
    number = 0
    while portion := list(islice(waiting, MASKS_AT_ONCE)):
        # A mask never covers more of the rest than before, so old counts are upper bounds.
        heap = [(-int((mask & ~covered).sum()), i) for i, mask in enumerate(portion)]
        heapify(heap)
        while heap and heap[0][0]:
            _, i = heappop(heap)
            left = int((portion[i] & ~covered).sum())
            if heap and left < -heap[0][0]:
                heappush(heap, (-left, i))
            elif left:
                chosen.append(number + i)
                covered |= portion[i]
        number += len(portion)
    return sorted(chosen), covered


def _ranked(vectors: Sequence[Vector]) -> npt.NDArray[np.int64]:
    """Vectors with each value replaced by its rank in its column."""
    columns = []
    for values in zip(*vectors, strict=True):
        ranks = {cut: rank for rank, cut in enumerate(sorted({below(value) for value in values}))}
        columns.append([ranks[below(value)] for value in values])
    return np.array(columns, np.int64).T
