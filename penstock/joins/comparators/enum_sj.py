"""`enum-sj`: all affected subscriptions are enumerated (Chandramouli and Yang, 2008, 3.1).

The semijoin tuples of `ref-sj-*`, addressed to a list of points instead of a region: a server would
send them by unicast, once per recipient.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from penstock.catalog import Row
from penstock.joins.envelopes import seen_alone, touching
from penstock.joins.filter_vectors import FilterVectors
from penstock.joins.group import Group, GroupStep
from penstock.joins.initial_rows import initial_semijoins
from penstock.joins.point_arrays import Mask
from penstock.joins.points import SpacePoints
from penstock.joins.scheme import StepByStep
from penstock.joins.semijoin import (
    message_to,
    partner_codes,
    visible_through,
)
from penstock.joins.skyline import affected
from penstock.messages import Message, Position


class EnumSj(StepByStep):
    name = "enum-sj"

    def messages(
        self, group: Group, step: GroupStep, spaces: Iterable[SpacePoints]
    ) -> Iterator[Message]:
        for points in spaces:
            if points.space.side == step.side:
                yield from _of_base_row(group, step, points)
            else:
                yield from _of_joining_rows(group, step, points)

    def initial(
        self, position: Position, groups: Iterable[Group], points: SpacePoints
    ) -> Iterator[Message]:
        return initial_semijoins(position, groups, points)


def _of_base_row(group: Group, step: GroupStep, points: SpacePoints) -> Iterator[Message]:
    joining = _joining(points, group.sides[1 - step.side].values())
    if not joining.any():
        return
    position = Position(step.offset, step.step)
    taking = _holders(points, step.new, joining)
    leaving = _holders(points, step.old, joining) & ~taking
    yield from message_to(position, points, step.key, step.new, taking)
    yield from message_to(position, points, step.key, None, leaving)


def _joining(points: SpacePoints, rows: Iterable[Row]) -> Mask:
    """The points whose filter contains at least one of the rows."""
    if points.has_envelopes:
        return touching(points, rows)
    filters = points.filters
    return affected(filters.low, filters.high, partner_codes(points, rows))


def _holders(points: SpacePoints, row: Row | None, joining: Mask) -> Mask:
    """The points that hold a row, given the points with a joining row in their filter."""
    return np.zeros(len(points), np.bool_) if row is None else points.selecting(row) & joining


def _of_joining_rows(group: Group, step: GroupStep, points: SpacePoints) -> Iterator[Message]:
    nobody = np.zeros(len(points), np.bool_)
    alone = (
        seen_alone(step, points, FilterVectors(points, group))
        if points.has_envelopes
        else visible_through(group, step, points)
    )
    shown, hidden = (nobody if one is None else one[1] for one in alone)
    if not (shown | hidden).any():
        return
    position = Position(step.offset, step.step)
    for key, row in group.sides[1 - step.side].items():
        selecting = points.selecting(row)
        yield from message_to(position, points, key, row, shown & selecting)
        yield from message_to(position, points, key, None, hidden & ~shown & selecting)


SCHEME = EnumSj
