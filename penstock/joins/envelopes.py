"""Semijoins whose filters have several columns (Chandramouli and Yang, 2008, appendix C).

A filter over d columns is a box, a joining row is a vector of d values, and a point is affected by
a base row if its box contains the vector of a joining row. In the space of the 2d ends of boxes,
each joining vector v describes the boxes with `low <= v <= high` in every column. Vectors that
together touch everybody who is affected are picked greedily, and neighbouring ones become one
description where that takes in nobody who is not affected.

For a row that comes in on the filter side, those are affected whose boxes contain its vector and
none of its mates'. That is no union of few boxes, so the description names vectors that must not be
contained. The *skyline envelope* suffices: the mates that have no other mate between themselves and
the vector; and of these only as many as keep out everybody who must be kept out.

All points of a space are looked at. That takes time that grows with their number, which is why a
single filter column is chosen unless several save enough (`penstock.joins.decomposition.costs`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from penstock.catalog import Row
from penstock.joins.group import Group, GroupStep
from penstock.joins.points import CodeArray, Mask, SpacePoints
from penstock.joins.semijoin import base_row_message, message_to
from penstock.messages import Envelope, Message, Position, Reach, Reaches, Vector
from penstock.predicates.intervals import BOTTOM, TOP, above, below

Boxes: TypeAlias = npt.NDArray[np.int64]
"""Shape (points, columns): one end of the filters, in codes."""


class _Alone(NamedTuple):
    """Those who see a vector and none of its mates, as a description and as a mask."""

    envelope: Envelope
    mask: Mask


def envelope_messages(group: Group, step: GroupStep, points: SpacePoints) -> Iterator[Message]:
    """The messages of one step, for the points of a space with several filter columns."""
    if points.space.side == step.side:
        partners = list(group.sides[1 - step.side].values())
        upsert = () if step.new is None else described(points, step.new, partners)
        remove = () if step.old is None else described(points, step.old, partners)
        if upsert or remove:
            yield base_row_message(step, points, upsert, remove)
    else:
        yield from _of_joining_rows(group, step, points)


def envelope_initial(position: Position, group: Group, points: SpacePoints) -> Iterator[Message]:
    """The rows of a group that belong to the semijoins of these points, for them alone."""
    side = points.space.side
    touched = touching(points, group.sides[1 - side].values())
    if touched.any():
        for key, row in group.sides[side].items():
            yield from message_to(position, points, key, row, touched & points.selecting(row))


def touching(points: SpacePoints, rows: Iterable[Row]) -> Mask:
    """The points whose filter contains one of some filter rows."""
    mask = np.zeros(len(points), np.bool_)
    for vector in {points.vector(row) for row in rows}:
        mask |= points.admitting(vector)
    return mask


def seen_alone(
    group: Group, step: GroupStep, points: SpacePoints
) -> tuple[_Alone | None, _Alone | None]:
    """Whose filters contain the step's new (old) vector and no other one of its side beside it."""
    mates = {points.vector(r) for k, r in group.sides[step.side].items() if k != step.key}
    new = None if step.new is None else points.vector(step.new)
    old = None if step.old is None else points.vector(step.old)
    if new == old:
        return None, None
    return (
        None if new is None else _alone(points, new, mates | ({old} if old is not None else set())),
        None if old is None else _alone(points, old, mates | ({new} if new is not None else set())),
    )


def _of_joining_rows(group: Group, step: GroupStep, points: SpacePoints) -> Iterator[Message]:
    shown, hidden = seen_alone(group, step, points)
    for key, row in group.sides[1 - step.side].items():
        upsert, remove = (_reached(alone, points, row) for alone in (shown, hidden))
        if upsert or remove:
            yield Message(
                Position(step.offset, step.step),
                points.space.id,
                key,
                row=row if upsert else None,
                upsert=upsert,
                old=None if upsert else points.mentioned(row),
                remove=remove,
            )


def _reached(alone: _Alone | None, points: SpacePoints, row: Row) -> Reaches:
    if alone is None or not (alone.mask & points.selecting(row)).any():
        return ()
    return (alone.envelope,)


