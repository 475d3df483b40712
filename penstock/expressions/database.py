"""The DuckDB of this process: in memory, without access to anything outside it."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

MEMORY_LIMIT = "256MB"
"""For one batch of rows; long texts that grow beyond it raise an error instead of a crash."""

DISABLED_OPTIMIZERS = "common_subexpressions,expression_rewriter,statistics_propagation"
"""The first moves a repeated subexpression, as in nullif, out of TRY, and fails where it fails. The
second turns `2 * i <> 0` into `i <> 0`, so that an overflow would depend on the value compared
with. The third drops what the other rows of a table make unnecessary."""

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,  # a batch is small, and the other cores run other tasks
    "memory_limit": MEMORY_LIMIT,
    "enable_external_access": "false",
    "temp_directory": "",
    "disabled_optimizers": DISABLED_OPTIMIZERS,
}
_FIXED = "SET TimeZone = 'UTC'; SET lock_configuration = true"
"""An expression must have the same value wherever it is evaluated."""


class Database:
    """Opened on first use; one caller at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: duckdb.DuckDBPyConnection | None = None

    @contextmanager
    def connection(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self._lock:
            if self._connection is None:
                self._connection = duckdb.connect(config=_SETTINGS)
                self._connection.execute(_FIXED)
                atexit.register(self.close)
            yield self._connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


DATABASE = Database()

FAILURES_OF_ROWS = (
    duckdb.DataError,
    duckdb.ProgrammingError,  # a LIKE pattern that ends with its escape character, for instance
    duckdb.NotSupportedError,
    duckdb.OutOfMemoryException,
)
"""Errors that may affect some rows and not others, or all rows of one expression."""


def first_line(error: Exception) -> str:
    """DuckDB's error message without the quoted statement."""
    return str(error).partition("\n")[0][:500]
