"""The quarantine: events that could not be applied, each with the reason.

Entries are never removed. Replaying one appends the same bytes to the log again, after a record
that names the entry; so the log knows which entries were replayed, and when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from penstock.arguments import listed, whole_number
from penstock.errors import EventError
from penstock.storage.batch_codec import batch_name, decode_body, encode_batch
from penstock.storage.batch_directory import BatchKind
from penstock.storage.batch_files import BatchFiles
from penstock.storage.disk import FileFormat, os_errors
from penstock.storage.file_store import LOCAL_FILES, FileStore
from penstock.storage.interfaces import (
    UNREADABLE_BODY,
    AnyHome,
    BatchHeader,
    QuarantinedEvent,
    RecordKind,
)

QUARANTINE_FORMAT = FileFormat("quarantine batch", b"PENSTQUA", version=1)
SUFFIX = ".quarantine"
MAX_REPLAYED_AT_ONCE = 1 << 20  # the maximum of one append
ROLLED_FORMAT = FileFormat("file of rolled quarantine batches", b"PENSTRQU", version=1)
QUARANTINE_FILES = BatchKind(QUARANTINE_FORMAT, SUFFIX, ROLLED_FORMAT, without_gaps=False)

_Fields = tuple[int, bytes, str, str, str]
_DECODER = msgspec.msgpack.Decoder(list[_Fields])


class Quarantine:
    """Files in a directory, one per batch with bad events; old ones are rolled into larger files.

    A file whose batch was not committed is left over from a crash: it is ignored, and rewritten or
    removed when the log is processed again. Batches are committed in order, so such a file lies
    after `reached`, where the last one ends. Whether the messages of an earlier batch still exist
    does not matter here.
    """

    def __init__(
        self, directory: Path, reached: Callable[[], int], store: FileStore = LOCAL_FILES
    ) -> None:
        self.directory = directory
        self._store = store
        self._reached = reached
        self._files = BatchFiles(directory, QUARANTINE_FILES, store)

    def entries(self, start: int = 0, end: int | None = None) -> Iterator[QuarantinedEvent]:
        reached = self._reached()
        for header in self._files.headers():
            beside = header.end <= start or (end is not None and header.start >= end)
            if not beside and header.end <= reached:
                for event in self._read(header):
                    if event.offset >= start and (end is None or event.offset < end):
                        yield event

    def get(self, offset: int) -> QuarantinedEvent:
        header = self._files.batch_over(offset)
        if header is not None and header.end <= self._reached():
            for event in self._read(header):
                if event.offset == offset:
                    return event
        raise EventError(
            f"no event of offset {offset} is in quarantine",
            hint="list the quarantine to see which are",
        )

    def write(self, header: BatchHeader, events: Sequence[QuarantinedEvent]) -> None:
        """Write the bad events of a batch; replaces what a crashed attempt left."""
        path = self.directory / batch_name(header.start, header.end, SUFFIX)
        with os_errors("write the quarantine", path):
            if events:
                fields = [(e.offset, e.raw, e.primary, e.detail, e.hint) for e in events]
                body = msgspec.msgpack.encode(fields)
                self._store.publish(path, *encode_batch(QUARANTINE_FORMAT, header, body))
            else:
                self._store.remove(path)

    def sweep(self, kept_to: int = 0) -> None:
        """Remove what a crashed writer left; only for the holder of the processing lock. Everything
        before `kept_to` is kept: it could not be derived again."""
        reached = self._reached()
        with os_errors("tidy the quarantine", self.directory):
            self._store.sweep(self.directory)
            self._files.sweep()
            for extent in self._files.list_files().extents:
                start, end = extent.last
                if extent.batches == 1 and end > reached and start >= kept_to:
                    self._store.remove(self.directory / extent.name)
            self._files.forget_listing()

    def roll(self) -> None:
        """Roll files of committed batches into larger ones; only for the process that publishes
        batches."""
        reached = self._reached()
        self._files.roll(may_roll=lambda place: place[1] <= reached)

    def put_aside(self, offset: int, directory: Path) -> None:
        """Move the batches that end after an offset into another directory."""
        self._files.put_aside(offset, directory)

    def _read(self, header: BatchHeader) -> list[QuarantinedEvent]:
        batch = self._files.read((header.start, header.end))
        fields = [] if batch is None else decode_body(_DECODER, batch[1], self.directory)
        return [QuarantinedEvent(*one) for one in fields]


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
    assert _REPLAY_DECODER.decode(body).of == offset  # as `list_quarantine` decodes it
    return body


def _offset(value: object) -> int:
    return whole_number(value, "the offset of an event", EventError)


def list_quarantine(home: AnyHome) -> Iterator[QuarantineEntry]:
    """All entries in order, each with the offsets of its replays."""
    replays: dict[int, list[int]] = {}
    for record in home.log.read(0, kinds=frozenset({RecordKind.REPLAY})):
        with suppress(*UNREADABLE_BODY):  # of another release: the entry it refers to is unknown
            replayed = _REPLAY_DECODER.decode(record.body).of
            replays.setdefault(replayed, []).append(record.offset + 1)
    for event in home.quarantine.entries():
        yield QuarantineEntry(event, tuple(replays.get(event.offset, ())))


def replay(home: AnyHome, offsets: Iterable[int]) -> list[int]:
    """Append quarantined events to the log again; returns their new offsets.

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
