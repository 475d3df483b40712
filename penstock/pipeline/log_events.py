"""The events of a range of the log, in pieces that are decoded together."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress
from operator import itemgetter

from penstock.flow.kinds import Events
from penstock.storage import RecordKind, RecordLog

EVENTS_AT_ONCE = 1 << 17
BYTES_AT_ONCE = 64 << 20  # 64 MiB
"""Maximum bytes per piece. Larger pieces cost less per event and give fewer staging files."""

_EVENTS = frozenset({RecordKind.EVENT})


def events_of(log: RecordLog, start: int, end: int) -> Iterator[Events]:
    """The events of the records [start, end). Other records are for the registry."""
    events, size = Events([], []), 0
    for first, entries in log.frames(start, end, _EVENTS):
        is_event = list(map(_EVENTS.__contains__, map(itemgetter(0), entries)))
        bodies = list(compress(map(itemgetter(1), entries), is_event))
        events.offsets.extend(compress(range(first, first + len(entries)), is_event))
        events.bodies.extend(bodies)
        size += sum(map(len, bodies))
        if size >= BYTES_AT_ONCE or len(events.bodies) >= EVENTS_AT_ONCE:
            yield events
            events, size = Events([], []), 0
    yield events
