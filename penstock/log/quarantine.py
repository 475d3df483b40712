"""The quarantine: events that could not be applied, each with the reason.

An entry stays for good. Replaying it appends the same bytes to the log again, behind a record that
says which entry they are; the log therefore knows which entries were tried again, and when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from penstock.errors import EventError
from penstock.log.batchfile import batch_name, encode_batch
from penstock.log.batchfiles import BatchFiles, BatchKind
from penstock.log.disk import FileFormat, os_errors, sweep_temporary, write_aside
from penstock.log.interfaces import AnyHome, BatchHeader, QuarantinedEvent, RecordKind

QUARANTINE_FORMAT = FileFormat("quarantine batch", b"PENSTQUA", version=1)
SUFFIX = ".quarantine"
ROLLED_FORMAT = FileFormat("file of rolled quarantine batches", b"PENSTRQU", version=1)
QUARANTINE_FILES = BatchKind(QUARANTINE_FORMAT, SUFFIX, ROLLED_FORMAT, without_gaps=False)

_Fields = tuple[int, bytes, str, str, str]
_DECODER = msgspec.msgpack.Decoder(list[_Fields])


class Quarantine:
    """Files in a directory, one per batch that had bad events; old ones are rolled together.

    A file whose batch was not committed is left over from a crash: it does not count, and is
    written again, or removed, when the log is processed again.
    """

    def __init__(self, directory: Path, committed: Callable[[int, int], bool]) -> None:
        self.directory = directory
        self._committed = committed
        self._files = BatchFiles(directory, QUARANTINE_FILES)

    def entries(self) -> Iterator[QuarantinedEvent]:
        for header in self._files.headers():
            if self._committed(header.start, header.end):
                yield from self._read(header)

    def get(self, offset: int) -> QuarantinedEvent:
        header = self._files.over(offset)
        if header is not None and self._committed(header.start, header.end):
            for event in self._read(header):
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

    def sweep(self) -> None:
        """Remove what a crashed writer left; only for the holder of the processing lock."""
        with os_errors("tidy the quarantine", self.directory):
            sweep_temporary(self.directory)
            self._files.sweep()
            for extent in self._files.listed().extents:
                if extent.batches == 1 and not self._committed(*extent.last):
                    (self.directory / extent.name).unlink(missing_ok=True)
            self._files.changed()

    def roll(self) -> None:
        """Roll files of committed batches into larger ones; only for whoever publishes batches."""
        self._files.roll(may_roll=lambda place: self._committed(*place))

    def _read(self, header: BatchHeader) -> list[QuarantinedEvent]:
        batch = self._files.read((header.start, header.end))
        fields: list[_Fields] = [] if batch is None else _DECODER.decode(batch[1])
        return [QuarantinedEvent(*one) for one in fields]


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
