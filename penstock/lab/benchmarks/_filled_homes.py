"""Homes filled with a workload, by a process that ends before anything is measured.

Generating a workload of a million rows and subscriptions takes gigabytes, which must not count as
the pipeline's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from penstock.client import Initial
from penstock.lab.benchmarks._apart import apart
from penstock.lab.workloads.streams import stream_workload
from penstock.registry import MAX_SUBSCRIPTIONS_AT_ONCE, Registry
from penstock.storage import Home, RecordKind

FRAME_EVENTS = 2_000


@dataclass(frozen=True)
class FilledHome:
    """A home with tables, subscriptions and rows, and the events that follow."""

    home: Home
    events: Iterator[bytes]
    """As many as requested; not in the home yet."""

    def append(self, count: int, at_once: int = FRAME_EVENTS) -> None:
        """Append the next events to the log, `at_once` per frame: a batch has whole frames."""
        while count:
            part = take(self.events, min(count, at_once))
            append(self.home, part)
            count -= len(part)


def filled_home(
    path: Path, workload: str, subscriptions: int, events: int, initial: Initial = Initial.CONTENT
) -> FilledHome:
    """Create a home, with this many events to follow."""
    later = path.with_suffix(".events")
    apart(_fill, path, later, workload, subscriptions, events, initial)
    return FilledHome(Home.open(path), _lines(later))


def _fill(
    path: Path, later: Path, name: str, subscriptions: int, events: int, initial: Initial
) -> None:
    workload = stream_workload(name, subscriptions)
    home = Home.create(path)
    with Registry(home) as registry:
        for sql in workload.tables:
            registry.define(sql)
        _subscribe(registry, workload.subscriptions, initial)
    for first in range(0, len(workload.rows), FRAME_EVENTS):
        append(home, workload.rows[first : first + FRAME_EVENTS])
    with later.open("wb") as file:
        file.writelines(event + b"\n" for event in islice(workload.events, events))


def subscribe(path: Path, workload: str, subscriptions: int) -> None:
    """Register subscriptions in a home that was filled without any. Call it in a separate
    process."""
    with Registry(Home.open(path)) as registry:
        _subscribe(registry, stream_workload(workload, subscriptions).subscriptions)


def _subscribe(registry: Registry, texts: list[str], initial: Initial = Initial.CONTENT) -> None:
    for first in range(0, len(texts), MAX_SUBSCRIPTIONS_AT_ONCE):
        part = texts[first : first + MAX_SUBSCRIPTIONS_AT_ONCE]
        registry.subscribe_many(part, initial=initial)


def append(home: Home, events: list[bytes]) -> int:
    """Returns the offset of the first."""
    return home.log.append([(RecordKind.EVENT, event) for event in events])


def take(events: Iterator[bytes], count: int) -> list[bytes]:
    """The next events; EOFError if there are too few."""
    taken = list(islice(events, count))
    if len(taken) < count:
        raise EOFError(f"only {len(taken)} of {count} events are left")
    return taken


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        for line in file:
            yield line[:-1]
