"""A result cache in a SQLite file, shared by the processes of a machine and kept between runs.

A cache must never cause an error (`penstock.operators.shared_file`). Every entry has a checksum.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from penstock.operators.interface import Result
from penstock.operators.results import DEFAULT_CACHE_BYTES, CacheCounts, entry_of, read_entry
from penstock.operators.shared_file import SharedFile

OPERATOR_RESULTS = "operators.db"
"""In a home."""
FORMAT = 1
"""Version of the table and its entries, in the file's user_version. A file of another version is
recreated."""
REFRESH_SECONDS = 600
"""How stale the time of the last use may be, so that look-ups rarely write."""
ROW_OVERHEAD_BYTES = 100
"""Key, time, entries in both trees, and unused space of pages."""
_KEYS_PER_QUERY = 500

_STATEMENTS = f"""
CREATE TABLE results (key BLOB NOT NULL UNIQUE, entry BLOB NOT NULL, used INTEGER NOT NULL);;
CREATE INDEX by_use ON results (used);;
CREATE TABLE total (bytes INTEGER NOT NULL);;
INSERT INTO total VALUES (0);;
CREATE TRIGGER count_new AFTER INSERT ON results BEGIN
  UPDATE total SET bytes = bytes + length(NEW.entry) + {ROW_OVERHEAD_BYTES};
END;;
CREATE TRIGGER count_dropped AFTER DELETE ON results BEGIN
  UPDATE total SET bytes = bytes - length(OLD.entry) - {ROW_OVERHEAD_BYTES};
END
""".split(";;")
_OLDEST = f"SELECT key, length(entry) + {ROW_OVERHEAD_BYTES} FROM results ORDER BY used LIMIT 500"


class FileResults:
    """A cache in a file. Any number of threads and processes may use it at once."""

    def __init__(
        self,
        path: Path,
        max_bytes: int = DEFAULT_CACHE_BYTES,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`max_bytes` bounds the entries; the pages of the file may take half as much again."""
        self.counts = CacheCounts()
        self._file = SharedFile(path, FORMAT, _STATEMENTS)
        self._max_bytes = max_bytes
        self._clock = clock

    @property
    def set_aside(self) -> int:
        """How often a damaged file was found."""
        return self._file.set_aside

    def find(self, keys: Sequence[bytes]) -> dict[bytes, Result]:
        nothing: dict[bytes, Result] = {}
        found = self._file.use(lambda connection: self._select(connection, keys), nothing)
        self.counts.hits += len(found)
        self.counts.misses += len(set(keys)) - len(found)
        return found

    def keep(self, results: Mapping[bytes, Result]) -> None:
        if results:
            self._file.use(lambda connection: self._insert(connection, results), None)

    def close(self) -> None:
        self._file.close()

    def _select(self, connection: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, Result]:
        found: dict[bytes, Result] = {}
        stale: list[bytes] = []
        now = int(self._clock() * 1e6)
        for start in range(0, len(keys), _KEYS_PER_QUERY):
            some = keys[start : start + _KEYS_PER_QUERY]
            marks = ",".join("?" * len(some))
            query = f"SELECT key, entry, used FROM results WHERE key IN ({marks})"
            for key, entry, used in connection.execute(query, some):
                found[key] = read_entry(key, entry)
                if now - used > REFRESH_SECONDS * 1e6:
                    stale.append(key)
        if stale:
            with suppress(sqlite3.OperationalError):  # busy: some other time
                update = "UPDATE results SET used = ? WHERE key = ?"
                connection.executemany(update, [(now, key) for key in stale])
        return found

    def _insert(self, connection: sqlite3.Connection, results: Mapping[bytes, Result]) -> None:
        now = int(self._clock() * 1e6)
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("DELETE FROM results WHERE key = ?", [(key,) for key in results])
        connection.executemany(
            "INSERT INTO results VALUES (?, ?, ?)",
            [(key, entry_of(key, result), now) for key, result in results.items()],
        )
        self._drop_oldest(connection)
        connection.execute("COMMIT")

    def _drop_oldest(self, connection: sqlite3.Connection) -> None:
        (total,) = connection.execute("SELECT bytes FROM total").fetchone()
        excess = total - self._max_bytes
        while excess > 0:
            oldest = connection.execute(_OLDEST).fetchall()
            dropped: list[tuple[bytes]] = []
            for key, size in oldest:
                if excess > 0:
                    dropped.append((key,))
                    excess -= size
            connection.executemany("DELETE FROM results WHERE key = ?", dropped)
            self.counts.dropped += len(dropped)
            if not dropped:
                return