def _alone(points: SpacePoints, vector: Vector, mates: set[Vector]) -> _Alone | None:
    mask = points.admitting(vector)
    kept_out: list[Vector] = []
    if mates and mask.any():
        nearest = skyline_envelope(sorted(mates, key=_cuts), vector)
        among = np.stack([points.admitting(mate)[mask] for mate in nearest], axis=1)
        kept_out = [nearest[i] for i in _cover(among)]
        mask[mask] = ~among.any(axis=1)
    if not mask.any():
        return None
    reaches = tuple(Reach(BOTTOM, below(key), above(key), TOP) for key in vector)
    return _Alone(Envelope(reaches, tuple(kept_out)), mask)


def skyline_envelope(vectors: Sequence[Vector], centre: Vector) -> list[Vector]:
    """The vectors that have no other vector between themselves and the centre (definition 2 in
    appendix C): in the smallest box that contains both."""
    coded = _coded([*vectors, centre])
    middle, others = coded[-1], coded[:-1]
    low, high = np.minimum(others, middle), np.maximum(others, middle)
    nearest: list[Vector] = []
    for i, vector in enumerate(vectors):
        between = ((low[i] <= others) & (others <= high[i])).all(axis=1)
        if between.sum() == 1:  # nothing but itself: vectors are different from one another
            nearest.append(vector)
    return nearest


def described(points: SpacePoints, row: Row, partners: Sequence[Row]) -> Reaches:
    """A description of the points that select a base row and contain one of the partners."""
    if not partners:
        return ()
    selected = points.selecting(row)
    low = np.stack([ranges.low[selected] for ranges in points.all_filters], axis=1)
    high = np.stack([ranges.high[selected] for ranges in points.all_filters], axis=1)
    vectors = _codes_of(points, partners)
    inside = _containing(low, high, vectors)
    hit = inside.any(axis=1)
    if not hit.any():
        return ()
    corners = [(vectors[i], vectors[i]) for i in _cover(inside[hit])]
    return tuple(
        Envelope(
            tuple(
                Reach(BOTTOM, ranges.codes.low_cut(int(x)), ranges.codes.high_cut(int(y)), TOP)
                for ranges, x, y in zip(points.all_filters, first, last, strict=True)
            )
        )
        for first, last in _merged(corners, low[~hit], high[~hit])
    )


_Corner: TypeAlias = tuple[CodeArray, CodeArray]
"""Describes the boxes with `low <= first` and `high >= last` in every column."""


def _merged(corners: list[_Corner], missed_low: Boxes, missed_high: Boxes) -> list[_Corner]:
    """Fewer corners that cover the same boxes and none that is missed."""
    merged: list[_Corner] = []
    for first, last in corners:
        for i, (x, y) in enumerate(merged):
            wide = np.maximum(x, first), np.minimum(y, last)
            if not ((missed_low <= wide[0]) & (missed_high >= wide[1])).all(axis=1).any():
                merged[i] = wide
                break
        else:
            merged.append((first, last))
    return merged


def _cover(inside: npt.NDArray[np.bool_]) -> list[int]:
    """Columns of a table that together have a mark in every row that has one: few, not fewest."""
    chosen: list[int] = []
    left = inside[inside.any(axis=1)]
    while len(left):
        best = int(left.sum(axis=0).argmax())
        chosen.append(best)
        left = left[~left[:, best]]
    return sorted(chosen)


def _containing(low: Boxes, high: Boxes, vectors: Boxes) -> npt.NDArray[np.bool_]:
    """Shape (boxes, vectors): whether the box contains the vector."""
    marks = np.ones((len(low), len(vectors)), np.bool_)
    for column in range(vectors.shape[1]):
        values = vectors[:, column]
        marks &= (low[:, column, None] <= values) & (values <= high[:, column, None])
    return marks


def _codes_of(points: SpacePoints, rows: Iterable[Row]) -> Boxes:
    """The distinct vectors of some filter rows, in the codes of the points' filters, sorted."""
    coders = [ranges.codes for ranges in points.all_filters]
    vectors = {
        tuple(codes.value(key) for codes, key in zip(coders, points.vector(row), strict=True))
        for row in rows
    }
    return np.array(sorted(vectors), np.int64)


def _coded(vectors: Sequence[Vector]) -> Boxes:
    """Vectors with each value replaced by its rank in its column."""
    columns = []
    for values in zip(*vectors, strict=True):
        ranks = {cut: rank for rank, cut in enumerate(sorted({below(value) for value in values}))}
        columns.append([ranks[below(value)] for value in values])
    return np.array(columns, np.int64).T


def _cuts(vector: Vector) -> list[object]:
    return [below(key) for key in vector]
