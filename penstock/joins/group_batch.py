"""Batches of steps of one group, and their messages in each space.

All rows that the group has or will have are numbered once; the effects of the steps on the points
of a space are then one kernel call (`penstock.joins.kernels.gap_steps`); Python only assembles the
messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from penstock.joins.group import Group, GroupStep, KeyedRow
from penstock.joins.kernels.gap_steps import BEFORE, BEGIN, END, NONE, StepOps
from penstock.joins.points import SpacePoints
from penstock.joins.semijoin import base_row_message, joining_row_messages
from penstock.joins.shadow_segment import ShadowSegment
from penstock.joins.visibility import alone, reaches
from penstock.messages import AnyMessage, Message, Reaches
from penstock.predicates.intervals import below


class GroupBatch:
    """Steps of one group, and all rows that take part in them, numbered by side."""

    def __init__(self, group: Group, steps: Sequence[GroupStep]) -> None:
        """Applies the steps to the group."""
        self.steps = steps
        self.rows: tuple[list[KeyedRow], list[KeyedRow]] = (
            list(group.sides[0].items()),
            list(group.sides[1].items()),
        )
        self.there = (len(self.rows[0]), len(self.rows[1]))
        """By side, the number of rows present before the first step."""
        new, old = self._number(group)
        self.new, self.old = np.array(new, np.int64), np.array(old, np.int64)
        """By step, the rows that it adds and removes, or NONE."""
        self.side = np.array([step.side for step in steps], np.int64)

    def _number(self, group: Group) -> tuple[list[int], list[int]]:
        numbers = [{key: i for i, (key, _) in enumerate(rows)} for rows in self.rows]
        new, old = [], []
        for _, _, side, key, before, after in self.steps:
            old.append(NONE if before is None else numbers[side].pop(key))
            if after is None:
                new.append(NONE)
                continue
            rows = self.rows[side]
            numbers[side][key] = len(rows)
            new.append(len(rows))
            rows.append((key, after))
        for side, rows in enumerate(self.rows):
            group.sides[side].clear()
            group.sides[side].update([rows[number] for number in numbers[side].values()])
        group.version += len(self.steps)
        return new, old


class SpaceBatch:
    """The effects of the steps of a group on the points of one space.

    The points must all be in one segment, built over this base column.
    """

    def __init__(
        self, batch: GroupBatch, points: SpacePoints, segment: ShadowSegment, column: int | None
    ) -> None:
        self._steps, self._points = batch.steps, points
        side = points.space.side
        self._base = batch.rows[side]
        base = points.base_values(column, self._base)
        distinct, effects = segment.run_group(
            base,
            points.filter_values(batch.rows[1 - side]),
            (batch.there[side], batch.there[1 - side]),
            StepOps(batch.side == side, batch.new, batch.old),
        )
        self._effects, self._order, self._new, self._old = effects
        self._cuts = [below(key) for key in distinct]
        self._last, self._first = self._effects.last.tolist(), self._effects.first.tolist()
        self._regions: dict[tuple[int, ...], Reaches] = {}

    def messages(self) -> Iterator[AnyMessage]:
        yield from self._of_base_rows()
        yield from self._of_joining_rows()

    def _of_base_rows(self) -> Iterator[Message]:
        """The messages that carry the changed rows themselves."""
        spans = self._effects.regions
        changed = np.flatnonzero((spans[..., END] > spans[..., BEGIN]).any(axis=1))
        steps, points, region = self._steps, self._points, self._region
        for step, (new, old) in zip(changed.tolist(), spans[changed].tolist(), strict=True):
            yield base_row_message(steps[step], points, region(*new), region(*old))

    def _region(self, begin: int, end: int) -> Reaches:
        if begin == end:
            return ()
        runs = (*self._last[begin:end], *self._first[begin:end])
        region = self._regions.get(runs)
        if region is None:
            cuts = [self._cuts[place] for place in runs]
            half = end - begin
            region = reaches(list(zip(cuts[:half], cuts[half:], strict=True)))
            self._regions[runs] = region
        return region

    def _of_joining_rows(self) -> Iterator[AnyMessage]:
        """The messages that carry the rows on the other side, which steps show or hide."""
        spans = self._effects.exposed
        rows = self._order[self._effects.rows].tolist()
        changed = np.flatnonzero((spans[..., END] > spans[..., BEGIN]).any(axis=1))
        for step, (shown, hidden) in zip(changed.tolist(), spans[changed].tolist(), strict=True):
            appearing, vanishing = (
                [self._base[row] for row in rows[span[BEGIN] : span[END]]]
                for span in (shown, hidden)
            )
            yield from joining_row_messages(
                self._steps[step],
                self._points,
                (appearing, self._alone(self._new[step], *shown[BEFORE:])),
                (vanishing, self._alone(self._old[step], *hidden[BEFORE:])),
            )

    def _alone(self, place: int, before: int, after: int) -> Reaches:
        """The intervals that contain a filter value and neither of its neighbours."""
        cuts = self._cuts
        x = None if before == NONE else cuts[before]
        return (alone(x, cuts[place], None if after == NONE else cuts[after]),)
