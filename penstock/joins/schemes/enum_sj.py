"""`enum-sj`: every affected subscription is found and named (Chandramouli and Yang, 2008, 3.1).

The semijoin tuples of `ref-sj-*`, but addressed to a list of points: what a server would send by
unicast, once per recipient.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from penstock.catalog import Row
from penstock.joins.group import Group, GroupStep
from penstock.joins.points import CodeArray, Mask, SpacePoints
from penstock.joins.scheme import StepByStep
from penstock.joins.semijoin import (
    initial_semijoins,
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

    def initial(self, position: Position, group: Group, points: SpacePoints) -> Iterator[Message]:
        return initial_semijoins(position, group, points)


def _of_base_row(group: Group, step: GroupStep, points: SpacePoints) -> Iterator[Message]:
    partners = partner_codes(points, group.sides[1 - step.side].values())
    if not len(partners):
        return
    position = Position(step.offset, step.step)
    taking = _holders(points, step.new, partners)
    leaving = _holders(points, step.old, partners) & ~taking
    yield from message_to(position, points, step.key, step.new, taking)
    yield from message_to(position, points, step.key, None, leaving)


def _holders(points: SpacePoints, row: Row | None, partners: CodeArray) -> Mask:
    """The points that hold a row, given the values it joins."""
    if row is None:
        return np.zeros(len(points), np.bool_)
    return points.selecting(row) & affected(points.filters.low, points.filters.high, partners)


def _of_joining_rows(group: Group, step: GroupStep, points: SpacePoints) -> Iterator[Message]:
    nobody = np.zeros(len(points), np.bool_)
    shown, hidden = (
        nobody if alone is None else alone[1] for alone in visible_through(group, step, points)
    )
    if not (shown | hidden).any():
        return
    position = Position(step.offset, step.step)
    for key, row in group.sides[1 - step.side].items():
        selecting = points.selecting(row)
        yield from message_to(position, points, key, row, shown & selecting)
        yield from message_to(position, points, key, None, hidden & ~shown & selecting)


SCHEME = EnumSj
