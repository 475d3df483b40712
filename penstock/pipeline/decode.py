"""The first stage, without state: events to changes that fit the catalog, or to the quarantine.

What an event of a stream without a key means follows from the event and the subscriptions alone. So
it is told here, many at a time, and only kept further down, for subscriptions to come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from penstock.catalog import Relation, Row
from penstock.engine.plain_events import reader_of
from penstock.engine.streams import event_messages, event_steps, needs_no_rows
from penstock.errors import ChangeError
from penstock.pipeline.bodies import change_body, row_place
from penstock.pipeline.row_stage import add_messages, add_steps
from penstock.pipeline.rows import (
    BUCKETS,
    CHUNK_ROWS,
    Inbox,
    Reason,
    RowBuffer,
    RowKind,
    Span,
    bucket_of,
)
from penstock.pipeline.state.streams import pack_events
from penstock.pipeline.view import View, worker_view
from penstock.pipeline.workers import settle, without_garbage

ArrowStage = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def decoder(home: str) -> ArrowStage:
    """The stage as Spark runs it: for `mapInArrow`."""

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        view = worker_view(home)
        settle("decode")
        with without_garbage():
            for out in decode_partition(map(Inbox.of_batch, batches), view):
                yield out.to_arrow()

    return decode


def decode_partition(inboxes: Iterable[Inbox], view: View) -> Iterator[RowBuffer]:
    """The rows of one partition, whose first inbox has the header."""
    span = None
    for inbox in inboxes:
        for header in inbox.rows(RowKind.HEADER):
            span = Span.from_bytes(header.body)
            yield _ticks(span, header.body) if header.step == 0 else RowBuffer()
        if span is not None:
            yield _decoded(inbox, span, view)


def _ticks(span: Span, header: bytes) -> RowBuffer:
    out = RowBuffer()
    for bucket in range(BUCKETS):
        out.add(bucket, RowKind.TICK, span.start, header)
    return out


def _decoded(inbox: Inbox, span: Span, view: View) -> RowBuffer:
    out = RowBuffer()
    # Relations are known from the offset of their record on, and are never changed. So one catalog,
    # of the end of the batch, serves all events.
    catalog = view.catalog(span.end)
    read = reader_of(catalog).read
    of_streams: dict[str, list[tuple[int, Row]]] = {r.name: [] for r in catalog if needs_no_rows(r)}
    for offset, _, body in inbox.rows(RowKind.EVENT):
        try:
            checked = read(body, offset)
        except ChangeError as error:
            out.add(offset % BUCKETS, RowKind.BAD, offset, Reason.of(error).to_bytes())
            continue
        relation, _, key, row, _ = checked
        events = of_streams.get(relation.name)
        if events is None:
            bucket = bucket_of(row_place(relation.name, key))
            out.add(bucket, RowKind.CHANGE, offset, change_body(checked))
        else:
            events.append((offset, row))
    for name, events in of_streams.items():
        if events:
            view.move_to(span.active, span.end)
            _tell(catalog[name], events, view, out)
            _keep(name, events, out)
    return out


def _tell(stream: Relation, events: list[tuple[int, Row]], view: View, out: RowBuffer) -> None:
    """What events that need no rows mean."""
    bucket = events[0][0] % BUCKETS
    add_messages(bucket, event_messages(view.index, stream, events), out)
    add_steps(RowKind.STEP, event_steps(view.index, stream, events), out)


def _keep(stream: str, events: list[tuple[int, Row]], out: RowBuffer) -> None:
    """Send events to where they are kept, many in one piece."""
    for first in range(0, len(events), CHUNK_ROWS):
        part = events[first : first + CHUNK_ROWS]
        bucket = part[0][0] // CHUNK_ROWS % BUCKETS
        out.add(bucket, RowKind.EVENTS, part[0][0], pack_events(stream, part))
