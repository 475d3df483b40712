"""A SQLite file derived from the log, which records up to which offset.

Nothing here has to survive: whatever is lost or deleted is applied again from the log. So commits
do not wait for the disk (synchronous = NORMAL still keeps the file consistent), a file of another
version is rebuilt, and one that SQLite cannot read may simply be removed.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import msgspec

from penstock.errors import CorruptionError
from penstock.registry.damage import damaged, sqlite_failure
from penstock.storage import RecordLog, Witness, lost_end, open_file, os_errors

SCHEMA_VERSION = 8
"""Raised with every change of the tables, or of the plans stored in them."""
BUSY_SECONDS = 30.0  # catching up with a long log holds the write lock; others wait for it
MAX_IDLE_CONNECTIONS = 5
"""Idle connections kept for reuse: about as many as concurrent threads."""


@dataclass(frozen=True)
class Table:
    """Columns with their declarations, and the columns of each index by its name."""

    name: str
    columns: Mapping[str, str]
    indexes: Mapping[str, str] = field(default_factory=dict)

    @property
    def definition(self) -> Iterator[str]:
        """The statements that create it."""
        columns = ", ".join(f'"{name}" {kind}' for name, kind in self.columns.items())
        yield f"CREATE TABLE {self.name} ({columns})"
        for name, on in self.indexes.items():
            yield f"CREATE INDEX {name} ON {self.name} {on}"

    @property
    def all_rows(self) -> str:
        """The start of a query for whole rows."""
        return f"SELECT {self._names} FROM {self.name}"

    def insert(self, connection: Connection, rows: Iterable[Mapping[str, object]]) -> None:
        """Insert rows that have all columns."""
        holders = ", ".join("?" * len(self.columns))
        statement = f"INSERT INTO {self.name} ({self._names}) VALUES ({holders})"
        values = (tuple(map(row.__getitem__, self.columns)) for row in rows)
        connection.executemany(statement, values)

    @property
    def _names(self) -> str:
        return ", ".join(f'"{name}"' for name in self.columns)


PROGRESS = Table("progress", {"one": "INTEGER PRIMARY KEY", "applied": "INTEGER NOT NULL"})
"""Has one row; every derived database has this table."""


class DerivedDatabase:
    """One SQLite file, and `applied`: every record of the log before it has been applied.

    Safe for several threads and processes; writers are serialised. Without a path the database is
    in memory, and threads take turns. A `shared` file may be used from several machines: SQLite's
    write-ahead log needs shared memory, a rollback journal does not.
    """

    def __init__(self, path: Path | None, tables: Sequence[Table], *, shared: bool = False) -> None:
        self.path = path
        self._tables = (PROGRESS, *tables)
        self._journal = "DELETE" if shared else "WAL"
        self._turn: Any = nullcontext() if path else threading.RLock()
        self._idle: list[Connection] = []
        if path is not None and not path.exists():
            with os_errors("make the database", path):
                os.close(open_file(path, os.O_RDWR))  # SQLite's journals inherit the permissions
        self._prepare()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A consistent view of the file."""
        with _value_errors(self.path), self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """An exclusive write transaction: all or nothing."""
        # Takes the write lock first: a transaction that reads, waits and then finds the file
        # changed could not continue.
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        with self._turn, _sqlite_errors(self.path):
            connection = self._connect()
            try:
                connection.execute(begin)
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                connection.rollback()
                raise
            finally:
                self._release(connection)

    def applied(self, connection: Connection) -> int:
        found = connection.execute("SELECT applied FROM progress").fetchall()
        if len(found) != 1 or not isinstance(found[0][0], int) or found[0][0] < 0:
            raise damaged(self.path, "it does not say how much of the log it knows")
        return found[0][0]

    def set_applied(self, connection: Connection, offset: int) -> None:
        connection.execute("UPDATE progress SET applied = ?", (offset,))

    def ahead_of(self, log: RecordLog, applied: int) -> CorruptionError:
        """The error for a log that has lost records: this file has applied more than there are."""
        who = "the registry" if self.path is None else self.path.name
        witness = Witness(applied, f"were there before: {who} has seen them")
        return lost_end(log.end, witness, Path("the log") if self.path is None else self.path)

    def clear(self, connection: Connection) -> None:
        """Delete everything, within the caller's transaction: others see the old content until it
        ends."""
        names = "SELECT name FROM sqlite_master WHERE type = 'table'"
        for (name,) in connection.execute(names).fetchall():
            connection.execute(f'DROP TABLE "{name}"')
        for table in self._tables:
            for statement in table.definition:
                connection.execute(statement)
        PROGRESS.insert(connection, [{"one": 1, "applied": 0}])
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def check(self) -> None:
        """CorruptionError if SQLite finds damage."""
        with self.reading() as connection:
            (verdict,) = connection.execute("PRAGMA quick_check").fetchone()
        if verdict != "ok":
            raise damaged(self.path, verdict)

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of every table, ordered by its first columns, for comparison."""
        with self.reading() as connection:
            return {
                table.name: connection.execute(f"{table.all_rows} ORDER BY 1").fetchall()
                for table in self._tables
            }

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _prepare(self) -> None:
        with self.reading() as connection:
            if _version(connection) == SCHEMA_VERSION:
                return
        with self.writing() as connection:
            if _version(connection) != SCHEMA_VERSION:  # no other process was faster
                self.clear(connection)

    def _connect(self) -> Connection:
        """An idle connection, or a new one. In memory there is only one, which is idle when a
        thread gets its turn."""
        try:
            return self._idle.pop()
        except IndexError:
            connection = sqlite3.connect(
                # Absolute: a home may have a name that is special to SQLite, like file:x.
                ":memory:" if self.path is None else self.path.absolute(),
                timeout=BUSY_SECONDS,
                isolation_level=None,  # the driver must not begin transactions of its own
                check_same_thread=False,
            )
        try:
            connection.execute(f"PRAGMA journal_mode = {self._journal}")
            connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _release(self, connection: Connection) -> None:
        if len(self._idle) < MAX_IDLE_CONNECTIONS:
            self._idle.append(connection)
        else:
            connection.close()


def remove_database(path: Path) -> None:
    """Remove a file and the journals that SQLite keeps beside it."""
    with os_errors("remove", path):
        for suffix in ("-wal", "-shm", "-journal", ""):
            path.with_name(path.name + suffix).unlink(missing_ok=True)


def _version(connection: Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def _sqlite_errors(path: Path | None) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise sqlite_failure(error, path) from error


@contextmanager
def _value_errors(path: Path | None) -> Iterator[None]:
    """Converts errors of decoding values: SQLite does not check types."""
    try:
        yield
    except (TypeError, ValueError, LookupError, msgspec.MsgspecError) as error:
        raise damaged(path, f"a value in it cannot be read ({error})") from error
