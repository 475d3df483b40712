"""What many new points start with, described like everything else: by regions.

To name each of them beside every row would take as much as telling each of them alone. A row means
to new points what it would mean if it came just now; so it is told as if it did, to those who came
lately and to nobody else.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from penstock.joins.group import Group, GroupStep
from penstock.joins.kernels.starting import containing_any, selecting_each
from penstock.joins.points import SpacePoints
from penstock.joins.registry import make_scheme
from penstock.joins.skyline import fewest_points
from penstock.messages import Message, Position, Reach, each_message
from penstock.predicates.intervals import BOTTOM, TOP

MANY_NEWCOMERS = 64
"""So many are not named one by one. A region takes as many bytes as a few names; but who is named
is found at once, and a region is tested by everybody who might lie in it."""
SCANNED_POINTS = 4_096
"""Up to here, looking at all points for each row, in a kernel, costs less than shadows of them."""


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


def content_messages(position: Position, group: Group, points: SpacePoints) -> Iterator[Message]:
    """The rows of a group that belong to the semijoins of some points: all points of their space.

    All rows come with the same region, of those who contain a partner. So a group costs little more
    than each of its rows; a region for each row would take fewer boxes.
    """
    side = points.space.side
    partners, rows = list(group.sides[1 - side].items()), list(group.sides[side].items())
    if not partners or not rows:
        return
    if points.has_envelopes or len(points) > SCANNED_POINTS:
        yield from newcomer_messages(position, group, points, since=0)
        return
    filters, codes = points.filters, points.filters.codes
    values = np.unique(codes.all_values(points.filter_values(partners)))
    joined = containing_any(filters.low, filters.high, values, codes.top)
    begin, _ = selecting_each(*points.base_table, joined, points.base_codes(rows))
    wanted = np.flatnonzero(np.diff(begin)).tolist()
    if not wanted:
        return
    hit = np.zeros(len(points), np.bool_)
    hit[joined] = True
    region = tuple(
        Reach(BOTTOM, codes.low_cut(point.x), codes.high_cut(point.y), TOP)
        for point in fewest_points(filters.low, filters.high, hit)
    )
    for key, row in (rows[i] for i in wanted):
        yield Message(position, points.space.id, key, row, region)
