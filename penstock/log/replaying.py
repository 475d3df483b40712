"""The tables of a home as they were at an offset, replayed from its log in memory."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from penstock.engine.engine import Engine
from penstock.engine.faults import RecordFaultError, blaming
from penstock.errors import HomeError
from penstock.log.interfaces import AnyHome, RecordKind
from penstock.log.set_aside import events_not_applied

_TABLES = frozenset({RecordKind.DDL, RecordKind.EVENT})


@dataclass
class Replay:
    """An engine with the rows of all tables before an offset, and no subscriptions."""

    engine: Engine = field(default_factory=Engine)
    refused: list[int] = field(default_factory=list)
    """The offsets of events that could not be carried out."""


def replay_tables(
    home: AnyHome, end: int, on_offset: Callable[[int], None] | None = None
) -> Replay:
    """Carry out the DDL and the events before `end`, except those that whoever processed them
    refused; HomeError if the log no longer knows them."""
    log, not_applied = home.log, events_not_applied(home)
    if end < log.compacted_to:
        raise HomeError(
            f"the tables at offset {end} are no longer known",
            detail=f"the log was compacted up to offset {log.compacted_to}",
        )
    replay = Replay()
    for first, entries in log.frames(0, end, _TABLES):
        run: list[tuple[int, bytes]] = []
        for offset, (kind, body) in enumerate(entries, first):
            if kind == RecordKind.EVENT:
                if offset in not_applied:
                    replay.refused.append(offset)
                else:
                    run.append((offset, body))
            elif kind == RecordKind.DDL:
                _carry_out(replay, run)
                run = []
                # Declared by another release, perhaps: then it changed nothing.
                with suppress(RecordFaultError), blaming(offset):
                    replay.engine.define(offset, body.decode(errors="replace"))
        _carry_out(replay, run)
        if on_offset is not None:
            on_offset(first + len(entries))
    return replay


def _carry_out(replay: Replay, run: list[tuple[int, bytes]]) -> None:
    if run:
        outcome = replay.engine.events(run)
        replay.refused += [offset for offset, _, _ in outcome.refused]
