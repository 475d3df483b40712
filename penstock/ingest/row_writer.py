"""Rows of CSV and Parquet files as events.

A value that does not fit its column still becomes an event, unchanged: the row then ends in the
quarantine with the reason, and is not lost. Only a file that is wrong as a whole, such as one with
columns that the table does not have, is refused.

A small file may expand enormously: a page of zeros, one long text in every row. So rows become
events one by one, in pieces of limited size.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from penstock.catalog import Relation, ValueType
from penstock.errors import EventError
from penstock.flow.changes import Op
from penstock.flow.events import MAX_EVENT_BYTES, unreadable_file_event

ROWS_PER_FRAME = 4096
BYTES_PER_FRAME = 4 << 20  # 4 MiB, and one row more

MAX_EXPANSION = 1_000
MIN_EXPANDED_BYTES = 256 << 20  # 256 MiB
"""Maximum size of a file's events: a thousand times its bytes, but at least this many: constant
columns take almost no space in Parquet. More is not plausible data."""


class RowWriter:
    """Converts the rows of one file to events, and counts."""

    def __init__(
        self, file: str, file_bytes: int, relation: Relation, op: Op, names: Sequence[str]
    ) -> None:
        self._file = file
        self._most_bytes = max(MIN_EXPANDED_BYTES, MAX_EXPANSION * file_bytes)
        self._relation, self._op, self._names = relation, op, names
        self._encode = msgspec.json.Encoder().encode
        self.rows, self._bytes = 0, 0

    def frames(self, rows: Iterable[Sequence[object]]) -> Iterator[tuple[list[bytes], range]]:
        """The events of some rows in pieces of limited size, each with the numbers of its rows."""
        events: list[bytes] = []
        held = 0
        for row in rows:
            event = self._event(row)
            events.append(event)
            held += len(event)
            if held >= BYTES_PER_FRAME or len(events) >= ROWS_PER_FRAME:
                yield events, self._count(events, held)
                events, held = [], 0
        if events:
            yield events, self._count(events, held)

    def _event(self, row: Sequence[object]) -> bytes:
        event = self.event(dict(zip(self._names, row, strict=True)))
        if len(event) <= MAX_EVENT_BYTES:
            return event
        too_large = EventError(
            f"a row of {self._file} has more than {MAX_EVENT_BYTES} bytes",
            detail=f"so large an event is not accepted; its table is {self._relation.name}",
        )
        return unreadable_file_event(self._file, too_large)

    def event(self, row: dict[str, object]) -> bytes:
        return self._encode({"table": self._relation.name, "op": self._op.value, "row": row})

    def _count(self, events: list[bytes], size: int) -> range:
        first = self.rows + 1
        self.rows += len(events)
        self._bytes += size
        if self._bytes > self._most_bytes:
            raise EventError(
                f"{self._file} holds more than it can mean",
                detail=f"its rows take more than {self._most_bytes:,} bytes as events",
                hint="split the file, if its rows are meant",
            )
        return range(first, self.rows + 1)


def column_types(names: Sequence[str], relation: Relation) -> list[ValueType]:
    return [relation.columns[relation.positions[name.lower()]].type for name in names]


def check_columns(file: str, names: Sequence[str], relation: Relation) -> None:
    seen: dict[str, str] = {}
    for name in names:
        lowered = name.lower()
        if lowered not in relation.positions:
            known = ", ".join(column.name for column in relation.columns)
            raise EventError(
                f"{file} has a column {name!r:.60}, {relation.kind} {relation.name} has not",
                hint=f"its columns are {known}",
            )
        if lowered in seen:
            raise EventError(f"{file} has the column {seen[lowered]!r:.60} twice")
        seen[lowered] = name


def invalid_text(raw: bytes) -> msgspec.Raw:
    """Invalid UTF-8, unchanged: the event is then not valid UTF-8, and is refused for that."""
    escaped = raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
    return msgspec.Raw(b'"' + re.sub(rb"[\x00-\x1f]", b" ", escaped) + b'"')
