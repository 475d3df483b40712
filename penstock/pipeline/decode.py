"""The first stage, without state: events to changes that fit the catalog, or to the quarantine."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from penstock.catalog import Catalog
from penstock.engine.changes import check
from penstock.engine.events import decode_event
from penstock.errors import ChangeError
from penstock.pipeline.bodies import pack_change, row_place
from penstock.pipeline.rows import (
    BUCKETS,
    Inbox,
    Reason,
    RowBuffer,
    RowKind,
    StageRow,
    bucket_of,
)
from penstock.pipeline.view import worker_view
from penstock.pipeline.workers import settle

ArrowStage = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def decoder(home: str) -> ArrowStage:
    """The stage as Spark runs it: for `mapInArrow`."""

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        view = worker_view(home)
        settle("decode")
        for batch in batches:
            inbox = Inbox.of_batches([batch])
            yield decode_rows(inbox, view.catalog).to_arrow()

    return decode


def decode_rows(inbox: Inbox, catalog_at: Callable[[int], Catalog]) -> RowBuffer:
    out = RowBuffer()
    events = inbox.rows(RowKind.EVENT)
    # Relations are known from the offset of their record on, and are never changed. So one catalog,
    # of the last of these events, serves all of them.
    catalog = catalog_at(events[-1].offset if events else 0)
    for header in inbox.rows(RowKind.HEADER):
        for bucket in range(BUCKETS):
            out.add(bucket, RowKind.TICK, header.offset, header.body)
    for event in events:
        _decode_event(event, catalog, out)
    return out


def _decode_event(row: StageRow, catalog: Catalog, out: RowBuffer) -> None:
    try:
        checked = check(decode_event(row.body), catalog, row.offset)
    except ChangeError as error:
        bucket = row.offset % BUCKETS
        out.add(bucket, RowKind.BAD, row.offset, Reason.of(error).to_bytes())
    else:
        bucket = bucket_of(row_place(checked.relation.name, checked.key))
        out.add(bucket, RowKind.CHANGE, row.offset, pack_change(checked))
