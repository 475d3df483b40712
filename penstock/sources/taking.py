"""Taking a file into the log, exactly once.

Every frame that is appended for a file says how many of its events are in the log by then
(`penstock.sources.ledger`). Whoever goes on, after a crash or beside another process, reads that
under the log's own lock and leaves out as many. The order of a file's events is that of the file,
so it does not matter how they were cut into frames.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.catalog import Catalog
from penstock.engine.changes import Op
from penstock.engine.events import unreadable_file_event
from penstock.errors import EventError, LockedError
from penstock.log import Home, RecordKind
from penstock.log.files import (
    CSV_SUFFIXES,
    MAX_BACKLOG,
    PARQUET_SUFFIXES,
    check_backlog,
    read_file,
)
from penstock.registry import Registry
from penstock.sources.dropped import digest_of, table_of
from penstock.sources.ledger import FileId, Ledger, Taken, taken_entry

_TABULAR = CSV_SUFFIXES | PARQUET_SUFFIXES


@dataclass(frozen=True, slots=True)
class Took:
    """What became of one file."""

    name: str
    events: int
    """Appended now: none, if all of them were in the log before."""
    refused: str = ""
    """Why the file, or the rest of it, cannot be read; the quarantine will say so too."""


class Taker:
    """Takes files into the log of a home. For one thread; other processes may take, too."""

    def __init__(self, home: Home, op: Op = Op.INSERT, *, max_backlog: int = MAX_BACKLOG) -> None:
        self._home = home
        self._op = op
        self._max_backlog = max_backlog
        self._registry = Registry(home)
        self._ledger = Ledger(home)

    def close(self) -> None:
        self._registry.close()
        self._ledger.close()

    def take(self, path: Path, name: str) -> Took:
        """Append those events of the file that are not in the log yet.

        BacklogError if the log is too far ahead of its processing: the rest can be taken later.
        """
        status = path.stat()
        file, placed = FileId(name, digest_of(path)), status.st_ctime_ns
        before = self._ledger.taken(file)
        if before.complete:
            return Took(name, 0)
        if before.refused == placed:
            return Took(name, 0, "it was refused before")
        done = before.events
        try:
            for events in _behind(self._read(path, name), before.events):
                self._append(file, done, events, Taken(done + len(events)))
                done += len(events)
            _check_unchanged(path, status)
            self._append(file, done, [], Taken(done, complete=True))
        except EventError as error:
            event = unreadable_file_event(name, error)
            self._append(file, done, [event], Taken(done, refused=placed))
            return Took(name, done - before.events, error.primary)
        return Took(name, done - before.events)

    def _read(self, path: Path, name: str) -> Iterator[list[bytes]]:
        relation = None
        if path.suffix.lower() in _TABULAR:
            self._registry.catch_up()
            relation = table_of(name, self._registry.catalog())
            if relation is None:
                raise _nobodys(name, self._registry.catalog())
        for batch in read_file(path, relation, self._op):
            yield batch.events

    def _append(self, file: FileId, done: int, events: list[bytes], after: Taken) -> None:
        """Append events that follow the first `done` of the file, unless somebody else has."""
        check_backlog(self._home, self._max_backlog)
        entries = [taken_entry(file, after), *((RecordKind.EVENT, event) for event in events)]
        with self._home.log.appending() as tail:
            present = self._ledger.taken(file, tail.end)
            if present.complete or present.events > done:
                raise LockedError(
                    f"{file.name} is being taken by another process",
                    hint="let one process watch a directory",
                )
            tail.append(entries)


def _behind(batches: Iterable[list[bytes]], done: int) -> Iterator[list[bytes]]:
    """The events behind the first `done`."""
    for events in batches:
        rest = events[done:]
        done = max(0, done - len(events))
        if rest:
            yield rest


def _check_unchanged(path: Path, before: os.stat_result) -> None:
    after = path.stat()
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise EventError(
            f"{path.name} was changed while it was read",
            detail="what had been read of it is in the log",
            hint="write under a name that begins with a dot, and rename the file when it is done",
        )


def _nobodys(name: str, catalog: Catalog) -> EventError:
    known = ", ".join(catalog.names()[:10]) or "none"
    return EventError(
        f"{name} does not say which table its rows belong to",
        hint=f"name it like a table, or put it into a directory of that name: {known}",
    )
