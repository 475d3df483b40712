"""The first stage: from events to changes that fit the catalog, or entries for the quarantine.

Nearly all events are plain JSON. The fast gear parses them into columns and packs them for the next
stage without creating objects (`penstock.flow.columnar`). Events that it does not support, and all
events in the plain gear, are read one by one.

An event of a keyless stream depends on no other row: its messages and steps are emitted here, and
the next stage only stores the event, for future subscriptions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.catalog import Row
from penstock.errors import ChangeError, NoChangeError
from penstock.flow.changes import Delta
from penstock.flow.consequences import emit_consequences, emit_packed_consequences
from penstock.flow.events import read_change
from penstock.flow.exchange import CHUNK_BYTES, CHUNK_ROWS, StageInput, StageOutput
from penstock.flow.faults import RecordFaultError, is_fault
from penstock.flow.kinds import Events, Kind, Reason, StreamEvents, packed_stream_events
from penstock.flow.row_codec import change_row
from penstock.flow.stage import BatchView, Key
from penstock.flow.streams import is_keyless_stream

if TYPE_CHECKING:
    from penstock.flow.columnar import PlainColumns


class Decode:
    name = "decode"
    takes = frozenset({Kind.EVENT})
    gives = frozenset({Kind.CHANGE, Kind.EVENTS, Kind.STEP, Kind.MESSAGE, Kind.BAD, Kind.SKIPPED})
    keyed_by: Key | None = None

    def open_store(self, entries: object) -> None:
        return None

    def advance(self, given: StageInput, store: None, view: BatchView) -> StageOutput:
        out = StageOutput(view.spread)
        offsets, bodies = _without_refused(given.events, view, out)
        if view.plan.reading().is_fast:
            from penstock.flow.columnar import column_reader

            read, others = column_reader(view.catalog).read(offsets, bodies)
            again: set[int] = set()
            for columns in read:
                if view.needs(columns.relation) and not _send_columns(columns, view, out):
                    again.update(columns.offsets.tolist())
            one_by_one = [(offsets[i], bodies[i]) for i in others]
            if again:
                pairs = zip(offsets, bodies, strict=True)
                one_by_one = sorted(one_by_one + [one for one in pairs if one[0] in again])
            _decode_each(one_by_one, view, out)
        else:
            _decode_each(zip(offsets, bodies, strict=True), view, out)
        return out


def _without_refused(events: Events, view: BatchView, out: StageOutput) -> Events:
    """The events without those that are marked as not to be applied."""
    refused = view.not_applied
    found = refused.keys() & set(events.offsets) if refused else ()
    if not found:
        return events
    for offset in sorted(found):
        _add_bad(offset, refused[offset], view, out)
    kept = [i for i, offset in enumerate(events.offsets) if offset not in found]
    return Events([events.offsets[i] for i in kept], [events.bodies[i] for i in kept])


def _add_bad(offset: int, error: ChangeError, view: BatchView, out: StageOutput) -> None:
    out.add(view.spread.of_number(offset), Kind.BAD, offset, Reason.of(error))


def _send_columns(columns: PlainColumns, view: BatchView, out: StageOutput) -> bool:
    """Emit the parsed events of one relation. Returns False, without any effect, if operators fail
    on some of them: then they are processed one by one."""
    import numpy as np

    from penstock.flow.packed.operator_rows import derive_apart
    from penstock.flow.packed.rows import EventDeltas

    if not is_keyless_stream(columns.relation):
        places = columns.key_hashes() % len(view.spread.buckets)  # the same as `Spread.of_row`
        order = np.argsort(places, kind="stable")
        out.add_packed(Kind.CHANGE, columns.packed_changes(order), places[order])
        return True
    bucket = view.spread.of_number(int(columns.offsets[0]))
    events = EventDeltas(columns)
    derived = derive_apart(events, view.index.derived, view.derivation, None)
    if derived.failures:
        return False
    if derived.deltas:
        emit_consequences(derived.deltas, view, bucket, out)
    emit_packed_consequences(events, view, bucket, out)
    packed = columns.packed_events()
    for first, last in packed.pieces(CHUNK_ROWS, CHUNK_BYTES):
        offset = int(columns.offsets[first])
        body = packed_stream_events(columns.relation.name, packed.array(first, last))
        out.add(view.spread.of_number(offset // CHUNK_ROWS), Kind.EVENTS, offset, body)
    return True


def _decode_each(events: Iterable[tuple[int, bytes]], view: BatchView, out: StageOutput) -> None:
    """Decode events of any form, one by one."""
    catalog, spread = view.catalog, view.spread
    of_streams: dict[str, list[tuple[int, Row]]] = {}
    for offset, body in events:
        try:
            checked = read_change(body, catalog, offset)
        except NoChangeError:
            out.add(spread.of_number(offset), Kind.SKIPPED, offset, b"")
            continue
        except ChangeError as error:
            _add_bad(offset, error, view, out)
            continue
        except Exception as error:
            raise RecordFaultError(offset, error) if is_fault(error) else error from error
        relation, _, key, row, _ = checked
        if not view.needs(relation):
            continue
        if is_keyless_stream(relation):
            of_streams.setdefault(relation.name, []).append((offset, row))
        else:
            bucket = spread.of_row(relation.name, key)
            out.rows(bucket, Kind.CHANGE).append(change_row(offset, checked))
    for name, kept in of_streams.items():
        _send_stream(name, kept, view, out)


def _send_stream(
    name: str, events: list[tuple[int, Row]], view: BatchView, out: StageOutput
) -> None:
    stream = view.catalog[name]
    deltas = [Delta(offset, stream, (offset,), None, row) for offset, row in events]
    derived, failures, _ = view.derivation.derive(deltas, None)
    if failures:
        for offset, one in sorted(failures.items()):
            _add_bad(offset, one.error(), view, out)
        deltas = [one for one in deltas if one.offset not in failures]
        derived = [one for one in derived if one.offset not in failures]
        events = [one for one in events if one[0] not in failures]
        if not events:
            return
    emit_consequences([*deltas, *derived], view, view.spread.of_number(events[0][0]), out)
    for first in range(0, len(events), CHUNK_ROWS):
        part = events[first : first + CHUNK_ROWS]
        bucket = view.spread.of_number(part[0][0] // CHUNK_ROWS)
        out.add(bucket, Kind.EVENTS, part[0][0], StreamEvents(name, part))
