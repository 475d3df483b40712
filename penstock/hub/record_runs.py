"""Splits records of the log into runs that a Hub processes at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.storage import Record, RecordKind

MAX_RUN_EVENTS = 10_000
"""Maximum events per match call; bounds memory."""


def split_runs(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Consecutive events together, up to a limit; every other record alone."""
    run: list[Record] = []
    for record in records:
        if run and (record.kind is not RecordKind.EVENT or len(run) == MAX_RUN_EVENTS):
            yield run
            run = []
        if record.kind is RecordKind.EVENT:
            run.append(record)
        else:
            yield [record]
    if run:
        yield run
