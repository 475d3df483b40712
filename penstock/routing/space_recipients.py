"""The recipients of a message: the points of its space that lie in its region."""

from __future__ import annotations

import numpy as np

from penstock.joins.point_arrays import CodedRanges, Mask
from penstock.joins.points import SpacePoints
from penstock.joins.selections import selecting_points
from penstock.messages import ANY_FILTER, Envelope, Message, PointId, Reach, Reaches
from penstock.routing.regions import RegionIndex, coded_reach

SCANNED_POINTS = 1_000
"""Up to this many points, a scan costs less than an index lookup."""


def recipients(message: Message, points: SpacePoints) -> list[PointId]:
    """The points that must upsert or remove the message's row, in any order."""
    if message.recipients:
        return list(message.recipients)
    if points.space.edge is None:
        found = _of_selection(message, points)
    elif len(points) <= SCANNED_POINTS:
        found = scanned(message, points)
    else:
        found = _of_index(message, points)
    return _newcomers(message.since, found, points) if message.since else found


def _newcomers(since: int, found: list[PointId], points: SpacePoints) -> list[PointId]:
    """The points of subscriptions recorded from `since` on that take initial content."""
    late = [point for point in found if point.subscription >= since]
    if points.space.edge is not None:
        return late
    return [point for point in late if not points[point].changes_only]


def subscribers(message: Message, points: SpacePoints) -> set[int]:
    """The subscriptions that must upsert or remove the message's row at some point of theirs."""
    is_many = points.space.edge is not None and len(points) > SCANNED_POINTS
    if message.recipients or message.since or not is_many:
        return {point.subscription for point in recipients(message, points)}
    index, found = points.index(RegionIndex), set[int]()
    if message.upsert and message.row is not None:
        found |= index.subscriptions_within(message.upsert, message.row)
    if message.remove:
        found |= index.subscriptions_within(message.remove, message.row_before(points.base))
    return found


def _of_index(message: Message, points: SpacePoints) -> list[PointId]:
    index, found = points.index(RegionIndex), []
    if message.upsert and message.row is not None:
        found = index.within(message.upsert, message.row)
    if message.remove:
        more = index.within(message.remove, message.row_before(points.base))
        found = list(dict.fromkeys(found + more)) if found else more
    return found


def scanned(message: Message, points: SpacePoints) -> list[PointId]:
    """The points in the message's regions, by testing each of them."""
    mask = np.zeros(len(points), np.bool_)
    if message.upsert and message.row is not None:
        mask |= _reached(message.upsert, points) & points.selecting(message.row)
    if message.remove:
        mask |= _reached(message.remove, points) & points.selecting(message.row_before(points.base))
    return [points.ids[i] for i in np.flatnonzero(mask)]


def _of_selection(message: Message, points: SpacePoints) -> list[PointId]:
    """For subscriptions over one table, the row alone decides."""
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
    low_from, low_to, high_from, high_to = coded_reach(reach, ranges.codes)
    return (
        (low_from <= ranges.low)
        & (ranges.low <= low_to)
        & (high_from <= ranges.high)
        & (ranges.high <= high_to)
    )
