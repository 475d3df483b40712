"""The initial content of many new points, addressed by regions instead of by name.

Listing each of them with every row would cost as much as a message to each. To a new point, a row
of its initial content has the effect of a row inserted now; so it is emitted like an insertion, to
subscriptions recorded from some offset on and to no others.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.joins.group import Group, GroupStep
from penstock.joins.points import SpacePoints
from penstock.joins.scheme_registry import make_scheme
from penstock.messages import Message, Position, each_message

MANY_NEWCOMERS = 64
"""New points from which regions are used. A region takes as many bytes as a few names, but named
recipients are found directly, while every point that might lie in a region must test it."""


def newcomer_messages(
    position: Position, group: Group, points: SpacePoints, since: int
) -> Iterator[Message]:
    """The rows of a group that belong to the semijoins of `points`: all points of their space
    whose subscriptions were recorded from `since` on."""
    side = points.space.side
    partners, rows = group.sides[1 - side], group.sides[side]
    if not partners or not rows:
        return
    before = Group(({}, dict(partners)) if side == 0 else (dict(partners), {}))
    steps = [GroupStep(*position, side, key, None, row) for key, row in rows.items()]
    # A scheme of its own: what it would cache for the group is not needed again.
    for message in each_message(make_scheme().run(before, steps, [points])):
        yield message._replace(since=since)
