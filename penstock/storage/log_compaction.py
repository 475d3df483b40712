"""Compaction of the beginning of a log: fewer records with the same tables and subscriptions.

One event is kept for each row that still exists, at the offset of the last event that changed it:
that event itself, if it is a plain line that inserted the row, else an insert of the row as it is.
All other records are unchanged. So readers of the log need not know that it was compacted.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.catalog import Catalog, Relation, Row, RowKey
from penstock.errors import HomeError
from penstock.flow.changes import Change, Op, row_after
from penstock.flow.events import encode_change, read_change
from penstock.packing import pack
from penstock.storage.frames import compacted_header, encode_frame
from penstock.storage.interfaces import CONTROL_KINDS, Entry, RecordKind, RecordLog
from penstock.storage.table_replay import Replay

FRAME_RECORDS = 4096
FRAME_BYTES = 1 << 20  # 1 MiB, like the frames that files are published in

_PLAIN_START = b'{"table":'
"""The start of an event that contains nothing but its change. CloudEvents and Debezium events
contain more, and are smaller when rewritten."""


def compacted_segment(log: RecordLog, replay: Replay) -> bytes:
    """The bytes of a segment that replaces all replayed records."""
    entries = _entries_kept(log, replay)
    catalog = replay.engine.catalog
    for relation in catalog:
        for key, row in replay.engine.rows.rows(relation):
            offset = replay.changed[relation.name, key]
            if offset not in entries:
                entries[offset] = (RecordKind.EVENT, _insert(catalog, offset, relation, key, row))
    frames = b"".join(encode_frame(first, run) for first, run in _runs(entries))
    return compacted_header(replay.end, len(frames)) + frames


def _entries_kept(log: RecordLog, replay: Replay) -> dict[int, Entry]:
    """The records that are kept unchanged, by offset."""
    inserted = set(map(replay.changed.__getitem__, replay.as_inserted))
    entries: dict[int, Entry] = {}
    for first, frame in log.frames(0, replay.end):
        for offset, (kind, body) in enumerate(frame, first):
            if kind in CONTROL_KINDS:
                entries[offset] = (RecordKind(kind), body)
            elif offset in inserted and body.startswith(_PLAIN_START):
                entries[offset] = (RecordKind.EVENT, body)
    return entries


def _insert(catalog: Catalog, offset: int, relation: Relation, key: RowKey, row: Row) -> bytes:
    """An event that inserts a row; decoding it must give exactly that row."""
    body = encode_change(Change(relation.name, Op.INSERT, relation.show_row(row)))
    checked = read_change(body, catalog, offset)
    if (checked.key, pack(row_after(checked, None))) != (key, pack(row)):
        raise HomeError(
            f"the row at offset {offset} cannot be written as one event", detail=f"{row!r:.200}"
        )
    return body


def _runs(entries: dict[int, Entry]) -> Iterator[tuple[int, list[Entry]]]:
    """Consecutive records, in pieces of moderate size."""
    run: list[Entry] = []
    first = size = 0
    for offset in sorted(entries):
        full = len(run) == FRAME_RECORDS or size >= FRAME_BYTES
        if run and (full or offset != first + len(run)):
            yield first, run
            run = []
        if not run:
            first, size = offset, 0
        run.append(entries[offset])
        size += len(entries[offset][1])
    if run:
        yield first, run
