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

    def entries(self) -> Iterator[QuarantinedEvent]:
        reached = self._reached()
        for start, end in self._places():
            if end <= reached:
                yield from self._read(start, end)

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
    events = [home.quarantine.get(offset) for offset in offsets]
    replayed = []
    for event in events:
        body = msgspec.json.encode(_ReplayBody(of=event.offset))
        first = home.log.append([(RecordKind.REPLAY, body), (RecordKind.EVENT, event.raw)])
        replayed.append(first + 1)
    return replayed
