"""The fast gear of `ref-sj-gap`: all steps of all groups of an edge in one call per space."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from penstock.joins.kernels.gap_steps import StepOps
from penstock.joins.kernels.gap_steps_many import ManyEffects, SideRows, apply_steps_many
from penstock.joins.packed.coding import codes_of, rank_values
from penstock.joins.packed.groups import GroupRun
from penstock.joins.packed.interface import Columns, PositionedMessages, RowReader
from penstock.joins.packed.messages import FilterValues, space_messages
from penstock.joins.points import SpacePoints
from penstock.joins.shadow_index import ShadowIndex


class PackedGap:
    """Stateless: everything derived from points is in their `ShadowIndex`."""

    def obstacle(self, points: SpacePoints) -> str:
        index = points.index(ShadowIndex)
        index.refresh()
        if points.has_envelopes:
            return "it filters by several columns"
        if index.only_segment is None:
            return "its points are in several segments"
        return ""

    def advance(
        self, run: GroupRun, spaces: Iterable[SpacePoints], rows: RowReader
    ) -> list[tuple[int, PositionedMessages]]:
        spaces = list(spaces)
        sides = [_columns(run, side, spaces, rows) for side in (0, 1)]
        found = []
        for points in spaces:
            effects, filters = _space_effects(run, points, sides)
            space, columns = points.space.id, points.sorted_columns
            found.append((space, space_messages(run, space, columns, effects, filters)))
        return found


def _columns(run: GroupRun, side: int, spaces: Iterable[SpacePoints], rows: RowReader) -> Columns:
    """The columns, in all rows of a side, that conditions of points read."""
    columns = {
        column
        for points in spaces
        for column in _some(
            points.index(ShadowIndex).column
            if points.space.side == side
            else points.space.attribute
        )
    }
    begin = run.table.begin[side]
    where = run.table.rows.begin[begin[0] : begin[-1]]
    return rows.read(run.edge.sides[side].table, run.heap, where, columns)


def _space_effects(
    run: GroupRun, points: SpacePoints, sides: Sequence[Columns]
) -> tuple[ManyEffects, FilterValues]:
    """The effects of the steps on the points of one space, given the columns that these read."""
    space, index, table = points.space, points.index(ShadowIndex), run.table
    segment = index.only_segment
    assert segment is not None
    base, others = sides[space.side], sides[1 - space.side]
    attribute = None if space.attribute is None else others.keys(space.attribute)
    column = None if index.column is None else base.keys(index.column)
    values = rank_values(attribute, len(others))
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
    # Row numbers run through both sides, left first; steps are grouped.
    assert len(all_codes) == len(table.rows.begin) == table.begin[1, -1]
    assert len(table.new) == len(table.old) == len(run.steps.sides) == run.begin[-1]
    base_rows, filter_rows = (
        SideRows(all_codes, values.ranks, table.begin[side], table.there[side])
        for side in (space.side, 1 - space.side)
    )
    ops = StepOps(run.steps.sides == space.side, table.new, table.old)
    effects = apply_steps_many(segment.point_tree, base_rows, filter_rows, ops, run.begin)
    return effects, FilterValues(all_codes, values)


def _some(column: int | None) -> tuple[int, ...]:
    return () if column is None else (column,)
