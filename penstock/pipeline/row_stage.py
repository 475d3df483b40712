"""The second stage: one bucket of the rows of all tables.

It resolves changes against the rows, answers subscriptions over one table, and sends what happens
to groups on to the buckets of those groups. What new subscriptions need comes first, from the rows
as they were before the batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.catalog import Catalog, Relation
from penstock.errors import ChangeError
from penstock.flow.changes import Checked, Delta
from penstock.flow.faults import RecordFaultError, is_fault
from penstock.flow.group_steps import FIRST_STEP, EdgeSteps
from penstock.flow.index import Index
from penstock.flow.packed.delta_steps import STEPS_AT_ONCE, is_joined_by_bytes, packed_steps
from penstock.flow.packed.rows import PackedDeltas, SentChanges, packed_forms
from penstock.flow.packed.selection_messages import packed_selection_messages
from penstock.flow.stages import RowStage, selection_messages
from penstock.joins import GroupSteps, StepsByEdge
from penstock.joins.selections import SCANNED_ROWS
from penstock.messages import AnyMessage, encode_messages
from penstock.pipeline.rows import (
    BUCKETS,
    Reason,
    RowKind,
    Span,
    StageInput,
    StageOutput,
    bucket_of,
)
from penstock.pipeline.shuffle_codec import ChangeRow, decode_changes, group_place
from penstock.pipeline.state.stores import StoredRows
from penstock.pipeline.worker_index import WorkerIndex


def advance_rows(
    bucket: int, inbox: StageInput, store: StoredRows, view: WorkerIndex, *, plain: bool = False
) -> StageOutput:
    """Bring one bucket through one batch; returns the rows for the next stage. `plain`: all changes
    are carried out one by one."""
    (tick,) = inbox.rows(RowKind.TICK)
    out = StageOutput()
    out.add(bucket, RowKind.TICK, tick.offset, tick.body)
    out.forward(bucket, inbox, RowKind.BAD, RowKind.SKIPPED, RowKind.FAULT)
    out.forward(bucket, inbox, RowKind.MESSAGE, RowKind.STEP)
    span = Span.from_bytes(tick.body)
    view.move_to(span.active, span.end)
    stage = RowStage(store, view.index)
    _emit_initial(bucket, span, stage, view, out)
    for events in inbox.rows(RowKind.EVENTS):
        store.keep_events(events.offset, events.body)
    catalog = view.catalog(span.end)
    if plain:
        every = inbox.decoded(RowKind.CHANGE, decode_changes)
        _carry_out_each(bucket, {one.name: one for one in catalog}, every, stage, out)
    else:
        _carry_out(bucket, catalog, inbox, store, view.index, out)
    return out


def _emit_initial(
    bucket: int, span: Span, stage: RowStage, view: WorkerIndex, out: StageOutput
) -> None:
    """What new subscriptions need of the rows that are there."""
    arrivals = view.arrivals(span)
    for edge in arrivals.edges:
        add_steps(RowKind.SEED, {edge: stage.seed(span.start, edge)}, out)
    for new in arrivals.selections:
        add_messages(bucket, stage.initial(span.start, new), out)


def _carry_out(
    bucket: int,
    catalog: Catalog,
    inbox: StageInput,
    store: StoredRows,
    index: Index,
    out: StageOutput,
) -> None:
    """Resolve changes and tell what follows: nearly all as they are packed, the others one by
    one."""
    known, changes = packed_forms(catalog), SentChanges(inbox.chunks(RowKind.CHANGE))
    for deltas, refused in changes.carry_out(known, store):
        for offset, why in refused:
            out.add(bucket, RowKind.BAD, offset, Reason.of(why).to_bytes())
        _tell_packed(bucket, deltas, index, out)
    others = {name: catalog[name] for name in changes.tables if name not in known}
    if others:
        every = inbox.decoded(RowKind.CHANGE, decode_changes)
        _carry_out_each(bucket, others, every, RowStage(store, index), out)


def _tell_packed(bucket: int, deltas: PackedDeltas, index: Index, out: StageOutput) -> None:
    """What changes lead to that were made on packed rows."""
    selections = index.selections(deltas.relation)
    if selections is not None:
        # Of a few rows, points may be looked through without making a matcher of them.
        if len(deltas) <= SCANNED_ROWS:
            add_messages(bucket, selection_messages(deltas.objects(), selections), out)
        else:
            offsets, messages = packed_selection_messages(deltas, selections)
            out.tell(bucket, offsets, FIRST_STEP, messages)
    tell_groups(deltas, index, out)


def tell_groups(deltas: PackedDeltas, index: Index, out: StageOutput) -> None:
    """Send what changes do to groups to the buckets of these groups."""
    relation = deltas.relation
    for edge in index.edges_of(relation):
        if is_joined_by_bytes(edge, relation):
            steps = packed_steps(deltas, edge, len(BUCKETS))
            out.deal(RowKind.STEP, steps.rows, steps.places)
        else:
            groups: GroupSteps = {}
            EdgeSteps(relation, edge).add(deltas.objects(), groups)
            add_steps(RowKind.STEP, {edge: groups}, out)


def _carry_out_each(
    bucket: int,
    relations: Mapping[str, Relation],
    changes: Iterable[ChangeRow],
    stage: RowStage,
    out: StageOutput,
) -> None:
    """The changes of some relations, one by one."""
    resolved: list[Delta] = []
    for offset, name, op, key, row, given in changes:
        if name not in relations:
            continue
        try:
            delta = stage.resolve(offset, Checked(relations[name], op, key, row, given))
        except ChangeError as error:
            out.add(bucket, RowKind.BAD, offset, Reason.of(error).to_bytes())
            continue
        except Exception as error:
            raise RecordFaultError(offset, error) if is_fault(error) else error from error
        if delta is not None:
            resolved.append(delta)
    messages, steps = stage.consequences(resolved)
    add_messages(bucket, messages, out)
    add_steps(RowKind.STEP, steps, out)


def add_steps(kind: RowKind, steps: StepsByEdge, out: StageOutput) -> None:
    """Send steps to the buckets of their groups."""
    for edge, groups in steps.items():
        for value, mine in groups.items():
            rows = out.rows(bucket_of(group_place(edge, value)), kind)
            for first in range(0, len(mine), STEPS_AT_ONCE):
                rows.append((edge.name, value, mine[first : first + STEPS_AT_ONCE]))


def add_messages(bucket: int, messages: Iterable[AnyMessage], out: StageOutput) -> None:
    out.rows(bucket, RowKind.MESSAGE).extend(encode_messages(messages))
