"""`ref-sj-opt`: semijoins reformulated with the fewest skyline points.

For a step of a row on one side of an edge (Chandramouli and Yang, 2008, section 3, and its rules
for updates and deletes in ARCHITECTURE.md):

* the row itself goes to the points of spaces based on its side that select it and whose filter
  interval contains the value of a joining row: a skyline over those intervals;
* each joining row goes to the points of spaces based on the other side for which the row's value
  is the first of its group inside the filter interval, or was the last: the interval contains it
  and neither neighbour.

Who is affected is found by looking at all points of a space, so the cost of a step grows with
their number.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

import numpy as np

from penstock.catalog import Key, Row
from penstock.joins.group import Group, GroupStep
from penstock.joins.points import CodeArray, CodedRanges, Mask, SpacePoints
from penstock.joins.skyline import affected, fewest_points
from penstock.messages import Message, Position, Reach, Reaches
from penstock.predicates.intervals import BOTTOM, TOP, Cut, above, below


class RefSjOpt:
    name = "ref-sj-opt"

    def messages(
        self, group: Group, step: GroupStep, spaces: Iterable[SpacePoints]
    ) -> Iterator[Message]:
        for points in spaces:
            if points.space.side == step.side:
                yield from _of_base_row(group, step, points)
            else:
                yield from _of_joining_rows(group, step, points)


def _of_base_row(group: Group, step: GroupStep, points: SpacePoints) -> Iterator[Message]:
    """The message that carries the changed row itself."""
    partners = group.sides[1 - step.side].values()
    if not partners:
        return
    codes = points.filters.codes
    present = np.unique([codes.value(points.attribute(row)) for row in partners])
    upsert = _skyline(points, step.new, present)
    remove = _skyline(points, step.old, present)
    if upsert or remove:
        yield Message(
            Position(step.offset, step.step),
            points.space.id,
            step.key,
            row=step.new if upsert else None,
            upsert=upsert,
            old=points.mentioned(step.old) if remove and step.old is not None else None,
            remove=remove,
        )


def _skyline(points: SpacePoints, row: Row | None, partners: CodeArray) -> Reaches:
    """Who holds the row: the reaches of the points that select it and have a partner."""
    if row is None:
        return ()
    selected = points.selecting(row)
    if not selected.any():
        return ()
    ranges = points.filters
    low, high = ranges.low[selected], ranges.high[selected]
    skyline = fewest_points(low, high, affected(low, high, partners))
    codes = ranges.codes
    return tuple(Reach(BOTTOM, codes.low_cut(p.x), codes.high_cut(p.y), TOP) for p in skyline)


def _of_joining_rows(group: Group, step: GroupStep, points: SpacePoints) -> Iterator[Message]:
    """The messages that carry the rows on the other side, which the step shows or hides."""
    mates = [points.attribute(r) for k, r in group.sides[step.side].items() if k != step.key]
    new = [] if step.new is None else [points.attribute(step.new)]
    old = [] if step.old is None else [points.attribute(step.old)]
    if new == old:
        return
    shown = [_alone(points.filters, value, mates + old) for value in new]
    hidden = [_alone(points.filters, value, mates + new) for value in old]
    if not any(mask.any() for _, mask in shown + hidden):
        return
    for key, row in group.sides[1 - step.side].items():
        selected = points.selecting(row)
        upsert = tuple(reach for reach, mask in shown if (mask & selected).any())
        remove = tuple(reach for reach, mask in hidden if (mask & selected).any())
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


def _alone(ranges: CodedRanges, value: Key | None, mates: list[Key | None]) -> tuple[Reach, Mask]:
    """The intervals that contain the value and none of its mates, as a reach and as a mask."""
    before, after = _neighbours(value, mates)
    mask = ranges.containing(value)
    for neighbour in (before, after):
        if neighbour is not None:
            mask &= ~ranges.containing(neighbour[0])
    reach = Reach(
        BOTTOM if before is None else above(before[0]),
        below(value),
        above(value),
        TOP if after is None else below(after[0]),
    )
    return reach, mask


def _neighbours(
    value: Key | None, mates: list[Key | None]
) -> tuple[tuple[Key | None] | None, tuple[Key | None] | None]:
    """The nearest mates on both sides (an equal one is both), each in a tuple, or None."""
    ordered = sorted(mates, key=below)
    cuts: list[Cut] = [below(mate) for mate in ordered]
    following = bisect_left(cuts, below(value))
    preceding = bisect_right(cuts, below(value)) - 1
    before = (ordered[preceding],) if preceding >= 0 else None
    after = (ordered[following],) if following < len(ordered) else None
    return before, after
