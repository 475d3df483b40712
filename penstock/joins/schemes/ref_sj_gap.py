"""`ref-sj-gap`: semijoins reformulated with gap shadows; see `penstock.joins.shadows`.

The cost of a step does not grow with the number of subscriptions: they are looked at when a join
value is seen for the first time, and then only along the edges of the gaps that change. What is
kept per space and join value is derived from the group and the points, and made anew when it is
lost or no longer fits.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Iterable, Iterator

from penstock.catalog import Row, RowKey
from penstock.joins.group import Group, GroupStep
from penstock.joins.points import SpacePoints
from penstock.joins.semijoin import base_row_message, initial_semijoins
from penstock.joins.shadow_index import ShadowIndex
from penstock.joins.shadows import Exposure, ValueShadows
from penstock.joins.spaces import JoinValue
from penstock.messages import Message, Position, Reach, Reaches
from penstock.predicates.intervals import Cut, below

MAX_JOIN_VALUES = 100_000
"""So many join values, per space, are remembered: 1 to 50 kB each, most of it for their rows."""


class _Remembered:
    """What is known of one join value in one space, as of one version of its group."""

    __slots__ = ("column", "group", "points", "shadows", "sorted_base", "version")

    def __init__(self, points: SpacePoints, group: Group) -> None:
        index = points.index(ShadowIndex)
        index.refresh()
        self.points, self.group, self.version = points, group, group.version
        filter_rows = group.sides[1 - points.space.side].values()
        self.shadows = ValueShadows(index, map(points.attribute, filter_rows))
        self.column = index.column
        # The base rows by value: made when a joining row is first shown or hidden.
        self.sorted_base: list[tuple[Cut, RowKey]] | None = None

    def fits(self, points: SpacePoints, group: Group) -> bool:
        return (
            self.group is group
            and self.version == group.version
            and self.points is points
            and self.shadows.catch_up()
        )

    def place(self, key: RowKey, row: Row) -> tuple[Cut, RowKey]:
        return below(self.points.base_key(self.column, row)), key

    def follow_base_row(self, step: GroupStep) -> None:
        if self.sorted_base is None:
            return
        if step.old is not None:
            del self.sorted_base[bisect_left(self.sorted_base, self.place(step.key, step.old))]
        if step.new is not None:
            insort(self.sorted_base, self.place(step.key, step.new))

    def exposed(self, exposure: Exposure) -> Iterator[RowKey]:
        """The keys of the base rows whose values an exposure names."""
        if self.sorted_base is None:
            rows = self.group.sides[self.points.space.side]
            self.sorted_base = sorted(self.place(key, row) for key, row in rows.items())
        base = exposure.base
        for low, high in zip(base[::2], base[1::2], strict=True):
            first = bisect_left(self.sorted_base, (low,))
            last = bisect_left(self.sorted_base, (high,))
            for _, key in self.sorted_base[first:last]:
                yield key


class RefSjGap:
    name = "ref-sj-gap"

    def __init__(self) -> None:
        self._remembered: OrderedDict[tuple[int, JoinValue], _Remembered] = OrderedDict()

    def messages(
        self, group: Group, step: GroupStep, spaces: Iterable[SpacePoints]
    ) -> Iterator[Message]:
        for points in spaces:
            known = self._recall(points, group, step.value)
            if points.space.side == step.side:
                message = _of_base_row(known, step)
                if message is not None:
                    yield message
            else:
                yield from _of_joining_rows(known, step)
            known.version = group.version + 1  # the caller applies the step next

    def initial(self, position: Position, group: Group, points: SpacePoints) -> Iterator[Message]:
        return initial_semijoins(position, group, points)

    def _recall(self, points: SpacePoints, group: Group, value: JoinValue) -> _Remembered:
        place = (points.space.id, value)
        known = self._remembered.get(place)
        if known is not None and known.fits(points, group):
            self._remembered.move_to_end(place)
            return known
        known = self._remembered[place] = _Remembered(points, group)
        if len(self._remembered) > MAX_JOIN_VALUES:
            self._remembered.popitem(last=False)
        return known


def _of_base_row(known: _Remembered, step: GroupStep) -> Message | None:
    """The message that carries the changed row itself."""
    points, column, shadows = known.points, known.column, known.shadows
    upsert: Reaches = ()
    remove: Reaches = ()
    if step.new is not None:
        upsert = shadows.describe(points.base_key(column, step.new))
    if step.old is not None:
        remove = shadows.describe(points.base_key(column, step.old))
    known.follow_base_row(step)
    return base_row_message(step, points, upsert, remove) if upsert or remove else None


def _of_joining_rows(known: _Remembered, step: GroupStep) -> Iterator[Message]:
    """The messages that carry the rows on the other side, which the step shows or hides."""
    points, shadows = known.points, known.shadows
    new = None if step.new is None else points.attribute(step.new)
    old = None if step.old is None else points.attribute(step.old)
    if step.new is not None and step.old is not None and new == old:
        return
    shown = shadows.show(new) if step.new is not None else None
    hidden = shadows.hide(old) if step.old is not None else None
    if shown is None and hidden is None:
        return
    upserts = _reached(known, shown)
    removes = _reached(known, hidden)
    rows = known.group.sides[points.space.side]
    for key in dict.fromkeys([*upserts, *removes]):
        upsert, remove, row = upserts.get(key), removes.get(key), rows[key]
        yield Message(
            Position(step.offset, step.step),
            points.space.id,
            key,
            row=row if upsert else None,
            upsert=(upsert,) if upsert else (),
            old=None if upsert else points.mentioned(row),
            remove=(remove,) if remove else (),
        )


def _reached(known: _Remembered, exposure: Exposure | None) -> dict[RowKey, Reach]:
    if exposure is None:
        return {}
    return dict.fromkeys(known.exposed(exposure), exposure.reach)


SCHEME = RefSjGap
