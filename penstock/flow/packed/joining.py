"""Steps of packed groups, and the messages that they lead to: a `JoinStage` without objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penstock.flow.columnar.columns import Packed, PlainColumns
from penstock.flow.columnar.layout import Ints
from penstock.flow.index import Index
from penstock.flow.packed.coding import codes_of, ranked
from penstock.flow.packed.group_steps_codec import SentSteps
from penstock.flow.packed.groups import GroupRun, PackedGroups
from penstock.flow.packed.join_messages import Filters, ToldPacked, space_messages
from penstock.flow.packed.project import opened
from penstock.flow.packed.spans import Spans, gather
from penstock.flow.plan import ExecutionPlan
from penstock.joins import Scheme, SpacePoints
from penstock.joins.kernels.gap_steps import StepOps
from penstock.joins.kernels.gap_steps_many import Courses, SideRows, apply_steps_many
from penstock.joins.shadow_index import ShadowIndex
from penstock.messages import AnyMessage
from penstock.packing import pack
from penstock.spaces import Edge


class ToldOfGroups(NamedTuple):
    """Messages, packed where possible."""

    packed: ToldPacked | None
    others: list[AnyMessage]


@dataclass(frozen=True, slots=True)
class PackedJoins:
    """Brings the groups of some edges through the steps of a batch."""

    index: Index
    plan: ExecutionPlan
    store: PackedGroups
    scheme: Scheme
    """For spaces that are not for the kernels."""

    def run(self, sent: SentSteps, edges: Mapping[str, Edge]) -> ToldOfGroups:
        """Take the steps of these edges."""
        told: list[tuple[bytes, ToldPacked]] = []
        others: list[AnyMessage] = []
        for number, name in enumerate(sent.edges):
            if name in edges:
                run = GroupRun.of(edges[name], sent.data, *sent.of_edge(number), self.store)
                run.store(self.store)
                spaces = self.index.on_edge(run.edge)
                usual = [points for points in spaces if self.plan.space(points).is_fast]
                told += self._tell(run, usual)
                others += self._tell_others(run, [one for one in spaces if one not in usual])
        return ToldOfGroups(_united(told), others)

    def _tell(
        self, run: GroupRun, spaces: Sequence[SpacePoints]
    ) -> Iterator[tuple[bytes, ToldPacked]]:
        """The messages of each space, with its packed number."""
        sides = [self._opened(run, side, spaces) for side in (0, 1)]
        for points in spaces:
            space = points.space.id
            found, filters = _play(run, points, sides)
            yield pack(space), space_messages(run, space, points.sorted_columns, found, filters)

    def _tell_others(self, run: GroupRun, spaces: Sequence[SpacePoints]) -> Iterator[AnyMessage]:
        if spaces:
            for group, steps in run.objects():
                yield from self.scheme.run(group, steps, spaces)

    def _opened(self, run: GroupRun, side: int, spaces: Sequence[SpacePoints]) -> PlainColumns:
        """The columns of all rows of a side that points look at."""
        columns = {
            column
            for points in spaces
            for column in _some(
                points.index(ShadowIndex).column
                if points.space.side == side
                else points.space.attribute
            )
        }
        table, begin = run.edge.sides[side].table, run.table.begin[side]
        rows = run.table.rows.begin[begin[0] : begin[-1]]
        forms = self.plan.forms
        return opened(forms.relations[table], forms[table], run.heap, rows, columns)


def _play(
    run: GroupRun, points: SpacePoints, sides: Sequence[PlainColumns]
) -> tuple[Courses, Filters]:
    """What the steps mean to the points of one space, whose columns have been opened."""
    space, index, table = points.space, points.index(ShadowIndex), run.table
    segment = index.only_segment
    assert segment is not None
    base, others = sides[space.side], sides[1 - space.side]
    attribute = None if space.attribute is None else others.keys(space.attribute)
    column = None if index.column is None else base.keys(index.column)
    values = ranked(attribute, len(others))
    codes = [
        codes_of(column, segment.base_value_codes, len(base)),
        codes_of(attribute, segment.filter_codes, len(others)),
    ]
    if space.side:  # rows of the left side have the lower numbers
        codes.reverse()
    else:
        before = np.zeros(len(base), np.int64)
        values = values._replace(
            ranks=np.concatenate([before, values.ranks]),
            keys=np.concatenate([before, values.keys]),
        )
    all_codes = np.concatenate(codes)
    mine, theirs = (
        SideRows(all_codes, values.ranks, table.begin[side], table.there[side])
        for side in (space.side, 1 - space.side)
    )
    script = StepOps(run.steps.sides == space.side, table.new, table.old)
    found = apply_steps_many(segment.wishes_in_codes, mine, theirs, script, run.begin)
    return found, Filters(all_codes, values)


def _some(column: int | None) -> tuple[int, ...]:
    return () if column is None else (column,)


def _united(told: list[tuple[bytes, ToldPacked]]) -> ToldPacked | None:
    """The messages of several spaces in one order. Those of one position differ first in the
    packed numbers of their spaces."""
    told.sort(key=lambda one: one[0])
    parts = [one for _, one in told if len(one.offsets)]
    if len(parts) < 2:
        return parts[0] if parts else None
    offsets, steps = (np.concatenate([part[i] for part in parts]) for i in range(2))
    order = np.lexsort((steps, offsets))
    data = np.concatenate([part.messages.data for part in parts])
    gathered = gather(data, _spans([part.messages for part in parts]).take(order))
    return ToldPacked(offsets[order], steps[order], Packed(*gathered))


def _spans(parts: Sequence[Packed]) -> Spans:
    """Where the values of all parts are, if one part lies behind the other."""
    sizes: Ints = np.concatenate([np.diff(part.ends, prepend=0) for part in parts])
    ends = np.cumsum(sizes)
    return Spans(ends - sizes, ends)
