"""How the log is cut into batches.

An offset of the stream says how far the log was read and which subscriptions were active. Spark
writes it down before a batch begins, so a batch that is replayed after a crash covers the same
records for the same subscriptions, and gives the same messages.

A subscription becomes active at the first batch that starts after its record. So the end of a log
is followed by one batch without records, if subscriptions are still waiting for it.

One that wants changes only is told of those from its record on. If it needs nothing to start with,
it is served from the batch that holds its record. If it needs rows to be joined, that batch ends
before the next event, so that these are the rows as they were at its record.

What a Hub has published in the meantime, or this pipeline before its checkpoint was lost, is read
again to bring the state up to date, but nobody becomes active on the way: messages of that stretch
are not published again. A batch ends where it ends, and with the next one all subscriptions become
active that the state has not seen; only those that have no content yet are told theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.errors import HomeError
from penstock.flow.kinds import Span
from penstock.storage import BatchHeader, RecordKind, RecordLog

LAYOUT = 2
"""How the state of the stages is laid out: which buckets there are, and what is in them. State of
another layout cannot be gone on with; it is made anew from the log."""

BATCH_BYTES = 128 << 20  # 128 MiB
"""Of the log, in one batch; a single append may have as much. A batch takes several times its bytes
of memory on its way through the stages."""

_ARRIVING = frozenset({RecordKind.SUBSCRIBE})
_EVENTS = frozenset({RecordKind.EVENT})
_GETTING_POINTS = frozenset({RecordKind.SUBSCRIBE, RecordKind.REPLAN})
_SUBSCRIBING = frozenset({RecordKind.SUBSCRIBE, RecordKind.WITHDRAW, RecordKind.REPLAN})


class StreamOffset(NamedTuple):
    """The records before `position` are done, for the subscriptions before `active`. When the batch
    that ended here began, those before `initial_from` had content already."""

    position: int = 0
    active: int = 0
    initial_from: int = 0

    def to_json(self) -> dict[str, int]:
        """As checkpoints have it, old ones included."""
        return {
            "position": self.position,
            "active": self.active,
            "told": self.initial_from,
            "layout": LAYOUT,
        }

    @classmethod
    def from_json(cls, members: Mapping[str, int]) -> StreamOffset:
        return cls(members["position"], members["active"], members["told"])


def span_of(start: StreamOffset, end: StreamOffset) -> Span:
    """The batch between two offsets."""
    return Span(start.position, end.position, end.active, start.active, end.initial_from)


def next_offset(
    log: RecordLog,
    frontier: BatchHeader | None,
    start: StreamOffset,
    target: int,
    max_records: int,
    max_bytes: int = BATCH_BYTES,
) -> StreamOffset:
    """Where the batch that begins at `start` ends; `start` itself, if there is nothing to do."""
    published = 0 if frontier is None else frontier.end
    if start.position < target:
        end = min(log.frame_boundary(start.position, max_records, max_bytes), target)
        if start.position < published:
            return start._replace(position=min(end, published))
        end = _cut_before_silent_join(log, start.position, end)
        return StreamOffset(end, start.position, _first_without_content(frontier))
    if start.position >= published and _has_pending(log, start):
        return StreamOffset(start.position, start.position, _first_without_content(frontier))
    return start


def _cut_before_silent_join(log: RecordLog, start: int, end: int) -> int:
    """Where a batch ends, so that nobody misses events who starts quietly."""
    for record in log.read(start, end, _ARRIVING):
        if _is_silent(record.body):
            behind = record.offset + 1
            following = next(log.frames(behind, end, _EVENTS), None) if behind < end else None
            return end if following is None else max(following[0], behind)
    return end


def _is_silent(body: bytes) -> bool:
    # Most processes that load this module do not plan batches, and need no database.
    from penstock.client import Initial
    from penstock.registry import subscribed

    try:
        return subscribed(body).initial is Initial.SILENT
    except HomeError:  # of another release: the registry lists it as broken
        return False


def _first_without_content(frontier: BatchHeader | None) -> int:
    return 0 if frontier is None else frontier.active


def _has_pending(log: RecordLog, start: StreamOffset) -> bool:
    """Whether subscriptions have come, gone or got other points since those that are active."""
    if start.active == start.position:
        return False
    return next(log.read(start.active, start.position, _SUBSCRIBING), None) is not None


def is_anybody_new(log: RecordLog, before: int, active: int) -> bool:
    """Whether a batch without records makes points active that were not before."""
    if active <= before:
        return False
    return next(log.read(before, active, _GETTING_POINTS), None) is not None
