"""The second stage: one bucket of the rows of all tables.

It resolves changes against the rows, answers subscriptions over one table, and sends what happens
to groups on to the buckets of those groups. What new subscriptions need comes first, from the rows
as they were before the batch.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.catalog import Catalog
from penstock.engine.changes import Checked, Delta
from penstock.engine.stages import RowStage
from penstock.errors import ChangeError
from penstock.joins import StepsByEdge
from penstock.messages import Told, encode_messages
from penstock.pipeline.bodies import ChangeRow, decode_changes, group_place
from penstock.pipeline.rows import (
    Inbox,
    Reason,
    RowBuffer,
    RowKind,
    Span,
    bucket_of,
)
from penstock.pipeline.state.stores import StoredRows
from penstock.pipeline.view import View

STEPS_PER_ROW = 256
"""A group may take all steps of a batch, which must not become one piece of any size."""


def advance_rows(bucket: int, inbox: Inbox, store: StoredRows, view: View) -> RowBuffer:
    """Bring one bucket through one batch; returns the rows for the next stage."""
    (tick,) = inbox.rows(RowKind.TICK)
    out = RowBuffer()
    out.add(bucket, RowKind.TICK, tick.offset, tick.body)
    out.forward(bucket, inbox, RowKind.BAD, RowKind.MESSAGE, RowKind.STEP)
    span = Span.from_bytes(tick.body)
    view.move_to(span.active, span.end)
    stage = RowStage(store, view.index)
    _welcome(bucket, span, stage, view, out)
    for events in inbox.rows(RowKind.EVENTS):
        store.keep_events(events.offset, events.body)
    changes = inbox.decoded(RowKind.CHANGE, decode_changes)
    _carry_out(bucket, view.catalog(span.end), changes, stage, out)
    return out


def _welcome(bucket: int, span: Span, stage: RowStage, view: View, out: RowBuffer) -> None:
    """What new subscriptions need of the rows that are there."""
    arrivals = view.arrivals(span)
    for edge in arrivals.edges:
        add_steps(RowKind.SEED, {edge: stage.seed(span.start, edge)}, out)
    for new in arrivals.selections:
        add_messages(bucket, stage.initial(span.start, new), out)


def _carry_out(
    bucket: int, catalog: Catalog, changes: Iterable[ChangeRow], stage: RowStage, out: RowBuffer
) -> None:
    relations = {relation.name: relation for relation in catalog}
    resolved: list[Delta] = []
    for offset, name, op, key, row, given in changes:
        try:
            delta = stage.resolve(offset, Checked(relations[name], op, key, row, given))
        except ChangeError as error:
            out.add(bucket, RowKind.BAD, offset, Reason.of(error).to_bytes())
            continue
        if delta is not None:
            resolved.append(delta)
    messages, steps = stage.consequences(resolved)
    add_messages(bucket, messages, out)
    add_steps(RowKind.STEP, steps, out)


def add_steps(kind: RowKind, steps: StepsByEdge, out: RowBuffer) -> None:
    """Send steps to the buckets of their groups."""
    for edge, groups in steps.items():
        for value, mine in groups.items():
            rows = out.rows(bucket_of(group_place(edge, value)), kind)
            for first in range(0, len(mine), STEPS_PER_ROW):
                rows.append((edge.name, value, mine[first : first + STEPS_PER_ROW]))


def add_messages(bucket: int, messages: Iterable[Told], out: RowBuffer) -> None:
    out.rows(bucket, RowKind.MESSAGE).extend(encode_messages(messages))
