"""What the source makes of events: changes that fit the catalog, or entries for the quarantine.

Nearly all events are plain. They are read column by column, and packed for the next stage without
becoming objects (`penstock.flow.columnar`); the others one by one.

What an event of a stream without a key means follows from the event and the subscriptions alone. So
it is told here, many at a time, and only kept further down, for subscriptions to come.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from penstock.catalog import Row
from penstock.errors import ChangeError, NoChangeError
from penstock.flow.columnar import PlainColumns, column_reader
from penstock.flow.events import read_change
from penstock.flow.faults import RecordFaultError, is_fault
from penstock.flow.group_steps import FIRST_STEP
from penstock.flow.packed.rows import event_deltas
from penstock.flow.streams import event_messages, event_steps, is_keyless_stream
from penstock.messages import EVERYONE, event_template
from penstock.pipeline.row_stage import add_messages, add_steps, tell_groups
from penstock.pipeline.rows import (
    BUCKETS,
    CHUNK_BYTES,
    CHUNK_ROWS,
    Reason,
    RowKind,
    Span,
    StageOutput,
    bucket_of,
)
from penstock.pipeline.shuffle_codec import change_row, row_place
from penstock.pipeline.state.streams import pack_events, packed_events
from penstock.pipeline.worker_index import WorkerIndex


class Events(NamedTuple):
    """Some events of a batch."""

    offsets: list[int]
    bodies: list[bytes]


def ticks(span: Span) -> StageOutput:
    """What tells the buckets of the batch; once for each batch."""
    out = StageOutput()
    for bucket in BUCKETS:
        out.add(bucket, RowKind.TICK, span.start, span.to_bytes())
    return out


def decode(events: Events, span: Span, view: WorkerIndex, *, plain: bool = False) -> StageOutput:
    """What events of a batch mean; `plain`: all of them read one by one."""
    out = StageOutput()
    events = _without_refused(events, span, view, out)
    # Relations are known from the offset of their record on, and are never changed. So one catalog,
    # of the end of the batch, serves all events.
    catalog = view.catalog(span.end)
    if plain:
        _decode_each(zip(events.offsets, events.bodies, strict=True), span, view, out)
        return out
    read, others = column_reader(catalog).read(events.offsets, events.bodies)
    for columns in read:
        if is_keyless_stream(columns.relation):
            view.move_to(span.active, span.end)
            _tell_columns(columns, view, out)
            _keep_columns(columns, out)
        else:
            _send_columns(columns, out)
    _decode_each([(events.offsets[i], events.bodies[i]) for i in others], span, view, out)
    return out


def _without_refused(events: Events, span: Span, view: WorkerIndex, out: StageOutput) -> Events:
    """The events without those that are not to be applied, whatever they mean."""
    refused = view.not_applied(span)
    found = refused.keys() & set(events.offsets) if refused else ()
    if not found:
        return events
    for offset in sorted(found):
        out.add(_any_bucket(offset), RowKind.BAD, offset, Reason.of(refused[offset]).to_bytes())
    kept = [i for i, offset in enumerate(events.offsets) if offset not in found]
    return Events([events.offsets[i] for i in kept], [events.bodies[i] for i in kept])


def _tell_columns(events: PlainColumns, view: WorkerIndex, out: StageOutput) -> None:
    """What events that need no rows mean."""
    selections = view.index.selections(events.relation)
    if selections is not None:
        any_match = selections.any_match_in(events.batch(selections.mentioned_columns))
        chosen = np.flatnonzero(any_match)
        template = event_template(FIRST_STEP, selections.space.id, EVERYONE)
        bucket = _any_bucket(int(events.offsets[0]))
        out.tell(
            bucket, events.offsets[chosen], FIRST_STEP, events.packed_messages(chosen, template)
        )
    if view.index.edges_of(events.relation):
        tell_groups(event_deltas(events), view.index, out)


def _keep_columns(events: PlainColumns, out: StageOutput) -> None:
    """Send events to where they are kept, many in one piece."""
    packed = events.packed_events()
    for first, last in packed.pieces(CHUNK_ROWS, CHUNK_BYTES):
        offset = int(events.offsets[first])
        body = packed_events(events.relation.name, packed.array(first, last))
        out.add(_any_bucket(offset // CHUNK_ROWS), RowKind.EVENTS, offset, body)


def _send_columns(events: PlainColumns, out: StageOutput) -> None:
    """Send changes to the buckets of their rows."""
    places = events.key_hashes() % len(BUCKETS)  # as `bucket_of` has it
    order = np.argsort(places, kind="stable")
    out.deal(RowKind.CHANGE, events.packed_changes(order), places[order])


def _decode_each(
    events: Iterable[tuple[int, bytes]], span: Span, view: WorkerIndex, out: StageOutput
) -> None:
    """What events mean that are not plain, or are not events at all."""
    catalog = view.catalog(span.end)
    of_streams: dict[str, list[tuple[int, Row]]] = {
        r.name: [] for r in catalog if is_keyless_stream(r)
    }
    for offset, body in events:
        try:
            checked = read_change(body, catalog, offset)
        except NoChangeError:
            out.add(_any_bucket(offset), RowKind.SKIPPED, offset, b"")
            continue
        except ChangeError as error:
            out.add(_any_bucket(offset), RowKind.BAD, offset, Reason.of(error).to_bytes())
            continue
        except Exception as error:
            raise RecordFaultError(offset, error) if is_fault(error) else error from error
        relation, _, key, row, _ = checked
        kept = of_streams.get(relation.name)
        if kept is None:
            bucket = bucket_of(row_place(relation.name, key))
            out.rows(bucket, RowKind.CHANGE).append(change_row(offset, checked))
        else:
            kept.append((offset, row))
    for name, kept in of_streams.items():
        if kept:
            view.move_to(span.active, span.end)
            bucket = _any_bucket(kept[0][0])
            add_messages(bucket, event_messages(view.index, catalog[name], kept), out)
            add_steps(RowKind.STEP, event_steps(view.index, catalog[name], kept), out)
            _keep(name, kept, out)


def _keep(stream: str, events: list[tuple[int, Row]], out: StageOutput) -> None:
    for first in range(0, len(events), CHUNK_ROWS):
        part = events[first : first + CHUNK_ROWS]
        bucket = _any_bucket(part[0][0] // CHUNK_ROWS)
        out.add(bucket, RowKind.EVENTS, part[0][0], pack_events(stream, part))


def _any_bucket(number: int) -> int:
    """For what could go to any: to each by turns."""
    return BUCKETS[number % len(BUCKETS)]
