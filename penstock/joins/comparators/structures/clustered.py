"""Base of the schemes with a stabbing-set index (Chandramouli and Yang, 2008, section 3.2)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator

import numpy as np

from penstock.catalog import Key, Row, RowKey
from penstock.joins.comparators.structures.cluster_kernels import NOWHERE_ABOVE, NOWHERE_BELOW
from penstock.joins.comparators.structures.stabbing import StabbingIndex
from penstock.joins.group import Group, GroupStep
from penstock.joins.initial_rows import initial_semijoins
from penstock.joins.point_arrays import CodeArray
from penstock.joins.points import SpacePoints
from penstock.joins.scheme import StepByStep
from penstock.joins.semijoin import base_row_message, neighbours
from penstock.messages import Message, Point, PointId, Position, Reach, Reaches
from penstock.predicates.boxes import contains, interval_of
from penstock.predicates.codes import Codes
from penstock.predicates.intervals import BOTTOM, EVERYTHING, TOP, Interval, above, below


class ClusterIndex:
    """The stabbing-set index of a space, over the base column that most points constrain.

    It has its own codes. A new point whose ends are among their constants is inserted; any other
    point makes the next query rebuild the index.
    """

    def __init__(self, points: SpacePoints) -> None:
        self._points = points
        self._build()

    def _build(self) -> None:
        points = self._points
        self.column = points.main_column
        filters, base = points.filters, points.base_ranges(self.column)
        self.codes, self._base_codes = filters.codes, base.codes
        columns = (filters.low, filters.high, base.low, base.high)
        self.stabbing = StabbingIndex(np.stack(columns, axis=1))
        self.low, self.high = filters.low, filters.high
        self._ids: list[PointId] = list(points.ids)
        self._numbers: dict[PointId, int] | None = None
        self._is_stale = False
        self._built_points = len(points)

    def current(self) -> ClusterIndex:
        if self._is_stale:
            self._build()
        return self

    def add(self, point: Point) -> None:
        base = EVERYTHING if self.column is None else interval_of(point.base, self.column)
        codes = (_known(self.codes, point.filter), _known(self._base_codes, base))
        if self._points.has_outgrown(self.column, self._built_points):
            self._is_stale = True
        if self._is_stale or codes[0] is None or codes[1] is None:
            self._is_stale = True
            return
        self._by_id()[point.id] = self.stabbing.insert(*codes[0], *codes[1])
        self._ids.append(point.id)
        self.low = np.append(self.low, codes[0][0])
        self.high = np.append(self.high, codes[0][1])

    def remove(self, point: Point) -> None:
        if not self._is_stale:
            self.stabbing.delete(self._by_id().pop(point.id))

    def affected(self, row: Row, partners: CodeArray) -> CodeArray:
        """The numbers of the points that select the row and contain a partner's value."""
        numbers = self.stabbing.affected(partners, self.base_code(row))
        if self._points.constrained_columns <= 1:
            return numbers
        table = self._points.base
        boxes = (self._points[self._ids[number]].base for number in numbers.tolist())
        return numbers[[contains(box, table, row) for box in boxes]]

    def base_code(self, row: Row) -> int:
        return self._base_codes.value(self._points.base_key(self.column, row))

    def partner_codes(self, rows: Iterable[Row]) -> CodeArray:
        values = {self.codes.value(self._points.attribute(row)) for row in rows}
        return np.array(sorted(values), np.int64)

    def _by_id(self) -> dict[PointId, int]:
        if self._numbers is None:
            self._numbers = {point_id: i for i, point_id in enumerate(self._ids)}
        return self._numbers


def _known(codes: Codes, interval: Interval) -> tuple[int, int] | None:
    """The range of codes of an interval, if its ends are among the constants."""
    low, high = codes.interval(interval)
    if low > high or codes.low_cut(low) != interval.low or codes.high_cut(high) != interval.high:
        return None
    return low, high


