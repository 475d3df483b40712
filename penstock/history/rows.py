"""The rows that flow between the steps of a job over the log, all of one schema.

Rows that must be processed together share a place. Spark brings each place into one task and sorts
it, on disk if necessary, so a step holds the state of one place at a time and never that of a
table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple, TypeAlias
from zlib import crc32

import pyarrow as pa

HISTORY_SCHEMA = "place long, offset long, kind int, step int, body binary"
SORTED_BY = ("place", "offset", "kind", "step", "body")

ARROW_SCHEMA = pa.schema(
    [
        ("place", pa.int64()),
        ("offset", pa.int64()),
        ("kind", pa.int32()),
        ("step", pa.int32()),
        ("body", pa.binary()),
    ]
)

ROWS_PER_ARROW_BATCH = 10_000
EVERYWHERE = -1
"""The place of rows that are only counted."""


class HistoryKind(IntEnum):
    """The kind of a row; rows of one place and offset are sorted by it. Kinds of the flow are lower
    (`penstock.flow.kinds`)."""

    REFUSED = 100
    """A number of events (`step`) that could not be applied."""
    CHANGE = 101
    """An event that fits the catalog, at the place of its row."""
    SEED = 102
    """A row that is in a group, at the place of that group."""
    DELIVERY = 103
    """A message for one query, at the place of that query."""
    NOTIFICATION = 104
    TOTALS = 105
    """The totals of one query."""


class HistoryRow(NamedTuple):
    place: int
    offset: int
    kind: int
    step: int
    body: bytes


ArrowStep: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""A step in the form of Spark's `mapInArrow`."""


def place_of(key: bytes) -> int:
    """The same in every process and on every machine. Two keys may share a place."""
    return crc32(key)


def refused(count: int) -> HistoryRow:
    return HistoryRow(EVERYWHERE, 0, HistoryKind.REFUSED, count, b"")


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[HistoryRow]:
    for batch in batches:
        yield from map(HistoryRow, *(column.to_pylist() for column in batch.columns))


def batches_of(rows: Iterable[HistoryRow]) -> Iterator[pa.RecordBatch]:
    """Rows in pieces of bounded size, generated lazily."""
    waiting: list[HistoryRow] = []
    for row in rows:
        waiting.append(row)
        if len(waiting) == ROWS_PER_ARROW_BATCH:
            yield _batch(waiting)
            waiting = []
    if waiting:
        yield _batch(waiting)


def _batch(rows: list[HistoryRow]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, ARROW_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW_SCHEMA)
