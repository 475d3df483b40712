"""The ledger of ingested files, derived from the log.

The truth is in the log: a frame with events of a file begins with a record that names the file and
the number of its events that are in the log by then. Frames are atomic, so that record and its
events cannot be separated. The database is derived from it, like the registry, to avoid reading the
whole log.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from sqlite3 import Connection

import msgspec

from penstock.errors import HomeError
from penstock.registry import DerivedDatabase, Table, remove_database
from penstock.storage import UNREADABLE_BODY, Home, RecordKind, RecordLog

_TAKEN = frozenset({RecordKind.TAKEN})

_FILES = Table(
    "files",
    {
        "name": "TEXT NOT NULL",
        "digest": "TEXT NOT NULL",
        "events": "INTEGER NOT NULL",
        "complete": "INTEGER NOT NULL",
        "refused": "INTEGER NOT NULL",
        "offset": "INTEGER NOT NULL, PRIMARY KEY (name, digest)",
    },
)


class TakenBody(msgspec.Struct, frozen=True):
    """The body of a TAKEN record: how much of the file is in the log up to here."""

    file: str
    digest: str
    events: int
    complete: bool = False
    refused: int = 0


_DECODER = msgspec.json.Decoder(TakenBody)


@dataclass(frozen=True, slots=True)
class FileId:
    """A file is identified by its name and its content: with a new name, or other content, it is
    another one."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class IngestRecord:
    """How much of a file is in the log.

    `refused` is the inode change time of a file that could not be read: the unchanged file need not
    be tried again, but a replaced one is.
    """

    events: int = 0
    complete: bool = False
    refused: int = 0


def decode_taken(body: bytes) -> TakenBody:
    try:
        return _DECODER.decode(body)
    except UNREADABLE_BODY as error:
        raise HomeError(
            "a TAKEN record of the log cannot be read",
            detail=str(error),
            hint="it was written by another release: use that one",
        ) from None


def ledger_name(name: str) -> str:
    """The name of a file in the ledger: text, and distinct for distinct names.

    File names are bytes. Invalid UTF-8 is escaped, and a slash is appended, which cannot occur at
    the end of a file name; so names stay distinct.
    """
    raw = os.fsencode(name)
    try:
        return raw.decode()
    except UnicodeDecodeError:
        escaped = raw.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")
        return f"{escaped}/"


def encode_taken(file: FileId, taken: IngestRecord) -> tuple[RecordKind, bytes]:
    """The record, after its reader has decoded it to what was meant."""
    meant = TakenBody(file.name, file.digest, taken.events, taken.complete, taken.refused)
    try:
        body = msgspec.json.encode(meant)
        if _DECODER.decode(body) == meant:
            return RecordKind.TAKEN, body
        why = "what would be read is not what was meant"
    except (TypeError, ValueError) as error:  # a name that is not Unicode, for instance
        why = str(error)
    raise HomeError(
        f"the log cannot say that {file.name!r:.200} was taken",
        detail=why[:500],
        hint="give the file a name in UTF-8",
    )


def remove_ledger(home: Home) -> None:
    """Remove the derived database, even if SQLite cannot read it: it is rebuilt from the log."""
    remove_database(home.sources_db)


class IngestLedger:
    """The files of a home. Safe for several processes; each catches up before a query."""

    def __init__(self, home: Home) -> None:
        self._log: RecordLog = home.log
        self._database = DerivedDatabase(home.sources_db, [_FILES], shared=home.shared)

    def close(self) -> None:
        self._database.close()

    def taken(self, file: FileId, to: int | None = None) -> IngestRecord:
        """How much of the file the records before `to` hold; None: all records."""
        self._catch_up(self._log.end if to is None else to)
        wanted = "SELECT events, complete, refused FROM files WHERE name = ? AND digest = ?"
        with self._database.reading() as connection:
            row = connection.execute(wanted, (file.name, file.digest)).fetchone()
        if row is None:
            return IngestRecord()
        events, complete, refused = row
        return IngestRecord(events, bool(complete), refused)

    def unfinished(self, name: str) -> dict[str, int]:
        """For partly ingested files of that name, the number of events in the log, by the digest of
        their content."""
        self._catch_up(self._log.end)
        wanted = "SELECT digest, events FROM files WHERE name = ? AND complete = 0 AND events > 0"
        with self._database.reading() as connection:
            return dict(connection.execute(wanted, (name,)))

    def _catch_up(self, to: int) -> None:
        with self._database.reading() as connection:
            applied = self._database.applied(connection)
        if applied > to and applied > self._log.end:
            raise self._database.ahead_of(self._log, applied)
        if applied >= to:
            return
        with self._database.writing() as connection:
            applied = self._database.applied(connection)
            if applied < to:
                for record in self._log.read(applied, to, _TAKEN):
                    _apply(connection, record.offset, decode_taken(record.body))
                self._database.set_applied(connection, to)


def _apply(connection: Connection, offset: int, body: TakenBody) -> None:
    known = (body.file, body.digest)
    connection.execute("DELETE FROM files WHERE name = ? AND digest = ?", known)
    row = {
        "name": body.file,
        "digest": body.digest,
        "events": body.events,
        "complete": int(body.complete),
        "refused": body.refused,
        "offset": offset,
    }
    _FILES.insert(connection, [row])
