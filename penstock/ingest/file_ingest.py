"""Ingests a file exactly once.

Every frame appended for a file records how many of its events are in the log by then
(`penstock.ingest.ingest_ledger`). A process that continues, after a crash or concurrently with
another one, reads that under the log's own lock and skips as many. Events are appended in the order
of the file, so it does not matter how they were cut into frames.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from penstock.catalog import Catalog
from penstock.errors import EventError, LockedError
from penstock.flow.changes import Op
from penstock.flow.events import unreadable_file_event
from penstock.ingest.directory_listing import digest_of, table_of
from penstock.ingest.formats import format_of, read_open_file
from penstock.ingest.ingest_ledger import (
    FileId,
    IngestLedger,
    IngestRecord,
    encode_taken,
    ledger_name,
)
from penstock.ingest.input_files import InputFile, shown_name
from penstock.ingest.publication import (
    MAX_BACKLOG,
    check_backlog,
)
from penstock.registry import Registry
from penstock.storage import Home, RecordKind


@dataclass(frozen=True, slots=True)
class IngestResult:
    """The outcome for one file."""

    name: str
    """Printable."""
    events: int
    """Appended now: none, if all of them were in the log before."""
    refused: str = ""
    """Why the file, or the rest of it, cannot be read; also in the quarantine."""
    left: str = ""
    """Why the file was not moved."""


class FileIngest:
    """Ingests files into the log of a home. For one thread; other processes may ingest, too."""

    def __init__(self, home: Home, op: Op = Op.INSERT, *, max_backlog: int = MAX_BACKLOG) -> None:
        self._home = home
        self._op = op
        self._max_backlog = max_backlog
        self._registry = Registry(home)
        self._ledger = IngestLedger(home)

    def close(self) -> None:
        self._registry.close()
        self._ledger.close()

    def take(self, source: InputFile, name: str) -> IngestResult:
        """Append the events of the file that are not in the log yet.

        BacklogError if the log is too far ahead of its processing: the rest can be ingested later.
        InputError if the file cannot be read any further.
        """
        status = os.fstat(source.file.fileno())
        with source.errors():
            file, placed = FileId(ledger_name(name), digest_of(source.file)), status.st_ctime_ns
        before, shown = self._ledger.taken(file), shown_name(name)
        if before.complete:
            return IngestResult(shown, 0)
        if before.refused == placed:
            return IngestResult(shown, 0, "it was refused before")
        done = before.events
        try:
            for events in behind(self._read(source, name), before.events):
                self._append(file, done, events, IngestRecord(done + len(events)))
                done += len(events)
            check_unchanged(source, status)
            self._append(file, done, [], IngestRecord(done, complete=True))
        except EventError as error:
            event = unreadable_file_event(shown, error)
            self._append(file, done, [event], IngestRecord(done, refused=placed))
            return IngestResult(shown, done - before.events, error.primary)
        return IngestResult(shown, done - before.events)

    def _read(self, source: InputFile, name: str) -> Iterator[list[bytes]]:
        relation = None
        if format_of(source.path).holds_rows:
            self._registry.catch_up()
            relation = table_of(name, self._registry.catalog())
            if relation is None:
                raise _nobodys(shown_name(name), self._registry.catalog())
        for batch in read_open_file(source, relation, self._op):
            yield batch.events

    def _append(self, file: FileId, done: int, events: list[bytes], after: IngestRecord) -> None:
        check_backlog(self._home, self._max_backlog)
        append_taken(self._home, self._ledger, file, done, events, after)


def append_taken(
    home: Home,
    ledger: IngestLedger,
    file: FileId,
    done: int,
    events: list[bytes],
    after: IngestRecord,
) -> int:
    """Append the events after the first `done` of the file, unless another process has; returns the
    offset of the first of them."""
    entries = [encode_taken(file, after), *((RecordKind.EVENT, event) for event in events)]
    with home.log.appending() as tail:
        present = ledger.taken(file, tail.end)
        if present.complete or present.events > done:
            raise LockedError(
                f"{shown_name(file.name)} is being taken by another process",
                hint="let one process watch a directory",
            )
        return tail.append(entries) + 1


def behind(batches: Iterable[list[bytes]], done: int) -> Iterator[list[bytes]]:
    """The events after the first `done`."""
    for events in batches:
        rest = events[done:]
        done = max(0, done - len(events))
        if rest:
            yield rest


def check_unchanged(source: InputFile, before: os.stat_result) -> None:
    """EventError if the file has changed since it was opened."""
    after = os.fstat(source.file.fileno())
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise EventError(
            f"{source.name} was changed while it was read",
            detail="what had been read of it is in the log",
            hint="write under a name that begins with a dot, and rename the file when it is done",
        )


def _nobodys(name: str, catalog: Catalog) -> EventError:
    known = ", ".join(catalog.names()[:10]) or "none"
    return EventError(
        f"{name} does not say which table its rows belong to",
        hint=f"name it like a table, or put it into a directory of that name: {known}",
    )
