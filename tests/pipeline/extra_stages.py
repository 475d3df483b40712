"""A flow with two stages more than the usual one: one that is keyed, one that is not."""

from __future__ import annotations

from typing import Any

from penstock.flow.exchange import StageInput, StageOutput
from penstock.flow.kinds import Kind
from penstock.flow.stage import BatchView, Key
from penstock.flow.stages import Decode, Groups, Rows

MOST_CHANGES = 2


class Uppercase:
    """Writes the names of changed rows in capitals."""

    name = "uppercase"
    takes = frozenset({Kind.CHANGE})
    gives = frozenset({Kind.CHANGE})
    keyed_by: Key | None = None

    def open_store(self, entries: object) -> None:
        return None

    def advance(self, given: StageInput, store: None, view: BatchView) -> StageOutput:
        out = StageOutput(view.spread)
        for offset, table, op, key, row, columns in given.rows(Kind.CHANGE):
            loud = tuple(value.upper() if isinstance(value, str) else value for value in row)
            change = (offset, table, op, key, loud, columns)
            out.rows(view.spread.of_row(table, key), Kind.CHANGE).append(change)
        return out


class Limit:
    """Lets each row be changed so many times, and drops all further changes."""

    name = "limit"
    takes = frozenset({Kind.CHANGE})
    gives = frozenset({Kind.CHANGE})
    keyed_by: Key | None = Key.ROW

    def open_store(self, entries: Any) -> Counts:
        return Counts(entries)

    def advance(self, given: StageInput, store: Counts, view: BatchView) -> StageOutput:
        out = StageOutput(view.spread)
        for change in given.rows(Kind.CHANGE):
            if store.count(repr((change[1], change[3])).encode()) <= MOST_CHANGES:
                out.rows(given.bucket, Kind.CHANGE).append(change)
        return out


class Counts:
    """How often each row was changed."""

    def __init__(self, entries: Any) -> None:
        self._entries = entries

    def count(self, key: bytes) -> int:
        number = int(self._entries.get(key) or b"0") + 1
        self._entries.put(key, str(number).encode())
        return number

    def flush(self) -> None:
        """Everything is written at once."""


STAGES = (Decode(), Uppercase(), Limit(), Rows(), Groups())
