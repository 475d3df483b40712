"""`enum-j`: every subscription is sent its own new join rows (Chandramouli and Yang, 2008, 2.3).

A server without any sharing: for each join row it enumerates the subscriptions that want it, and
sends the row once per recipient.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from penstock.joins.comparators.structures.join_row_halves import (
    HalfVersion,
    addressed,
    half_changes,
    initial_pairs,
)
from penstock.joins.group import Group, GroupStep
from penstock.joins.point_arrays import Mask
from penstock.joins.points import SpacePoints
from penstock.joins.scheme import Family, StepByStep
from penstock.messages import Message, Position


class EnumJ(StepByStep):
    name = "enum-j"
    family = Family.JOIN_ROWS

    def messages(
        self, group: Group, step: GroupStep, spaces: Iterable[SpacePoints]
    ) -> Iterator[Message]:
        position = Position(step.offset, step.step)
        for points in spaces:
            for change in half_changes(group, step, points):
                taking = _wanted(change.new, points)
                leaving = _wanted(change.old, points) & ~taking
                row = None if change.new is None else change.new.row
                yield from addressed(position, points, change, row, taking)
                yield from addressed(position, points, change, None, leaving)

    def initial(
        self, position: Position, groups: Iterable[Group], points: SpacePoints
    ) -> Iterator[Message]:
        return initial_pairs(position, groups, points)


def _wanted(half: HalfVersion | None, points: SpacePoints) -> Mask:
    return np.zeros(len(points), np.bool_) if half is None else half.wanted_by(points)


SCHEME = EnumJ
