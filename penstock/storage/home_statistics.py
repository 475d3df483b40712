"""Statistics of a home's history, one file per offset up to which the log was read.

Statistics affect the cost of work, never a result. Code that uses them may skip an unreadable file;
code that displays them reports it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from penstock.catalog import Row
from penstock.errors import HomeError, PenstockError
from penstock.packing import pack, unpack
from penstock.storage.batch_codec import batch_name, encode_batch, parse_batch_name, read_batch
from penstock.storage.disk import FileFormat, corrupt, os_errors, sync_directory, write_aside
from penstock.storage.file_access import make_directory
from penstock.storage.interfaces import BatchHeader

STATISTICS_FORMAT = FileFormat("statistics file", b"PENSTSTA", version=1)
STATISTICS_DIRECTORY = "statistics"
STATISTICS_SUFFIX = ".statistics"
KEPT_FILES = 8


class ColumnStatistics(msgspec.Struct, frozen=True):
    """One column of a table: its current values, and how subscriptions constrain it."""

    name: str
    nulls: float
    """The share of NULLs."""
    distinct: int
    """The approximate number of distinct values."""
    frequency: float
    """The share of the conjunctions over this table that have a condition on it."""
    spread: float
    """The effective number of conditions: 1 / (probability that two of them are equal)."""
    together: tuple[float, ...]
    """The share of conjunctions that have conditions on it and on each other column."""
    selectivity: float
    """The share of changed rows that satisfy a condition on it, on average; 1 without any."""


class TableStatistics(msgspec.Struct, frozen=True):
    name: str
    inserts: int
    updates: int
    deletes: int
    refused: int
    rows: int
    """At the end of the log that was read."""
    conjunctions: int
    """Boxes of subscriptions over this table, including those in joins."""
    columns: tuple[ColumnStatistics, ...]
    sample: tuple[tuple[Any, ...], ...]
    """Rows after changes, in stored values; each change was equally likely to be drawn."""

    @property
    def changes(self) -> int:
        return self.inserts + self.updates + self.deletes

    def attribute_order(self) -> list[str]:
        """The columns in the order in which a diagram should test them, from the root."""
        # Lazy: matchers take half a second to load, and few readers of statistics need them.
        import numpy as np

        from penstock.matching.attribute_order import AttributeStatistics, attribute_order

        told = AttributeStatistics(
            frequency=np.array([column.frequency for column in self.columns]),
            spread=np.array([column.spread for column in self.columns]),
            together=np.array([column.together for column in self.columns]),
        )
        return [self.columns[i].name for i in attribute_order(told)]


class EdgeStatistics(msgspec.Struct, frozen=True):
    """A join condition that subscriptions use. Numbers come in pairs, one for each side."""

    name: str
    tables: tuple[str, str]
    columns: tuple[tuple[str, ...], tuple[str, ...]]
    rows: tuple[int, int]
    values: tuple[int, int]
    """Number of join values of the side."""
    largest: tuple[int, int]
    """Number of rows of the most frequent join value."""
    fan_out: tuple[float, float]
    """How many rows of the other side a row of this side joins, on average."""


class HomeStatistics(msgspec.Struct, frozen=True):
    """Statistics of the records before `offset`."""

    offset: int
    subscriptions: int
    unreadable: int
    """Events that could not be read as a change of any table."""
    tables: tuple[TableStatistics, ...]
    edges: tuple[EdgeStatistics, ...]

    def table(self, name: str) -> TableStatistics | None:
        return next((table for table in self.tables if table.name == name), None)


def samples(statistics: HomeStatistics | None) -> dict[str, tuple[Row, ...]]:
    """Sample rows by table, representative of those to come."""
    tables = () if statistics is None else statistics.tables
    return {table.name: table.sample for table in tables}


def save_statistics(home: Path, statistics: HomeStatistics) -> Path:
    """Write a file atomically; old ones are removed when there are many."""
    header = BatchHeader(0, statistics.offset, statistics.offset)
    directory = home / STATISTICS_DIRECTORY
    path = directory / batch_name(0, statistics.offset, STATISTICS_SUFFIX)
    with os_errors("write statistics", path):
        if not directory.exists():
            make_directory(directory)
            sync_directory(home)
        body = pack(msgspec.to_builtins(statistics))
        write_aside(path, *encode_batch(STATISTICS_FORMAT, header, body))
        for old in statistics_files(home)[:-KEPT_FILES]:
            if old != path:
                old.unlink(missing_ok=True)
    return path


def statistics_files(home: Path) -> list[Path]:
    """The existing files by offset."""
    found = []
    for path in (home / STATISTICS_DIRECTORY).glob(f"*{STATISTICS_SUFFIX}"):
        place = parse_batch_name(path.name, STATISTICS_SUFFIX)
        if place is not None:
            found.append((place, path))
    return [path for _, path in sorted(found)]


def load_statistics(home: Path) -> HomeStatistics:
    """The newest; HomeError if there are none, CorruptionError if they are damaged."""
    files = statistics_files(home)
    if not files:
        raise HomeError(
            f"{home} has no statistics", hint=f"have its history read: penstock analyse {home}"
        )
    try:
        _, body = read_batch(STATISTICS_FORMAT, files[-1])
        return _statistics(body, files[-1])
    except PenstockError as error:
        error.hint = f"have the history read again: penstock analyse {home}"
        raise


def _statistics(body: bytes, path: Path) -> HomeStatistics:
    try:
        return msgspec.convert(unpack(body), HomeStatistics)
    except msgspec.MsgspecError as error:
        raise corrupt(path, 0, f"its content cannot be read: {error}") from None


def usable_statistics(home: Path) -> HomeStatistics | None:
    """The newest, or None: for code that also works without statistics."""
    try:
        return load_statistics(home)
    except PenstockError:
        return None
