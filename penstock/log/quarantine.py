"""The quarantine: events that could not be applied, each with the reason.

An entry stays for good. Replaying it appends the same bytes to the log again, behind a record that
says which entry they are; the log therefore knows which entries were tried again, and when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from penstock.arguments import listed, whole_number
from penstock.errors import EventError
from penstock.log.batchfile import (
    batch_name,
    decoded,
    encode_batch,
    parse_batch_name,
    read_batch,
)
from penstock.log.disk import FileFormat, os_errors, sweep_temporary, write_aside
from penstock.log.interfaces import AnyHome, BatchHeader, QuarantinedEvent, RecordKind

QUARANTINE_FORMAT = FileFormat("quarantine batch", b"PENSTQUA", version=1)
SUFFIX = ".quarantine"
MAX_REPLAYED_AT_ONCE = 1 << 20  # as many as one append can have brought

_Fields = tuple[int, bytes, str, str, str]
_DECODER = msgspec.msgpack.Decoder(list[_Fields])


class Quarantine:
    """Files in a directory, one per batch that had bad events.

    A file whose batch was not committed is left over from a crash: it does not count, and is
    written again, or removed, when the log is processed again. Batches are committed one after the
    other, so that is one behind `reached`, where the last one ends. Whether the messages of a batch
    before it are still there does not matter here.
    """

    def __init__(self, directory: Path, reached: Callable[[], int]) -> None:
        self.directory = directory
        self._reached = reached

    def entries(self, start: int = 0, end: int | None = None) -> Iterator[QuarantinedEvent]:
        reached = self._reached()
        for first, last in self._places():
            beside = last <= start or (end is not None and first >= end)
            if not beside and last <= reached:
                for event in self._read(first, last):
                    if event.offset >= start and (end is None or event.offset < end):
                        yield event

    def get(self, offset: int) -> QuarantinedEvent:
        reached = self._reached()
        for start, end in self._places():
            if start <= offset < end <= reached:
                for event in self._read(start, end):
                    if event.offset == offset:
                        return event
        raise EventError(
            f"no event of offset {offset} is in quarantine",
            hint="list the quarantine to see which are",
        )

    def write(self, header: BatchHeader, events: Sequence[QuarantinedEvent]) -> None:
        """Put the bad events of a batch in place; replaces what a crashed try left there."""
        path = self.directory / batch_name(header.start, header.end, SUFFIX)
        with os_errors("write the quarantine", path):
            if events:
                fields = [(e.offset, e.raw, e.primary, e.detail, e.hint) for e in events]
                body = msgspec.msgpack.encode(fields)
                write_aside(path, *encode_batch(QUARANTINE_FORMAT, header, body))
            else:
                path.unlink(missing_ok=True)

    def sweep(self, kept_to: int = 0) -> None:
        """Remove what a crashed writer left; only for the holder of the processing lock. What is
        before `kept_to` stays in any case: nobody could find it again."""
        reached = self._reached()
        with os_errors("tidy the quarantine", self.directory):
            sweep_temporary(self.directory)
            for start, end in self._places():
                if end > reached and start >= kept_to:
                    (self.directory / batch_name(start, end, SUFFIX)).unlink(missing_ok=True)

    def _places(self) -> list[tuple[int, int]]:
        with os_errors("read the quarantine", self.directory):
            names = [path.name for path in self.directory.iterdir()]
        places = (parse_batch_name(name, SUFFIX) for name in names if name.endswith(SUFFIX))
        return sorted(place for place in places if place is not None)

    def _read(self, start: int, end: int) -> list[QuarantinedEvent]:
        path = self.directory / batch_name(start, end, SUFFIX)
        _, body = read_batch(QUARANTINE_FORMAT, path)
        return [QuarantinedEvent(*one) for one in decoded(_DECODER, body, path)]


@dataclass(frozen=True, slots=True)
class QuarantineEntry:
    """An event in quarantine and the offsets at which it was replayed."""

    event: QuarantinedEvent
    replayed_at: tuple[int, ...]


class _ReplayBody(msgspec.Struct):
    of: int


_REPLAY_DECODER = msgspec.json.Decoder(_ReplayBody)


def _replay_body(offset: int) -> bytes:
    body = msgspec.json.encode(_ReplayBody(of=offset))
    assert _REPLAY_DECODER.decode(body).of == offset  # whoever lists the quarantine reads it so
    return body


def _offset(value: object) -> int:
    return whole_number(value, "the offset of an event", EventError)


def list_quarantine(home: AnyHome) -> Iterator[QuarantineEntry]:
    """All entries in order, each with what became of it."""
    replays: dict[int, list[int]] = {}
    for record in home.log.read(0, kinds=frozenset({RecordKind.REPLAY})):
        with suppress(msgspec.DecodeError):  # of another release: which one it was is not known
            replayed = _REPLAY_DECODER.decode(record.body).of
            replays.setdefault(replayed, []).append(record.offset + 1)
    for event in home.quarantine.entries():
        yield QuarantineEntry(event, tuple(replays.get(event.offset, ())))


def replay(home: AnyHome, offsets: Iterable[int]) -> list[int]:
    """Append quarantined events to the log again; the offsets they have now.

    All are looked up before the first one is appended, so a wrong offset changes nothing.
    """
    wanted = listed(offsets, "the offsets of events", EventError, most=MAX_REPLAYED_AT_ONCE)
    events = [home.quarantine.get(_offset(one)) for one in wanted]
    replayed = []
    for event in events:
        entries = [(RecordKind.REPLAY, _replay_body(event.offset)), (RecordKind.EVENT, event.raw)]
        first = home.log.append(entries)
        replayed.append(first + 1)
    return replayed
