"""A small SQLite file that the processes of a machine share and that may be lost.

It must never cause an error: a damaged file is set aside and recreated, one that is locked, full or
not writable is skipped this time. It belongs on a local disk: SQLite's write-ahead log needs shared
memory.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

BUSY_SECONDS = 1.0
_T = TypeVar("_T")


class SharedFile:
    """Any number of threads and processes may use it at once."""

    def __init__(self, path: Path, version: int, statements: Sequence[str]) -> None:
        """`statements` create the tables. A file with another `version` is recreated."""
        self.set_aside = 0
        """How often a damaged file was found."""
        self.path = path
        self._version = version
        self._statements = statements
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[int, int] | None = None
        """The process that opened the file, and the file's number on its disk."""

    def use(self, action: Callable[[sqlite3.Connection], _T], otherwise: _T) -> _T:
        """Run an action on the file; on a new file if it is damaged."""
        with self._lock:
            for _ in range(2):
                try:
                    return action(self._connected())
                except (sqlite3.OperationalError, OSError):
                    self._roll_back()
                    return otherwise  # locked, full or not writable: maybe next time
                except (sqlite3.DatabaseError, ValueError):
                    self._set_aside()
            return otherwise

    def close(self) -> None:
        with self._lock:
            self._disconnect()

    def _connected(self) -> sqlite3.Connection:
        if self._connection is not None and self._opened is not None:
            if self._opened[0] == os.getpid():
                return self._connection
            self._connection = None  # a connection does not survive a fork
        self._create_if_missing()
        self._opened = os.getpid(), os.stat(self.path).st_ino
        connection = self._connection = sqlite3.connect(
            self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version not in (0, self._version):
            raise ValueError("a file of another release")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        if version == 0:
            self._create_tables(connection)
        return connection

    def _create_if_missing(self) -> None:
        """Accessible to everyone who may write to its directory: its owner, or a group."""
        descriptor = os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            is_shared = os.stat(self.path.parent).st_mode & stat.S_IWGRP
            if is_shared and not os.fstat(descriptor).st_size:
                os.fchmod(descriptor, 0o660)  # SQLite's files beside it get the same mode
        finally:
            os.close(descriptor)

    def _create_tables(self, connection: sqlite3.Connection) -> None:
        """The first process does it; the others wait, and find it done."""
        connection.execute("BEGIN IMMEDIATE")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            for statement in (*self._statements, f"PRAGMA user_version = {self._version}"):
                connection.execute(statement)
        connection.execute("COMMIT")

    def _roll_back(self) -> None:
        if self._connection is not None and self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    def _set_aside(self) -> None:
        """Rename the file, unless another process has done so: then there is a new one."""
        self._disconnect()
        self.set_aside += 1
        with suppress(OSError):
            if self._opened is not None and os.stat(self.path).st_ino == self._opened[1]:
                os.replace(self.path, f"{self.path}.damaged")
                for suffix in ("-wal", "-shm"):
                    with suppress(FileNotFoundError):
                        os.remove(f"{self.path}{suffix}")

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()
