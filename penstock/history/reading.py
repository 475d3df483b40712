"""The first step of every job: a range of the log as changes checked against the catalog."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise

from penstock.catalog import Catalog
from penstock.errors import ChangeError, HomeError, NoChangeError
from penstock.flow.changes import Checked
from penstock.flow.events import read_change
from penstock.flow.faults import RecordFaultError, blaming
from penstock.sql import parse_declaration
from penstock.storage import Home, RecordKind, RecordLog, events_not_applied

RECORDS_PER_TASK = 50_000
"""A task of this many records takes about a second: long against its start, cheap to repeat."""

_DDL = frozenset({RecordKind.DDL})
_EVENTS = frozenset({RecordKind.EVENT})


def catalog_at(log: RecordLog, end: int) -> Catalog:
    """The tables and streams that the records before `end` declare.

    From the log and not from the registry: a job writes nothing that other processes read.
    """
    catalog = Catalog()
    for record in log.read(0, end, _DDL):
        with suppress(RecordFaultError), blaming(record.offset):  # it changed nothing
            catalog.add(parse_declaration(record.body.decode()), record.offset)
    return catalog


def checked_end(home: Home, start: int, end: int | None) -> int:
    """The end of a range of the log; HomeError if the log does not hold it."""
    log_end = home.log.end
    wanted = log_end if end is None else end
    if not 0 <= start <= wanted <= log_end:
        raise HomeError(
            f"offsets {start} to {wanted} are not a stretch of this log",
            detail=f"it ends at offset {log_end}",
            hint="give a start and an end between 0 and the end of the log, in this order",
        )
    return wanted


def check_known(home: Home, start: int) -> None:
    """HomeError if the tables at an offset are no longer known, because the log was compacted."""
    compacted_to = home.log.compacted_to
    if start < compacted_to:
        raise HomeError(
            f"what happened at offset {start} is no longer known",
            detail=f"the log was compacted up to offset {compacted_to}",
            hint=f"begin there: --from {compacted_to}",
        )


def stretches(start: int, end: int, records: int = RECORDS_PER_TASK) -> list[tuple[int, int]]:
    """The log from `start` to `end` in ranges; at least one, unless both are 0."""
    return list(pairwise([*range(start, max(start + 1, end), records), end])) if end else []


def changes_in(
    log: RecordLog,
    stretch: tuple[int, int],
    catalog: Catalog,
    not_applied: Mapping[int, ChangeError],
) -> Iterator[tuple[int, Checked | ChangeError]]:
    """The events of a range as changes, or what is wrong with them."""
    for first, entries in log.frames(*stretch, _EVENTS):
        for offset, (kind, body) in enumerate(entries, first):
            if kind == RecordKind.EVENT:
                change = not_applied.get(offset) or _checked(body, catalog, offset)
                if not isinstance(change, NoChangeError):
                    yield offset, change


def _checked(body: bytes, catalog: Catalog, offset: int) -> Checked | ChangeError:
    try:
        return read_change(body, catalog, offset)
    except ChangeError as error:
        return error


def read_stretches(
    path: str, all_stretches: Sequence[tuple[int, int]], numbers: Sequence[int], catalog: Catalog
) -> Iterator[tuple[int, Checked | ChangeError]]:
    """The changes of the ranges with these numbers; opens the home in the calling process."""
    home = Home.open(path)
    not_applied = events_not_applied(home)
    for number in numbers:
        yield from changes_in(home.log, all_stretches[number], catalog, not_applied)
