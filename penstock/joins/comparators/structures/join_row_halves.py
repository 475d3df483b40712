"""Base of the schemes that send join rows.

A join row of an edge is sent as two messages, one for the spaces based on each side: this half of
the row, and the key of the other half, its `partner`. A client holds a row while it knows a partner
of it, so halves are independent and can come in any order within a step. Together the two halves
have the attributes of the join row, which is how their bytes are counted. For a query over two
tables that is the join itself; for one over more tables it is the join along the edge that filters
each table, and the client joins what it holds, as for semijoins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from penstock.catalog import Row, RowKey
from penstock.joins.group import Group, GroupStep
from penstock.joins.point_arrays import Mask
from penstock.joins.points import SpacePoints
from penstock.joins.scheme import Family, StepByStep
from penstock.messages import Envelope, Message, Position, Reach, Vector
from penstock.predicates.intervals import BOTTOM, TOP, above, below


@dataclass(frozen=True, slots=True)
class HalfVersion:
    """One half of a join row before or after a step: the row, and its partner's filter values."""

    row: Row
    vector: Vector

    def reach(self) -> Reach | Envelope:
        """The filters that contain the partner's values."""
        first, *more = (
            Reach(BOTTOM, below(value), above(value), TOP) for value in self.vector or (None,)
        )
        return Envelope((first, *more)) if more else first

    def wanted_by(self, points: SpacePoints) -> Mask:
        return points.selecting(self.row) & points.admitting(self.vector)


@dataclass(frozen=True, slots=True)
class HalfChange:
    """What a step does to one half of one join row."""

    key: RowKey
    partner: RowKey
    old: HalfVersion | None
    new: HalfVersion | None


def half_changes(group: Group, step: GroupStep, points: SpacePoints) -> Iterator[HalfChange]:
    """All halves, for the points of one space, of the join rows that a step creates or removes."""
    for key, row in group.sides[1 - step.side].items():
        if points.space.side == step.side:
            vector = points.vector(row)
            old, new = (
                None if version is None else HalfVersion(version, vector)
                for version in (step.old, step.new)
            )
            yield HalfChange(step.key, key, old, new)
        else:
            old, new = (
                None if version is None else HalfVersion(row, points.vector(version))
                for version in (step.old, step.new)
            )
            yield HalfChange(key, step.key, old, new)


def region_message(step: GroupStep, points: SpacePoints, change: HalfChange) -> Message:
    """The half, addressed to the region of all points that contain the join row's values."""
    old, new = change.old, change.new
    return Message(
        Position(step.offset, step.step),
        points.space.id,
        change.key,
        row=None if new is None else new.row,
        upsert=() if new is None else (new.reach(),),
        old=None if old is None else points.mentioned(old.row),
        remove=() if old is None else (old.reach(),),
        partner=change.partner,
    )


def addressed(
    position: Position,
    points: SpacePoints,
    change: HalfChange,
    row: Row | None,
    mask: Mask,
) -> Iterator[Message]:
    """The half, addressed to exactly the points of a mask; nothing if it is empty."""
    recipients = tuple(points.ids[i] for i in mask.nonzero()[0])
    if recipients:
        yield Message(
            position,
            points.space.id,
            change.key,
            row=row,
            recipients=recipients,
            partner=change.partner,
        )


def initial_pairs(
    position: Position, groups: Iterable[Group], points: SpacePoints
) -> Iterator[Message]:
    """The initial content of new points: join rows, as halves addressed to them."""
    side = points.space.side
    pairs = ((group, one) for group in groups for one in group.sides[1 - side].items())
    for group, (partner, other) in pairs:
        vector = points.vector(other)
        for key, row in group.sides[side].items():
            half = HalfVersion(row, vector)
            change = HalfChange(key, partner, None, half)
            yield from addressed(position, points, change, row, half.wanted_by(points))


class JoinRowScheme(StepByStep):
    """Join rows to regions: `ref-j`, or with `only_wanted` `ref-j+`."""

    name: str
    family = Family.JOIN_ROWS
    only_wanted: bool

    def messages(
        self, group: Group, step: GroupStep, spaces: Iterable[SpacePoints]
    ) -> Iterator[Message]:
        for points in spaces:
            for change in half_changes(group, step, points):
                if not self.only_wanted or _anybody_wants(change, points):
                    yield region_message(step, points, change)

    def initial(
        self, position: Position, groups: Iterable[Group], points: SpacePoints
    ) -> Iterator[Message]:
        return initial_pairs(position, groups, points)


def _anybody_wants(change: HalfChange, points: SpacePoints) -> bool:
    versions = (change.old, change.new)
    return any(half is not None and half.wanted_by(points).any() for half in versions)
