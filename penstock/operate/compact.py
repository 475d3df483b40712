"""Letting go of the past: `docs/notes/compaction.md` says how, and why it is safe.

Every step is one rename, after which the old files no longer count; deleting them can be done at
any time later, by anybody who takes the processing lock. So a crash anywhere leaves a home that is
compacted a little less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from penstock.client import Initial
from penstock.engine.engine import Engine
from penstock.errors import HomeError
from penstock.log import BatchHeader, Home
from penstock.log.compacting import compacted_segment
from penstock.log.replaying import Replay
from penstock.messages import Position, encode_messages, has_partner
from penstock.operate.findings import Step
from penstock.pipeline.checkpoint import check_home, replayed_from
from penstock.pipeline.workers import without_garbage
from penstock.registry import Registry


@dataclass(frozen=True, slots=True)
class Compaction:
    """What was done."""

    offset: int
    """Clients that start from nothing start with the content here."""
    log_offset: int
    """The log is compacted up to here: where a segment began that is not beyond `offset`."""
    bytes_before: int
    bytes_after: int
    held_back_by: str
    """What kept it from going further than this; empty if nothing did."""


def compact(home: Home, step: Step, *, to: int | None = None) -> Compaction:
    """Compact what is behind offset `to`, or as much as can be.

    LockedError while a Hub or a pipeline is at work on the home. Publishers and readers may go on.
    """
    with home.processing_lock("compact"):
        check_home(home)
        before = _size(home)
        header, held_back_by = _last_batch(home, to)
        if header is not None:
            with without_garbage():
                _compact(home, header, step)
        base = home.messages.base
        return Compaction(
            0 if base is None else base.end,
            home.log.compacted_to,
            before,
            _size(home),
            held_back_by,
        )


def _last_batch(home: Home, to: int | None) -> tuple[BatchHeader | None, str]:
    """The last batch that can be let go of, and what keeps the next one."""
    frontier = home.messages.frontier
    if frontier is None:
        return None, "nothing has been processed"
    limit, held_back_by = frontier.end, ""
    replayed = replayed_from(home.checkpoint)
    if replayed is not None and replayed < limit:
        limit = replayed
        held_back_by = f"the pipeline goes on at offset {replayed}: run it first"
    if to is not None and to < limit:
        limit, held_back_by = to, f"only up to offset {to} was asked for"
    # A batch without records may switch decompositions after its own messages; a base may not.
    found = None
    for header in home.messages.batches():
        if header.start < header.end <= limit:
            found = header
    return found, held_back_by


def _compact(home: Home, header: BatchHeader, step: Step) -> None:
    """Replace what is behind a batch. The log is replayed once, for both."""
    replay, segment = Replay(), None
    log_end = _last_segment(home, header)
    if home.messages.base != header:
        with step("reading messages") as advance:
            _check_messages(home, header, lambda end: advance(end, header.end))
    with step("replaying the log") as advance:
        if log_end > home.log.compacted_to:
            replay.advance(home.log, log_end, lambda end: advance(end, header.end))
            segment = compacted_segment(home.log, replay)
        if home.messages.base != header:
            replay.advance(home.log, header.end, lambda end: advance(end, header.end))
    if home.messages.base != header:
        with step("writing contents as messages"), Registry(home) as registry:
            home.messages.write_base(header, base_messages(registry, replay.engine, header))
    home.messages.sweep()
    if segment is not None:
        home.log.replace_beginning(segment)


def _last_segment(home: Home, header: BatchHeader) -> int:
    """Where a segment begins that is not beyond the batch: what is before it can be rewritten."""
    if home.log.end == header.end:
        home.log.roll()
    return max(first for first in home.log.segment_firsts() if first <= header.end)


def _check_messages(home: Home, last: BatchHeader, on_end: Callable[[int], None]) -> None:
    """What is let go of must be whole, and must be replaceable."""
    for header in home.messages.batches():
        if header > last:
            return
        if any(map(has_partner, home.messages.read(header))):
            raise HomeError(
                f"batch {header} was made with a scheme that sends join rows",
                detail="a client counts the partners of a row, and a base cannot tell them",
                hint="homes that were processed with such schemes cannot be compacted",
            )
        on_end(header.end)


def base_messages(registry: Registry, tables: Engine, header: BatchHeader) -> list[bytes]:
    """Messages that lead every client from nothing to its content at the end of a batch.

    They are what all active subscriptions would be told if they began now, by regions; so their
    number follows the rows, not the subscribers. They stand at the last offset of the batch, which
    no subscription in it has begun after.
    """
    changes = registry.changes_between(0, header.active)
    moved = {replan.subscription: replan.decomposition for replan in changes.replanned}
    for stored in registry.subscriptions(header.active):
        if stored.initial is not Initial.NONE:  # others have no content
            chosen = moved.get(stored.id, stored.decomposition)
            tables.enrol(stored.id, stored.query(tables.catalog), chosen)
    numbered = (
        message._replace(position=Position(header.end - 1, number))
        for number, message in enumerate(tables.contents(header.end - 1))
    )
    return [data for _, _, encoded in encode_messages(numbered) for data in encoded]


def _size(home: Home) -> int:
    files: list[Path] = []
    for directory in (home.log.directory, home.messages.directory):
        files += directory.iterdir()
    return sum(path.stat().st_size for path in files)
