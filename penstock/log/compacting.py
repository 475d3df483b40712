"""The beginning of a log in fewer records, which lead to the same tables and subscriptions.

Of the events, one is left for each row that is still there: an insert of the row as it is, at the
offset of the last event that changed it. All other records stay as they are. So whoever reads the
log from its beginning, for whatever purpose, needs not know that it was compacted.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from penstock.catalog import Catalog, Relation, Row, RowKey
from penstock.engine.changes import Change, Op, row_after
from penstock.engine.events import encode_change
from penstock.engine.faults import RecordFaultError, blaming
from penstock.engine.index import Index
from penstock.engine.memory import MemoryRows
from penstock.engine.plain_events import read_change
from penstock.engine.stages import RowStage
from penstock.errors import ChangeError, HomeError
from penstock.log.frames import compacted_header, encode_frame
from penstock.log.interfaces import CONTROL_KINDS, Entry, RecordKind, RecordLog
from penstock.packing import pack
from penstock.sql import parse_relation

FRAME_RECORDS = 4096
FRAME_BYTES = 1 << 20  # 1 MiB, like the frames that files are published in


def compacted_segment(
    log: RecordLog,
    end: int,
    not_applied: Container[int] = (),
    on_offset: Callable[[int], None] | None = None,
) -> bytes:
    """The bytes of a segment that stands for all records before `end`. Events that were not applied
    when they were processed are not applied here."""
    live = _live_rows(log, end, not_applied, on_offset)
    entries: dict[int, Entry] = {
        record.offset: (record.kind, record.body) for record in log.read(0, end, CONTROL_KINDS)
    }
    for (_, key), (offset, relation, row) in live.rows.items():
        entries[offset] = (RecordKind.EVENT, _insert(live.catalog, offset, relation, key, row))
    frames = b"".join(encode_frame(first, run) for first, run in _runs(entries))
    return compacted_header(end, len(frames)) + frames


@dataclass
class _Live:
    """The rows at an offset, each with the offset at which it last changed."""

    catalog: Catalog = field(default_factory=Catalog)
    rows: dict[tuple[str, RowKey], tuple[int, Relation, Row]] = field(default_factory=dict)


def _live_rows(
    log: RecordLog,
    end: int,
    not_applied: Container[int],
    on_offset: Callable[[int], None] | None,
) -> _Live:
    live = _Live()
    stage = RowStage(MemoryRows(), Index(live.catalog))
    tables = frozenset({RecordKind.DDL, RecordKind.EVENT})
    for first, entries in log.frames(0, end, tables):
        for offset, (kind, body) in enumerate(entries, first):
            if kind == RecordKind.DDL:
                with suppress(RecordFaultError), blaming(offset):  # it changed nothing
                    live.catalog.add(parse_relation(body.decode(errors="replace")), offset)
            elif kind == RecordKind.EVENT and offset not in not_applied:
                with suppress(ChangeError):  # it is in quarantine
                    _apply(live, stage, offset, body)
        if on_offset is not None:
            on_offset(first + len(entries))
    return live


def _apply(live: _Live, stage: RowStage, offset: int, body: bytes) -> None:
    delta = stage.resolve(offset, read_change(body, live.catalog, offset))
    if delta is None:
        return
    place = (delta.relation.name, delta.key)
    live.rows.pop(place, None)
    if delta.new is not None:
        live.rows[place] = (offset, delta.relation, delta.new)


def _insert(catalog: Catalog, offset: int, relation: Relation, key: RowKey, row: Row) -> bytes:
    """An event that inserts a row; what it is read as must be that very row."""
    body = encode_change(Change(relation.name, Op.INSERT, relation.show_row(row)))
    checked = read_change(body, catalog, offset)
    if (checked.key, pack(row_after(checked, None))) != (key, pack(row)):
        raise HomeError(
            f"the row at offset {offset} cannot be written as one event", detail=f"{row!r:.200}"
        )
    return body


def _runs(entries: dict[int, Entry]) -> Iterator[tuple[int, list[Entry]]]:
    """Records that follow one another, in pieces of moderate size."""
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
