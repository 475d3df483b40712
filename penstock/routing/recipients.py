"""Who gets a message: the points of its space that lie in its region."""

from __future__ import annotations

import numpy as np

from penstock.joins.points import CodedRanges, Mask, SpacePoints
from penstock.joins.selections import selecting_points
from penstock.messages import ANY_FILTER, Envelope, Message, PointId, Reach, Reaches
from penstock.predicates.codes import Codes
from penstock.predicates.intervals import Cut


def recipients(message: Message, points: SpacePoints) -> list[PointId]:
    """The points that must take up or give up the message's row."""
    if message.recipients:
        return list(message.recipients)
    if points.space.edge is None:
        return _of_selection(message, points)
    mask = np.zeros(len(points), np.bool_)
    if message.upsert and message.row is not None:
        mask |= _reached(message.upsert, points) & points.selecting(message.row)
    if message.remove:
        mask |= _reached(message.remove, points) & points.selecting(message.row_before(points.base))
    return [points.ids[i] for i in np.flatnonzero(mask)]


def _of_selection(message: Message, points: SpacePoints) -> list[PointId]:
    """For subscriptions over one table, the row says it all."""
    found: dict[PointId, None] = {}
    if message.upsert and message.row is not None:
        found |= dict.fromkeys(selecting_points(points, message.row))
    if message.remove:
        found |= dict.fromkeys(selecting_points(points, message.row_before(points.base)))
    return list(found)


def _reached(reaches: Reaches, points: SpacePoints) -> Mask:
    """The points whose filter interval lies within one of the reaches."""
    if ANY_FILTER in reaches:
        return np.ones(len(points), np.bool_)
    mask = np.zeros(len(points), np.bool_)
    for reach in reaches:
        if isinstance(reach, Envelope):
            mask |= enveloped(reach, points)
        else:
            mask |= _within(reach, points.filters)
    return mask


def enveloped(envelope: Envelope, points: SpacePoints) -> Mask:
    """The points whose filter, over several columns, lies within an envelope."""
    mask = np.ones(len(points), np.bool_)
    for reach, ranges in zip(envelope.reaches, points.all_filters, strict=True):
        mask &= _within(reach, ranges)
    for vector in envelope.without:
        mask &= ~points.admitting(vector)
    return mask


def _within(reach: Reach, ranges: CodedRanges) -> Mask:
    low_from, low_to, high_from, high_to = _coded(reach, ranges.codes)
    return (
        (low_from <= ranges.low)
        & (ranges.low <= low_to)
        & (high_from <= ranges.high)
        & (ranges.high <= high_to)
    )


def _coded(reach: Reach, codes: Codes) -> tuple[int, int, int, int]:
    """The reach in codes. Its cuts need not be among the constants, the points' ends are."""
    return (
        codes.lowest_at_or_above(reach.low_from),
        _last_low(reach.low_to, codes),
        _first_high(reach.high_from, codes),
        codes.highest_at_or_below(reach.high_to),
    )


def _last_low(cut: Cut, codes: Codes) -> int:
    code = codes.lowest_at_or_above(cut)
    return code if codes.low_cut(code) == cut else code - 1


def _first_high(cut: Cut, codes: Codes) -> int:
    code = codes.highest_at_or_below(cut)
    return code if codes.high_cut(code) == cut else code + 1
