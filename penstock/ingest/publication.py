"""Appends the events of files and pipes to the log.

Events are appended as they come, without parsing: whether one can be applied is found in
processing, and the quarantine keeps it if not. Input is read in pieces, each a frame of the log, so
files may be larger than memory and events of a pipe are appended without delay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from penstock.errors import BacklogError, EventError
from penstock.ingest.input_files import InputBatch
from penstock.storage import AnyHome, RecordKind

MAX_BACKLOG = 10_000_000
"""Maximum number of unprocessed records before publishers must wait."""


@dataclass(slots=True)
class Published:
    """How much of an input is in the log by now. Other publishers may have appended in between."""

    events: int = 0
    first: int = 0
    """The offset of the first of them."""
    end: int = 0
    """The offset after the last of them."""

    def add(self, offset: int, events: int) -> None:
        self.first = self.first if self.events else offset
        self.events += events
        self.end = offset + events


def publish(
    home: AnyHome,
    batches: Iterable[InputBatch],
    published: Published | None = None,
    *,
    append: Callable[[list[bytes]], int] | None = None,
    progress: Callable[[InputBatch], None] | None = None,
    max_backlog: int = MAX_BACKLOG,
) -> Published:
    """Append all events to the log; `published` counts them, also after an error.

    Each batch is on disk before the next one is read. BacklogError if the log is so far ahead of
    its processing that the rest must wait (never, if `max_backlog` is 0). A caller that records
    more than the events passes its own `append`, which returns the offset of the first event.
    """
    published = Published() if published is None else published
    append = append or partial(append_events, home)
    for batch in batches:
        if batch.events:
            check_backlog(home, max_backlog)
            published.add(append(batch.events), len(batch.events))
        if progress is not None:
            progress(batch)
    return published


def append_events(home: AnyHome, events: list[bytes]) -> int:
    """Append events as one frame; returns the offset of the first."""
    return home.log.append([(RecordKind.EVENT, event) for event in events])


def leave_out(batches: Iterable[InputBatch], count: int, name: str) -> Iterator[InputBatch]:
    """The batches without their first `count` events, which must exist."""
    left = count
    for batch in batches:
        gone = min(left, len(batch.events))
        left -= gone
        yield replace(batch, events=batch.events[gone:], numbers=batch.numbers[gone:])
    if left:
        raise EventError(f"{name} has no {count} events to leave out, but {count - left}")


def check_backlog(home: AnyHome, most: int) -> None:
    """BacklogError if more records than `most` wait to be processed."""
    frontier = home.messages.frontier
    waiting = home.log.end - (0 if frontier is None else frontier.end)
    if most and waiting > most:
        raise BacklogError(
            f"{waiting:,} records wait to be processed; no more than {most:,} may",
            detail="nothing was lost",
            hint="run the pipeline, or publish again when it has caught up",
        )
