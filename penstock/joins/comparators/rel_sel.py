"""`rel-sel`: the join is left to the clients (Chandramouli and Yang, 2008, section 2.3).

Every change goes to all subscriptions whose box over its table contains it, joining or not. The
server does next to nothing; clients also hold rows without a join partner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.joins.group import Group, GroupStep
from penstock.joins.points import SpacePoints
from penstock.joins.scheme import Family, StepByStep
from penstock.joins.semijoin import base_row_message, message_to
from penstock.messages import EVERYONE, Message, Position


class RelSel(StepByStep):
    name = "rel-sel"
    family = Family.SELECTIONS

    def messages(
        self, group: Group, step: GroupStep, spaces: Iterable[SpacePoints]
    ) -> Iterator[Message]:
        upsert = () if step.new is None else EVERYONE
        remove = () if step.old is None else EVERYONE
        for points in spaces:
            if points.space.side == step.side:
                yield base_row_message(step, points, upsert, remove)

    def initial(
        self, position: Position, groups: Iterable[Group], points: SpacePoints
    ) -> Iterator[Message]:
        for group in groups:
            for key, row in group.sides[points.space.side].items():
                yield from message_to(position, points, key, row, points.selecting(row))


SCHEME = RelSel
