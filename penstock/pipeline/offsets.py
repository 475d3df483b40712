"""How the log is cut into batches.

A stream offset says how far the log was read and which subscriptions were active. Spark writes it
ahead of a batch, so a batch replayed after a crash covers the same records for the same
subscriptions and gives the same messages.

A subscription becomes active at the first batch that starts after its record. So if subscriptions
are waiting at the end of the log, one batch without records follows.

A subscription without initial content gets changes from its record on. If it needs no rows to start
with, it is served from the batch that holds its record. If it needs rows to join with, that batch
ends before the next event, so that these are the rows as of its record.

Batches that a Hub published in the meantime, or this pipeline before its checkpoint was lost, are
read again to rebuild the state. Their messages are not published again, and no subscription becomes
active on the way. Such a batch ends at the published end at the latest; with the batch after it,
all subscriptions that the state has not seen become active, and only those without content are sent
initial content.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from penstock.errors import HomeError
from penstock.flow.kinds import Span
from penstock.storage import BatchHeader, RecordKind, RecordLog

LAYOUT = 2
"""The layout of the state of the stages: which buckets there are, and what they hold. State of
another layout cannot be used and is rebuilt from the log."""

BATCH_BYTES = 128 << 20  # 128 MiB
"""Maximum bytes of the log per batch; a single append may have as many. A batch takes several times
its bytes of memory on its way through the stages."""

_ARRIVING = frozenset({RecordKind.SUBSCRIBE})
_EVENTS = frozenset({RecordKind.EVENT})
_GETTING_POINTS = frozenset({RecordKind.SUBSCRIBE, RecordKind.REPLAN})
_SUBSCRIBING = frozenset({RecordKind.SUBSCRIBE, RecordKind.WITHDRAW, RecordKind.REPLAN})


class StreamOffset(NamedTuple):
    """The records before `position` are processed, for the subscriptions before `active`. When the
    batch that ended here began, those before `initial_from` already had content."""

    position: int = 0
    active: int = 0
    initial_from: int = 0

    def to_json(self) -> dict[str, int]:
        """The form used in checkpoints, also in old ones."""
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
    """The end of a batch, cut so that subscriptions without initial content miss no events."""
    for record in log.read(start, end, _ARRIVING):
        if _is_silent(record.body):
            behind = record.offset + 1
            following = next(log.frames(behind, end, _EVENTS), None) if behind < end else None
            return end if following is None else max(following[0], behind)
    return end


def _is_silent(body: bytes) -> bool:
    # Lazy: most processes that load this module do not plan batches, and need no database.
    from penstock.client import Initial
    from penstock.registry import subscribed

    try:
        return subscribed(body).initial is Initial.SILENT
    except HomeError:  # of another release: the registry lists it as broken
        return False


def _first_without_content(frontier: BatchHeader | None) -> int:
    return 0 if frontier is None else frontier.active


def _has_pending(log: RecordLog, start: StreamOffset) -> bool:
    """Whether subscriptions were added, withdrawn or replanned since the active ones."""
    if start.active == start.position:
        return False
    return next(log.read(start.active, start.position, _SUBSCRIBING), None) is not None


def is_anybody_new(log: RecordLog, before: int, active: int) -> bool:
    """Whether a batch without records would activate points."""
    if active <= before:
        return False
    return next(log.read(before, active, _GETTING_POINTS), None) is not None
