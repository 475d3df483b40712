"""What the source makes of events: changes that fit the catalog, or entries for the quarantine.

What an event of a stream without a key means follows from the event and the subscriptions alone. So
it is told here, many at a time, and only kept further down, for subscriptions to come.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.catalog import Relation, Row
from penstock.engine.plain_events import reader_of
from penstock.engine.streams import event_messages, event_steps, needs_no_rows
from penstock.errors import ChangeError
from penstock.pipeline.bodies import change_row, row_place
from penstock.pipeline.row_stage import add_messages, add_steps
from penstock.pipeline.rows import (
    BUCKETS,
    CHUNK_ROWS,
    Reason,
    RowBuffer,
    RowKind,
    Span,
    bucket_of,
)
from penstock.pipeline.state.streams import pack_events
from penstock.pipeline.view import View


def ticks(span: Span) -> RowBuffer:
    """What tells the buckets of the batch; once for each batch."""
    out = RowBuffer()
    for bucket in BUCKETS:
        out.add(bucket, RowKind.TICK, span.start, span.to_bytes())
    return out


def decode(events: Iterable[tuple[int, bytes]], span: Span, view: View) -> RowBuffer:
    """What events of a batch, with their offsets, mean."""
    out = RowBuffer()
    # Relations are known from the offset of their record on, and are never changed. So one catalog,
    # of the end of the batch, serves all events.
    catalog = view.catalog(span.end)
    read = reader_of(catalog).read
    of_streams: dict[str, list[tuple[int, Row]]] = {r.name: [] for r in catalog if needs_no_rows(r)}
    for offset, body in events:
        try:
            checked = read(body, offset)
        except ChangeError as error:
            out.add(_any_bucket(offset), RowKind.BAD, offset, Reason.of(error).to_bytes())
            continue
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
            _tell(catalog[name], kept, view, out)
            _keep(name, kept, out)
    return out


def _tell(stream: Relation, events: list[tuple[int, Row]], view: View, out: RowBuffer) -> None:
    """What events that need no rows mean."""
    bucket = _any_bucket(events[0][0])
    add_messages(bucket, event_messages(view.index, stream, events), out)
    add_steps(RowKind.STEP, event_steps(view.index, stream, events), out)


def _keep(stream: str, events: list[tuple[int, Row]], out: RowBuffer) -> None:
    """Send events to where they are kept, many in one piece."""
    for first in range(0, len(events), CHUNK_ROWS):
        part = events[first : first + CHUNK_ROWS]
        bucket = _any_bucket(part[0][0] // CHUNK_ROWS)
        out.add(bucket, RowKind.EVENTS, part[0][0], pack_events(stream, part))


def _any_bucket(number: int) -> int:
    """For what could go to any: to each by turns."""
    return BUCKETS[number % len(BUCKETS)]
