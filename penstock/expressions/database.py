"""The DuckDB of this process: in memory, without access to anything outside of it."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

MEMORY_LIMIT = "256MB"
"""For one batch of rows; long texts that are multiplied beyond it are an error, not a crash."""

DISABLED_OPTIMIZERS = "common_subexpressions,expression_rewriter,statistics_propagation"
"""The first takes what an expression has twice, as nullif has, out of TRY, and stops where that
fails. The second makes `i <> 0` of `2 * i <> 0`, so that an overflow would depend on what a value
is compared with. The third leaves out what the other rows of a table make needless."""

_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "threads": 1,  # a batch is small, and the other cores run other tasks
    "memory_limit": MEMORY_LIMIT,
    "enable_external_access": "false",
    "temp_directory": "",
    "disabled_optimizers": DISABLED_OPTIMIZERS,
}
_FIXED = "SET TimeZone = 'UTC'; SET lock_configuration = true"
"""What an expression means must not depend on where it is evaluated."""


class Database:
    """Made when it is needed; one caller at a time."""

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
    duckdb.ProgrammingError,  # a pattern of LIKE that ends with its escape character, for instance
    duckdb.NotSupportedError,
    duckdb.OutOfMemoryException,
)
"""What may happen to some rows and not to others, or to all rows of one expression."""


def first_line(error: Exception) -> str:
    """What DuckDB says about a failure, without the text that it points into."""
    return str(error).partition("\n")[0][:500]
