"""The consequences of changed rows: messages for subscriptions over one table, steps of groups.

In both gears, for tables and streams alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.flow.changes import Delta
from penstock.flow.derived import extended_deltas, halved_deltas
from penstock.flow.exchange import StageOutput
from penstock.flow.group_steps import FIRST_STEP
from penstock.flow.kinds import Kind
from penstock.flow.plain import consequences, selection_messages, steps_of

if TYPE_CHECKING:
    from penstock.flow.packed.rows import EventDeltas, PackedDeltas
    from penstock.flow.stage import BatchView


def emit_consequences(
    deltas: Iterable[Delta], view: BatchView, bucket: int, out: StageOutput
) -> None:
    """Emit the messages and steps of changes of tables and of derived relations."""
    if view.silent:
        out.add_steps(Kind.STEP, steps_of(view.index, deltas))
        return
    messages, steps = consequences(view.index, deltas)
    out.add_messages(bucket, messages)
    out.add_steps(Kind.STEP, steps)


def emit_packed_consequences(
    deltas: PackedDeltas | EventDeltas, view: BatchView, bucket: int, out: StageOutput
) -> None:
    """`emit_consequences` for changes of packed rows of one relation."""
    _emit_packed(deltas, view, bucket, out)
    extended = view.index.derived.always_extended(deltas.relation) if len(deltas) else []
    fast = [r for r in extended if view.plan.derived(r.name, len(deltas)).is_fast]
    others = [r for r in extended if r not in fast]
    if fast:
        from penstock.expressions.database import FAILURES_OF_ROWS
        from penstock.flow.packed.derived_rows import extended_packed

        try:
            derived = list(extended_packed(deltas.packed(), fast))
        except FAILURES_OF_ROWS:
            derived, others = [], extended  # falls back to one row at a time
        for one in derived:
            _emit_packed(one, view, bucket, out)
    if others:
        found = extended_deltas(others, deltas.objects())
        found += halved_deltas(view.index, found)
        emit_consequences(found, view, bucket, out)


def _emit_packed(
    deltas: PackedDeltas | EventDeltas, view: BatchView, bucket: int, out: StageOutput
) -> None:
    relation, index = deltas.relation, view.index
    selections = index.selections(relation)
    if selections is not None:
        if view.plan.selections(relation.name, len(deltas)).is_fast:
            from penstock.flow.packed.selection_messages import packed_selection_messages

            offsets, messages = packed_selection_messages(deltas, selections)
            out.add_packed_messages(bucket, offsets, FIRST_STEP, messages)
        else:
            out.add_messages(bucket, selection_messages(deltas.objects(), selections))
    edges = index.edges_of(relation)
    if edges:
        from penstock.flow.packed.delta_steps import packed_steps

        packed = deltas.packed()
        for edge in edges:
            steps = packed_steps(packed, edge, len(view.spread.buckets))
            out.add_packed(Kind.STEP, steps.rows, steps.places)
    if index.derived.halves(relation):
        emit_consequences(halved_deltas(index, deltas.objects()), view, bucket, out)
