"""What many new points start with, described like everything else: by regions.

To name each of them beside every row would take as much as a message to each of them. A row means
to new points what it would mean if it came just now; so it is emitted as if it did, to those who
came lately and to nobody else.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.joins.group import Group, GroupStep
from penstock.joins.points import SpacePoints
from penstock.joins.registry import make_scheme
from penstock.messages import Message, Position, each_message

MANY_NEWCOMERS = 64
"""So many are not named one by one. A region takes as many bytes as a few names; but who is named
is found at once, and a region is tested by everybody who might lie in it."""


def newcomer_messages(
    position: Position, group: Group, points: SpacePoints, since: int
) -> Iterator[Message]:
    """The rows of a group that belong to the semijoins of some points: all points of their space
    whose subscriptions were recorded from `since` on."""
    side = points.space.side
    partners, rows = group.sides[1 - side], group.sides[side]
    if not partners or not rows:
        return
    before = Group(({}, dict(partners)) if side == 0 else (dict(partners), {}))
    steps = [GroupStep(*position, side, key, None, row) for key, row in rows.items()]
    # What it would remember of the group is of no use to anybody.
    for message in each_message(make_scheme().run(before, steps, [points])):
        yield message._replace(since=since)
