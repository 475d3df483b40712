"""The second stage: one bucket of the rows of all tables.

It resolves changes against the rows, answers subscriptions over one table, and sends what happens
to groups on to the buckets of those groups. What new subscriptions need comes first, from the rows
as they were before the batch.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.engine.stages import Located, RowStage
from penstock.errors import ChangeError
from penstock.joins import GroupStep
from penstock.messages import Message, encode_message
from penstock.pipeline.bodies import group_place, pack_step, unpack_change
from penstock.pipeline.rows import (
    Inbox,
    Reason,
    RowBuffer,
    RowKind,
    Span,
    StageRow,
    bucket_of,
)
from penstock.pipeline.state.stores import StoredRows
from penstock.pipeline.view import View


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
    _carry_out(bucket, span, inbox.rows(RowKind.CHANGE), stage, view, out)
    return out


def _welcome(bucket: int, span: Span, stage: RowStage, view: View, out: RowBuffer) -> None:
    """What new subscriptions need of the rows that are there."""
    arrivals = view.arrivals(span)
    for edge in arrivals.edges:
        for step in stage.seed(span.start, edge):
            add_step(RowKind.SEED, step, out)
    for new in arrivals.selections(view.index):
        for message in stage.initial(span.start, new):
            add_message(bucket, message, out)


def _carry_out(
    bucket: int,
    span: Span,
    changes: Iterable[StageRow],
    stage: RowStage,
    view: View,
    out: RowBuffer,
) -> None:
    catalog = view.catalog(span.end)
    resolved: list[Located] = []
    for row in changes:
        try:
            located = stage.resolve(row.offset, unpack_change(row.body, catalog))
        except ChangeError as error:
            out.add(bucket, RowKind.BAD, row.offset, Reason.of(error).to_bytes())
            continue
        if located is not None:
            resolved.append(located)
    for consequence in stage.consequences(resolved):
        if isinstance(consequence, Message):
            add_message(bucket, consequence, out)
        else:
            add_step(RowKind.STEP, consequence, out)


def add_step(kind: RowKind, step: GroupStep, out: RowBuffer) -> None:
    bucket = bucket_of(group_place(step.edge, step.value))
    out.add(bucket, kind, step.offset, pack_step(step), step.step)


def add_message(bucket: int, message: Message, out: RowBuffer) -> None:
    offset, step = message.position
    out.add(bucket, RowKind.MESSAGE, offset, encode_message(message), step)