class ClusterScheme(StepByStep):
    """Regions for both kinds of message, computed from clusters."""

    name: str

    def messages(
        self, group: Group, step: GroupStep, spaces: Iterable[SpacePoints]
    ) -> Iterator[Message]:
        for points in spaces:
            index = points.index(ClusterIndex).current()
            if points.space.side == step.side:
                yield from self._of_base_row(group, step, points, index)
            else:
                yield from _of_joining_rows(group, step, points, index)

    def initial(
        self, position: Position, groups: Iterable[Group], points: SpacePoints
    ) -> Iterator[Message]:
        return initial_semijoins(position, groups, points)

    @abstractmethod
    def reaches(
        self, points: SpacePoints, index: ClusterIndex, row: Row, partners: Iterable[Row]
    ) -> Reaches:
        """A descriptive skyline for a base row and the rows it joins, at least one."""

    def _of_base_row(
        self, group: Group, step: GroupStep, points: SpacePoints, index: ClusterIndex
    ) -> Iterator[Message]:
        partners = group.sides[1 - step.side].values()
        if not partners:
            return
        upsert, remove = (
            () if row is None else self.reaches(points, index, row, partners)
            for row in (step.new, step.old)
        )
        if upsert or remove:
            yield base_row_message(step, points, upsert, remove)


def reaches_of(codes: Codes, xs: Iterable[int], ys: Iterable[int]) -> Reaches:
    """Skyline points in codes as reaches."""
    return tuple(
        Reach(BOTTOM, codes.low_cut(x), codes.high_cut(y), TOP) for x, y in zip(xs, ys, strict=True)
    )


def cluster_reaches(
    index: ClusterIndex, row: Row, partners: Iterable[Row], *, merged: bool
) -> Reaches:
    """The cluster-based skyline for one row."""
    values = np.array([index.base_code(row)], np.int64)
    codes = index.partner_codes(partners)
    _, xs, ys = index.stabbing.skylines(codes, values, merged=merged)
    return reaches_of(index.codes, xs.tolist(), ys.tolist())


def _of_joining_rows(
    group: Group, step: GroupStep, points: SpacePoints, index: ClusterIndex
) -> Iterator[Message]:
    mates = [points.attribute(r) for k, r in group.sides[step.side].items() if k != step.key]
    new = [] if step.new is None else [points.attribute(step.new)]
    old = [] if step.old is None else [points.attribute(step.old)]
    if new == old:
        return
    joining = group.sides[1 - step.side]
    upserts = _exposed(index, new, mates + old, joining)
    removes = _exposed(index, old, mates + new, joining)
    for key in dict.fromkeys([*upserts, *removes]):
        upsert, remove, row = upserts.get(key), removes.get(key), joining[key]
        yield Message(
            Position(step.offset, step.step),
            points.space.id,
            key,
            row=row if upsert else None,
            upsert=(upsert,) if upsert else (),
            old=None if upsert else points.mentioned(row),
            remove=(remove,) if remove else (),
        )


def _exposed(
    index: ClusterIndex,
    value: list[Key | None],
    mates: list[Key | None],
    joining: dict[RowKey, Row],
) -> dict[RowKey, Reach]:
    """The joining rows that the value makes visible to some point (or hides), with their reach."""
    if not value:
        return {}
    before, after = neighbours(value[0], mates)
    x = NOWHERE_BELOW if before is None else index.codes.value(before[0])
    y = NOWHERE_ABOVE if after is None else index.codes.value(after[0])
    ranges = index.stabbing.exposed(x, index.codes.value(value[0]), y)
    if not ranges:
        return {}
    reach = Reach(
        BOTTOM if before is None else above(before[0]),
        below(value[0]),
        above(value[0]),
        TOP if after is None else below(after[0]),
    )
    coded = ((key, index.base_code(row)) for key, row in joining.items())
    return {key: reach for key, c in coded if any(low <= c <= high for low, high in ranges)}
