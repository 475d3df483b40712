"""Base of the schemes that send semijoin tuples: which row goes to which points, and when.

For a step of a row on one side of an edge (Chandramouli and Yang, 2008, section 3, with the rules
for updates and deletes in ARCHITECTURE.md):

* the row itself goes to the points of spaces based on its side that select it and whose filter
  interval contains the value of a joining row;
* each joining row goes to the points of spaces based on the other side for which the row's value
  is the first of its group inside the filter interval, or was the last: the interval contains it
  and neither neighbour.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from penstock.catalog import Key, Row, RowKey
from penstock.joins.group import Group, GroupStep, KeyedRow
from penstock.joins.initial_rows import initial_semijoins
from penstock.joins.point_arrays import CodeArray, CodedRanges, Mask
from penstock.joins.points import SpacePoints
from penstock.joins.scheme import StepByStep
from penstock.joins.skyline import SkylinePoint
from penstock.messages import AnyMessage, Message, MessageBatch, Position, Reach, Reaches
from penstock.predicates.intervals import BOTTOM, TOP, Cut, above, below


class SemijoinScheme(StepByStep):
    """Regions for both kinds of message; subclasses describe the first kind."""

    name: str

    def messages(
        self, group: Group, step: GroupStep, spaces: Iterable[SpacePoints]
    ) -> Iterator[Message]:
        for points in spaces:
            if points.space.side == step.side:
                yield from self._of_base_row(group, step, points)
            else:
                yield from self._of_joining_rows(group, step, points)

    def initial(
        self, position: Position, groups: Iterable[Group], points: SpacePoints
    ) -> Iterator[Message]:
        return initial_semijoins(position, groups, points)

    @abstractmethod
    def describe(self, points: SpacePoints, row: Row, partners: CodeArray) -> list[SkylinePoint]:
        """A descriptive skyline of the points that select the row and contain a partner's code.

        `partners` is sorted and not empty. Empty if there is no such point.
        """

    def exposing(
        self, points: SpacePoints, reach: Reach, mask: Mask, rows: Iterable[Row]
    ) -> list[bool]:
        """For each joining row, whether a point of the mask selects it."""
        return [bool((mask & points.selecting(row)).any()) for row in rows]

    def _of_base_row(self, group: Group, step: GroupStep, points: SpacePoints) -> Iterator[Message]:
        """The message that carries the changed row itself."""
        partners = partner_codes(points, group.sides[1 - step.side].values())
        if not len(partners):
            return
        upsert = self._reaches(points, step.new, partners)
        remove = self._reaches(points, step.old, partners)
        if upsert or remove:
            yield base_row_message(step, points, upsert, remove)

    def _reaches(self, points: SpacePoints, row: Row | None, partners: CodeArray) -> Reaches:
        if row is None:
            return ()
        codes = points.filters.codes
        return tuple(
            Reach(BOTTOM, codes.low_cut(point.x), codes.high_cut(point.y), TOP)
            for point in self.describe(points, row, partners)
        )

    def _of_joining_rows(
        self, group: Group, step: GroupStep, points: SpacePoints
    ) -> Iterator[Message]:
        """The messages that carry the rows on the other side, which the step shows or hides."""
        shown, hidden = visible_through(group, step, points)
        joining = group.sides[1 - step.side]
        upserts = _reached(self, points, shown, joining.values())
        removes = _reached(self, points, hidden, joining.values())
        for (key, row), upsert, remove in zip(joining.items(), upserts, removes, strict=True):
            if upsert or remove:
                yield joining_row_message(step, points, (key, row), upsert, remove)


Alone = tuple[Reach, Mask]


def _reached(
    scheme: SemijoinScheme, points: SpacePoints, alone: Alone | None, rows: Iterable[Row]
) -> Iterator[Reaches]:
    """For each joining row, the reach of the points for which it appears (or vanishes), if any."""
    if alone is None or not alone[1].any():
        return (() for _ in rows)
    reach, mask = alone
    exposed = scheme.exposing(points, reach, mask, rows)
    return ((reach,) if one else () for one in exposed)


def base_row_message(
    step: GroupStep, points: SpacePoints, upsert: Reaches, remove: Reaches
) -> Message:
    offset, number, _, key, old, new = step
    return Message(
        Position(offset, number),
        points.space.id,
        key,
        new if upsert else None,
        upsert,
        points.mentioned(old) if remove and old is not None else None,
        remove,
    )


def joining_row_message(
    step: GroupStep,
    points: SpacePoints,
    keyed: tuple[RowKey, Row],
    upsert: Reaches,
    remove: Reaches,
) -> Message:
    """A row on the other side, which the step shows to some points and hides from others."""
    key, row = keyed
    return Message(
        Position(step.offset, step.step),
        points.space.id,
        key,
        row=row if upsert else None,
        upsert=upsert,
        old=None if upsert else points.mentioned(row),
        remove=remove,
    )


def joining_row_messages(
    step: GroupStep,
    points: SpacePoints,
    shown: tuple[Sequence[KeyedRow], Reaches],
    hidden: tuple[Sequence[KeyedRow], Reaches],
) -> Iterator[AnyMessage]:
    """The rows on the other side that a step shows to some points, and those it hides from some."""
    position, space = Position(step.offset, step.step), points.space.id
    columns = points.sorted_columns
    (rows, upsert), (vanishing, remove) = shown, hidden
    if rows and vanishing:
        of_both = dict(rows).keys() & dict(vanishing).keys()
        both = [one for one in rows if one[0] in of_both]
        rows = [one for one in rows if one[0] not in of_both]
        vanishing = [one for one in vanishing if one[0] not in of_both]
        if both:
            yield MessageBatch(position, space, both, upsert, remove, columns)
    if rows:
        yield MessageBatch(position, space, rows, upsert, (), columns)
    if vanishing:
        yield MessageBatch(position, space, vanishing, (), remove, columns)


def partner_codes(points: SpacePoints, rows: Iterable[Row]) -> CodeArray:
    """The distinct codes of the filter values of rows, sorted."""
    codes = points.filters.codes
    return np.array(sorted({codes.value(points.attribute(row)) for row in rows}), np.int64)


def visible_through(
    group: Group, step: GroupStep, points: SpacePoints
) -> tuple[Alone | None, Alone | None]:
    """The points whose filter intervals contain the step's new (old) value and no other value."""
    mates = [points.attribute(r) for k, r in group.sides[step.side].items() if k != step.key]
    new = [] if step.new is None else [points.attribute(step.new)]
    old = [] if step.old is None else [points.attribute(step.old)]
    if new == old:
        return None, None
    return (
        _alone(points.filters, new[0], mates + old) if new else None,
        _alone(points.filters, old[0], mates + new) if old else None,
    )


def _alone(ranges: CodedRanges, value: Key | None, mates: list[Key | None]) -> Alone:
    """The intervals that contain the value and none of its mates, as a reach and as a mask."""
    before, after = neighbours(value, mates)
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


def neighbours(
    value: Key | None, mates: list[Key | None]
) -> tuple[tuple[Key | None] | None, tuple[Key | None] | None]:
    """The nearest mates on both sides (an equal one is both), each as a 1-tuple, or None."""
    ordered = sorted(mates, key=below)
    cuts: list[Cut] = [below(mate) for mate in ordered]
    following = bisect_left(cuts, below(value))
    preceding = bisect_right(cuts, below(value)) - 1
    before = (ordered[preceding],) if preceding >= 0 else None
    after = (ordered[following],) if following < len(ordered) else None
    return before, after


def message_to(
    position: Position, points: SpacePoints, key: tuple[Key, ...], row: Row | None, mask: Mask
) -> Iterator[Message]:
    """The message to exactly the points of a mask; nothing if it is empty."""
    ids = points.ids
    recipients = tuple(sorted(ids[i] for i in np.flatnonzero(mask).tolist()))
    if recipients:
        yield Message(position, points.space.id, key, row=row, recipients=recipients)
