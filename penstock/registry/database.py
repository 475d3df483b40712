"""A SQLite file that is derived from the log, and knows up to which offset.

Nothing here has to survive: whatever is lost or deleted is applied again from the log. So commits
do not wait for the disk (synchronous = NORMAL still keeps the file consistent), a file of another
version is made anew, and one that SQLite cannot read may simply be removed.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import (
    URL,
    Column,
    Connection,
    Engine,
    Integer,
    MetaData,
    StaticPool,
    Table,
    create_engine,
    event,
    exc,
    insert,
    select,
)

from penstock.errors import CorruptionError
from penstock.registry.damage import damaged, sqlite_failure
from penstock.storage import RecordLog, Witness, lost_end, open_file, os_errors

SCHEMA_VERSION = 7
"""Rises with every change of the tables, or of the plans stored in them."""
BUSY_SECONDS = 30.0  # catching up with a long log holds the write lock; others wait for it

_WRITES = "penstock_writes"
_APPLIED = "SELECT applied FROM progress"
_SET_APPLIED = "UPDATE progress SET applied = ?"


def progress_table(metadata: MetaData) -> Table:
    """The table with one row that every derived database has."""
    return Table(
        "progress",
        metadata,
        Column("one", Integer, primary_key=True),
        Column("applied", Integer, nullable=False),
    )


class DerivedDatabase:
    """One SQLite file, and `applied`: every record of the log before it has been applied.

    May be used from several threads and processes; writers wait for one another. Without a path
    it is kept in memory, and threads take turns. Of a `shared` file the users may be on several
    machines: SQLite's write-ahead log needs memory that all of them share, a journal does not.
    """

    def __init__(self, path: Path | None, metadata: MetaData, *, shared: bool = False) -> None:
        self.path = path
        self._metadata = metadata
        self._progress = metadata.tables["progress"]
        self._engine = _engine(path, "DELETE" if shared else "WAL")
        self._turn: Any = nullcontext() if path else threading.RLock()
        self._prepare()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A consistent view of the file."""
        errors, values = _sqlite_errors(self.path), _value_errors(self.path)
        with self._turn, errors, values, self._engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that nobody else can write beside: all or nothing."""
        with self._turn, _sqlite_errors(self.path), self._engine.connect() as connection:
            connection.execution_options(**{_WRITES: True})
            with connection.begin():
                yield connection

    def applied(self, connection: Connection) -> int:
        # Asked all the time: SQLAlchemy takes longer to ask than SQLite to answer.
        applied = connection.exec_driver_sql(_APPLIED).scalar_one()
        if not isinstance(applied, int) or applied < 0:
            raise damaged(self.path, "it does not say how much of the log it knows")
        return applied

    def set_applied(self, connection: Connection, offset: int) -> None:
        connection.exec_driver_sql(_SET_APPLIED, (offset,))

    def ahead_of(self, log: RecordLog, applied: int) -> CorruptionError:
        """The log has lost records: this file has seen more than there are."""
        who = "the registry" if self.path is None else self.path.name
        witness = Witness(applied, f"were there before: {who} has seen them")
        return lost_end(log.end, witness, Path("the log") if self.path is None else self.path)

    def clear(self, connection: Connection) -> None:
        """Forget everything, within the caller's transaction: others see the old until it ends."""
        names = "SELECT name FROM sqlite_master WHERE type = 'table'"
        for name in connection.exec_driver_sql(names).scalars().all():
            connection.exec_driver_sql(f'DROP TABLE "{name}"')
        self._metadata.create_all(connection)
        connection.execute(insert(self._progress).values(one=1, applied=0))
        connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def check(self) -> None:
        """CorruptionError if SQLite finds damage."""
        with self.reading() as connection:
            verdict = connection.exec_driver_sql("PRAGMA quick_check").scalar_one()
        if verdict != "ok":
            raise damaged(self.path, verdict)

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row of every table, for comparing."""
        with self.reading() as connection:
            return {
                table.name: [
                    tuple(row)
                    for row in connection.execute(select(table).order_by(*table.primary_key))
                ]
                for table in self._metadata.sorted_tables
            }

    def close(self) -> None:
        self._engine.dispose()

    def _prepare(self) -> None:
        with self.reading() as connection:
            if _version(connection) == SCHEMA_VERSION:
                return
        with self.writing() as connection:
            if _version(connection) != SCHEMA_VERSION:  # nobody was faster
                self.clear(connection)


def insert_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, object]]) -> None:
    """Insert rows that have all columns, of types that SQLite knows. SQLAlchemy would look at every
    value of each, which takes longer than inserting it."""
    names = [column.name for column in table.columns]
    holders = ", ".join("?" * len(names))
    statement = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({holders})"
    connection.exec_driver_sql(statement, [tuple(map(row.__getitem__, names)) for row in rows])


def remove_database(path: Path) -> None:
    """Remove a file and what SQLite keeps beside it."""
    with os_errors("remove", path):
        for suffix in ("-wal", "-shm", "-journal", ""):
            path.with_name(path.name + suffix).unlink(missing_ok=True)


def _version(connection: Connection) -> int:
    return int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())


def _engine(path: Path | None, journal: str) -> Engine:
    arguments = {"timeout": BUSY_SECONDS, "check_same_thread": False}
    if path is None:
        engine = create_engine("sqlite://", connect_args=arguments, poolclass=StaticPool)
    else:
        # Not as text: a home may have a name that means something in the text of a URL.
        engine = create_engine(URL.create("sqlite", database=str(path)), connect_args=arguments)
        if not path.exists():
            with os_errors("make the database", path):
                os.close(open_file(path, os.O_RDWR))  # for whom SQLite's journals are, too

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # the driver must not begin transactions of its own
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute("PRAGMA synchronous = NORMAL")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A transaction that is going to write takes the lock first: one that reads, waits and
        # then finds the file changed could not go on.
        writes = connection.get_execution_options().get(_WRITES)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


@contextmanager
def _sqlite_errors(path: Path | None) -> Iterator[None]:
    try:
        yield
    except exc.DBAPIError as error:
        raise sqlite_failure(error.orig, path) from error
    except exc.InvalidRequestError as error:  # one row was expected, and there are none, or two
        raise damaged(path, str(error)) from error


@contextmanager
def _value_errors(path: Path | None) -> Iterator[None]:
    """Whoever reads makes values of what SQLite gives, and SQLite does not look at types."""
    try:
        yield
    except (TypeError, ValueError, LookupError, msgspec.MsgspecError) as error:
        raise damaged(path, f"a value in it cannot be read ({error})") from error
