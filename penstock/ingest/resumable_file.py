"""Resumable publishing: repeating it continues where it was interrupted.

As with dropped files, every frame with events of the file records how many of them are in the log
by then. Frames are atomic, so this is exact after a crash, too. A file is identified by its path,
its content, and how its rows are interpreted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.catalog import Relation
from penstock.errors import EventError
from penstock.flow.changes import Op
from penstock.ingest.directory_listing import digest_of
from penstock.ingest.file_ingest import append_taken, check_unchanged
from penstock.ingest.formats import InputFormat, format_of, read_open_file
from penstock.ingest.ingest_ledger import FileId, IngestLedger, IngestRecord, ledger_name
from penstock.ingest.input_files import InputBatch, InputFile, open_input
from penstock.ingest.publication import leave_out
from penstock.storage import Home


class ResumableFile:
    """One file being published."""

    def __init__(self, home: Home, ledger: IngestLedger, file: FileId, source: InputFile) -> None:
        self._home, self._ledger, self._file, self._source = home, ledger, file, source
        self._status = os.fstat(source.file.fileno())
        self._taken = ledger.taken(file)
        self.before = self._taken.events
        """How many of its events were in the log before."""

    def rest(
        self, relation: Relation | None, op: Op, format_: InputFormat | None
    ) -> Iterator[InputBatch]:
        """The events that are not in the log yet."""
        if not self._taken.complete:
            batches = read_open_file(self._source, relation, op, format_)
            yield from leave_out(batches, self.before, self._source.name)

    def append(self, events: list[bytes]) -> int:
        """Append the next events of the file; returns the offset of the first."""
        done = self._taken.events
        after = IngestRecord(done + len(events))
        offset = append_taken(self._home, self._ledger, self._file, done, events, after)
        self._taken = after
        return offset

    def finish(self) -> None:
        """Record that the file is completely in the log."""
        if not self._taken.complete:
            check_unchanged(self._source, self._status)
            done = self._taken.events
            after = IngestRecord(done, complete=True)
            append_taken(self._home, self._ledger, self._file, done, [], after)


@contextmanager
def open_resumable(
    home: Home, path: Path, relation: Relation | None, op: Op, format_: InputFormat | None
) -> Iterator[ResumableFile]:
    """A file to be published, from where an earlier attempt stopped."""
    ledger = IngestLedger(home)
    try:
        with open_input(path) as source:
            with source.errors():
                digest = digest_of(source.file)
            file = FileId(_name(path, relation, op, format_), digest)
            _check_same(ledger, file, source.name)
            yield ResumableFile(home, ledger, file, source)
    finally:
        ledger.close()


def _name(path: Path, relation: Relation | None, op: Op, format_: InputFormat | None) -> str:
    """The path of the file, and how its rows are interpreted. Names of dropped files are relative,
    so they never collide."""
    name = ledger_name(os.path.abspath(path))
    if relation is None or not (format_ or format_of(path)).holds_rows:
        return name
    return f"{name} as {op} of {relation.name}"


def _check_same(ledger: IngestLedger, file: FileId, shown: str) -> None:
    begun = ledger.unfinished(file.name)
    if file.digest in begun or not begun:
        return
    events = max(begun.values())
    raise EventError(
        f"{shown} is not what it was when {events} of its events were published",
        detail="where to go on in the changed file is not known",
        hint=f"publish it without --resume; if its first {events} events are the same as they were,"
        f" with --skip {events}",
    )
