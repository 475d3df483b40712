"""`ref-sj-gap`: semijoins reformulated with gap shadows; see `penstock.joins.shadows`.

The cost of a step does not grow with the number of subscriptions: they are searched when a join
value is seen for the first time, and then only along the boundaries of the gaps that change. The
cache per space and join value is derived from the group and the points, and rebuilt when it is
evicted or stale.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from penstock.catalog import Row, RowKey
from penstock.joins.group import Group, GroupStep, KeyedRow
from penstock.joins.group_batch import GroupBatch, SpaceBatch
from penstock.joins.group_memory import GroupMemory
from penstock.joins.initial_rows import initial_semijoins
from penstock.joins.points import SpacePoints
from penstock.joins.scheme import Family
from penstock.joins.semijoin import base_row_message, joining_row_messages
from penstock.joins.shadow_index import ShadowIndex
from penstock.joins.shadow_segment import BaseValues
from penstock.joins.shadows import ValueShadows
from penstock.joins.visibility import Exposure
from penstock.messages import AnyMessage, Message, Position, Reaches, each_message
from penstock.predicates.intervals import Cut, below

if TYPE_CHECKING:
    from penstock.joins.packed.interface import PackedScheme

MANY_STEPS = 4
"""Batches of at least this many steps are worth a kernel call."""
ROWS_PER_STEP = 32
"""A batch reads all rows of the group, at 1 us each; a single step on cached shadows takes some 30
us, however many rows there are."""


class _GroupShadows:
    """The cached shadows of one join value in one space, as of one version of its group."""

    __slots__ = (
        "base_values",
        "column",
        "group",
        "points",
        "shadows",
        "side",
        "sorted_base",
        "version",
    )

    def __init__(self, points: SpacePoints, group: Group) -> None:
        index = points.index(ShadowIndex)
        index.refresh()
        self.points, self.group, self.version = points, group, group.version
        self.side = points.space.side
        filter_rows = group.sides[1 - self.side].values()
        self.shadows = ValueShadows(index, map(points.attribute, filter_rows))
        self.column = index.column
        # The base rows by value: built when a joining row is first shown or hidden.
        self.sorted_base: list[tuple[Cut, RowKey]] | None = None
        self.base_values: BaseValues | None = None

    def fits(self, points: SpacePoints, group: Group) -> bool:
        if self.group is not group or self.version != group.version or self.points is not points:
            return False
        shadows = self.shadows
        return shadows.stamp == shadows.index.stamp or shadows.catch_up()

    def base(self) -> BaseValues:
        """The values of the present base rows."""
        if self.base_values is None:
            rows, key, column = self.group.sides[self.side], self.points.base_key, self.column
            self.base_values = BaseValues(key(column, row) for row in rows.values())
        return self.base_values

    def sort_key(self, key: RowKey, row: Row) -> tuple[Cut, RowKey]:
        return below(self.points.base_key(self.column, row)), key

    def follow_base_row(self, step: GroupStep) -> None:
        """Update the cached base rows to the state after a step."""
        key, column = self.points.base_key, self.column
        if self.base_values is not None:
            if step.new is not None:
                self.base_values.add(key(column, step.new))
            if step.old is not None:
                self.base_values.remove(key(column, step.old))
        if self.sorted_base is not None:
            if step.old is not None:
                del self.sorted_base[
                    bisect_left(self.sorted_base, self.sort_key(step.key, step.old))
                ]
            if step.new is not None:
                insort(self.sorted_base, self.sort_key(step.key, step.new))

    def exposed(self, exposure: Exposure) -> Iterator[KeyedRow]:
        """The base rows whose values an exposure contains."""
        rows = self.group.sides[self.side]
        if self.sorted_base is None:
            self.sorted_base = sorted(self.sort_key(key, row) for key, row in rows.items())
        base = exposure.base
        for low, high in zip(base[::2], base[1::2], strict=True):
            first = bisect_left(self.sorted_base, (low,))
            last = bisect_left(self.sorted_base, (high,))
            for _, key in self.sorted_base[first:last]:
                yield key, rows[key]


class RefSjGap:
    name = "ref-sj-gap"
    family = Family.SEMIJOINS

    def __init__(self) -> None:
        self._memory = GroupMemory(_GroupShadows)

    @property
    def packed(self) -> PackedScheme:
        from penstock.joins.packed.gap import PackedGap  # imports kernels

        return PackedGap()

    def messages(
        self, group: Group, step: GroupStep, spaces: Iterable[SpacePoints]
    ) -> Iterator[Message]:
        found: list[AnyMessage] = []
        for points in spaces:
            known = self._memory.recall(points, group)
            if points.space.side == step.side:
                _add_base_row(known, step, found)
            else:
                _add_joining_rows(known, step, found)
            known.version = group.version + 1  # the caller applies the step next
        return each_message(found)

    def run(
        self, group: Group, steps: Iterable[GroupStep], spaces: Sequence[SpacePoints]
    ) -> list[AnyMessage]:
        many = list(steps)
        if not many:
            return []
        indexes = [points.index(ShadowIndex) for points in spaces]
        for index in indexes:
            index.refresh()
        segments = [index.only_segment for index in indexes]
        is_large = len(group) > ROWS_PER_STEP * len(many)
        if len(many) < MANY_STEPS or is_large or None in segments:
            return self._run_one_by_one(group, many, spaces)
        at_rest = self._at_rest(group, many, spaces)
        batch = GroupBatch(group, many)
        found: list[AnyMessage] = []
        for points, index, segment in zip(spaces, indexes, segments, strict=True):
            assert segment is not None
            known = at_rest.get(points.space.id)
            if known is None:
                found += SpaceBatch(batch, points, segment, index.column).messages()
                continue
            for step in many:
                _add_base_row(known, step, found)
            known.version = group.version
        return found

    def _at_rest(
        self, group: Group, steps: Sequence[GroupStep], spaces: Sequence[SpacePoints]
    ) -> dict[int, _GroupShadows]:
        """The cached shadows, by space, for which the steps change base rows only, so that shadows
        stay valid. Only for groups seen before; caching one pays off when it is seen again."""
        side = steps[0].side
        if not group.version or any(step.side != side for step in steps):
            return {}
        here = [points for points in spaces if points.space.side == side]
        return {points.space.id: self._memory.recall(points, group) for points in here}

    def _run_one_by_one(
        self, group: Group, steps: Sequence[GroupStep], spaces: Sequence[SpacePoints]
    ) -> list[AnyMessage]:
        found: list[AnyMessage] = []
        known = [self._memory.recall(points, group) for points in spaces]
        for step in steps:
            for one in known:
                if one.side == step.side:
                    _add_base_row(one, step, found)
                else:
                    _add_joining_rows(one, step, found)
            group.apply(step)
        for one in known:
            one.version = group.version
        return found

    def initial(
        self, position: Position, groups: Iterable[Group], points: SpacePoints
    ) -> Iterator[Message]:
        return initial_semijoins(position, groups, points)


def _add_base_row(known: _GroupShadows, step: GroupStep, found: list[AnyMessage]) -> None:
    """The message that carries the changed row itself."""
    points, shadows, old, new = known.points, known.shadows, step.old, step.new
    upsert: Reaches = ()
    remove: Reaches = ()
    if new is not None:
        upsert = shadows.describe(points.base_key(known.column, new))
    if old is not None:
        remove = shadows.describe(points.base_key(known.column, old))
    known.follow_base_row(step)
    if upsert or remove:
        found.append(base_row_message(step, points, upsert, remove))


def _add_joining_rows(known: _GroupShadows, step: GroupStep, found: list[AnyMessage]) -> None:
    """The messages that carry the rows on the other side, which the step shows or hides."""
    points, shadows = known.points, known.shadows
    shown = hidden = None
    if step.old is None:
        assert step.new is not None
        shown = shadows.show(points.attribute(step.new), known.base)
    elif step.new is None:
        hidden = shadows.hide(points.attribute(step.old), known.base)
    else:
        new, old = points.attribute(step.new), points.attribute(step.old)
        if new != old:
            shown, hidden = shadows.show(new, known.base), shadows.hide(old, known.base)
    if shown is not None or hidden is not None:
        _add_messages(known, step, shown, hidden, found)


def _add_messages(
    known: _GroupShadows,
    step: GroupStep,
    shown: Exposure | None,
    hidden: Exposure | None,
    found: list[AnyMessage],
) -> None:
    appearing, vanishing = (
        ([], ()) if one is None else (list(known.exposed(one)), (one.reach,))
        for one in (shown, hidden)
    )
    found += joining_row_messages(step, known.points, appearing, vanishing)


SCHEME = RefSjGap
