"""The tables of a home as they were at an offset, replayed from its log in memory."""

from __future__ import annotations

from collections.abc import Callable, Container
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from penstock.catalog import Relation, Row, RowKey
from penstock.errors import HomeError
from penstock.flow.engine import Engine
from penstock.flow.faults import RecordFaultError, blaming
from penstock.storage.interfaces import AnyHome, RecordKind, RecordLog
from penstock.storage.set_aside import events_not_applied

OnChange: TypeAlias = Callable[[Relation, RowKey, Row | None, Row | None], None]

_TABLES = frozenset({RecordKind.DDL, RecordKind.EVENT})


@dataclass
class Replay:
    """An engine with the rows of all tables before an offset, and no subscriptions."""

    engine: Engine = field(default_factory=Engine)
    end: int = 0
    not_applied: Container[int] = ()
    """Events that were not applied when they were processed."""
    refused: list[int] = field(default_factory=list)
    """The offsets of events that could not be applied."""
    changed: dict[tuple[str, RowKey], int] = field(default_factory=dict)
    """For each existing row, by table and key, the offset at which it last changed."""
    as_inserted: set[tuple[str, RowKey]] = field(default_factory=set)
    """Rows that did not exist before they last changed: that event alone leads to them."""
    on_change: OnChange | None = None
    """Called for every change of a row with the table, the key, the row before and after."""

    def advance(
        self, log: RecordLog, end: int, on_offset: Callable[[int], None] | None = None
    ) -> None:
        """Apply the DDL and the events up to `end`; HomeError if the log was compacted beyond
        it."""
        if end < log.compacted_to:
            raise HomeError(
                f"the tables at offset {end} are no longer known",
                detail=f"the log was compacted up to offset {log.compacted_to}",
            )
        for first, entries in log.frames(self.end, end, _TABLES):
            run: list[tuple[int, bytes]] = []
            for offset, (kind, body) in enumerate(entries, first):
                if kind == RecordKind.EVENT:
                    if offset in self.not_applied:
                        self.refused.append(offset)
                    else:
                        run.append((offset, body))
                elif kind == RecordKind.DDL:
                    self._carry_out(run)
                    run = []
                    # If another release declared it, it changed nothing.
                    with suppress(RecordFaultError), blaming(offset):
                        self.engine.define(offset, body.decode(errors="replace"))
            self._carry_out(run)
            if on_offset is not None:
                on_offset(first + len(entries))
        self.end = end

    def _carry_out(self, run: list[tuple[int, bytes]]) -> None:
        deltas, refused = self.engine.absorb(run)
        self.refused += [one.offset for one in refused]
        changed, as_inserted = self.changed, self.as_inserted
        for offset, relation, key, old, new in deltas:
            place = (relation.name, key)
            if self.on_change is not None:
                self.on_change(relation, key, old, new)
            if old is None:
                changed[place] = offset
                as_inserted.add(place)
            elif new is None:
                del changed[place]
                as_inserted.discard(place)
            else:
                changed[place] = offset
                as_inserted.discard(place)


def replay_tables(
    home: AnyHome,
    end: int,
    on_offset: Callable[[int], None] | None = None,
    on_change: OnChange | None = None,
) -> Replay:
    """The tables at an offset; HomeError if the log was compacted beyond it."""
    replay = Replay(not_applied=events_not_applied(home), on_change=on_change)
    replay.advance(home.log, end, on_offset)
    return replay
