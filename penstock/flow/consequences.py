"""What follows from changed rows: messages to the subscriptions over one table, steps of groups.

In both gears, for tables and streams alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.flow.changes import Delta
from penstock.flow.exchange import StageOutput
from penstock.flow.group_steps import FIRST_STEP, EdgeSteps
from penstock.flow.kinds import Kind
from penstock.flow.plain import consequences, selection_messages, steps_of
from penstock.joins import GroupSteps

if TYPE_CHECKING:
    from penstock.flow.packed.rows import PackedDeltas
    from penstock.flow.stage import BatchView


def emit_consequences(
    deltas: Iterable[Delta], view: BatchView, bucket: int, out: StageOutput
) -> None:
    if view.silent:
        out.add_steps(Kind.STEP, steps_of(view.index, deltas))
        return
    messages, steps = consequences(view.index, deltas)
    out.add_messages(bucket, messages)
    out.add_steps(Kind.STEP, steps)


def emit_packed_consequences(
    deltas: PackedDeltas, view: BatchView, bucket: int, out: StageOutput
) -> None:
    """The same of changes that were made on packed rows of one relation."""
    relation, index = deltas.relation, view.index
    selections = index.selections(relation)
    if selections is not None:
        if view.plan.selections(relation.name, len(deltas)).is_fast:
            from penstock.flow.packed.selection_messages import packed_selection_messages

            offsets, messages = packed_selection_messages(deltas, selections)
            out.add_packed_messages(bucket, offsets, FIRST_STEP, messages)
        else:
            out.add_messages(bucket, selection_messages(deltas.objects(), selections))
    for edge in index.edges_of(relation):
        if view.plan.steps(relation, edge).is_fast:
            from penstock.flow.packed.delta_steps import packed_steps

            steps = packed_steps(deltas, edge, len(view.spread.buckets))
            out.add_packed(Kind.STEP, steps.rows, steps.places)
        else:
            groups: GroupSteps = {}
            EdgeSteps(relation, edge).add(deltas.objects(), groups)
            out.add_steps(Kind.STEP, {edge: groups})
