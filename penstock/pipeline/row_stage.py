"""The second stage: one bucket of the rows of all tables.

It resolves changes against the rows, answers subscriptions over one table, and sends what happens
to groups on to the buckets of those groups. What new subscriptions need comes first, from the rows
as they were before the batch.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.engine.stages import Located, RowStage
from penstock.errors import ChangeError
from penstock.joins import GroupStep, JoinValue
from penstock.messages import Message, Told, encode_messages
from penstock.pipeline.bodies import ChangeBody, change_of, decode_changes, group_place, step_body
from penstock.pipeline.rows import (
    AnyRow,
    Inbox,
    Reason,
    RowBuffer,
    RowKind,
    Span,
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
    _carry_out(bucket, span, inbox.decoded(RowKind.CHANGE, decode_changes), stage, view, out)
    return out


def _welcome(bucket: int, span: Span, stage: RowStage, view: View, out: RowBuffer) -> None:
    """What new subscriptions need of the rows that are there."""
    arrivals = view.arrivals(span)
    for edge in arrivals.edges:
        add_steps(RowKind.SEED, stage.seed(span.start, edge), out)
    for new in arrivals.selections(view.index):
        add_messages(bucket, stage.initial(span.start, new), out)


def _carry_out(
    bucket: int,
    span: Span,
    changes: Iterable[tuple[int, int, ChangeBody]],
    stage: RowStage,
    view: View,
    out: RowBuffer,
) -> None:
    catalog = view.catalog(span.end)
    resolved: list[Located] = []
    for offset, _, body in changes:
        try:
            located = stage.resolve(offset, change_of(body, catalog))
        except ChangeError as error:
            out.add(bucket, RowKind.BAD, offset, Reason.of(error).to_bytes())
            continue
        if located is not None:
            resolved.append(located)
    told: list[Message] = []
    steps: list[GroupStep] = []
    for consequence in stage.consequences(resolved):
        if isinstance(consequence, Message):
            told.append(consequence)
        else:
            steps.append(consequence)
    add_messages(bucket, told, out)
    add_steps(RowKind.STEP, steps, out)


def add_steps(kind: RowKind, steps: Iterable[GroupStep], out: RowBuffer) -> None:
    """Send steps to the buckets of their groups."""
    of_group: dict[tuple[str, JoinValue], list[AnyRow]] = {}
    for step in steps:
        edge, value = step.edge, step.value
        rows = of_group.get((edge.name, value))
        if rows is None:
            rows = out.rows(bucket_of(group_place(edge, value)), kind)
            of_group[edge.name, value] = rows
        rows.append((step.offset, step.step, step_body(step)))


def add_messages(bucket: int, messages: Iterable[Told], out: RowBuffer) -> None:
    out.rows(bucket, RowKind.MESSAGE).extend(encode_messages(messages))
