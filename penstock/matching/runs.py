"""Output buffers for the runs that a kernel finds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from penstock.matching.pairs import Runs

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]
Lanes = npt.NDArray[np.uint16]
Arrays: TypeAlias = tuple[Ints32, Ints64, Ints32, Lanes]

_FIRST_RUNS = 1 << 16
_FIRST_LANES = 1 << 18
_FEW_MATCHES = 1 << 12
_MATCHES_PER_EVENT = 1 << 10
_KEPT_MATCHES = 1 << 22
"""Largest buffer, 16 MB, that a thread keeps for its next call."""


@dataclass(slots=True)
class Room:
    """Buffer sizes that results needed so far, by strategy of a segment; they only grow."""

    runs: int = _FIRST_RUNS
    events: int = 0
    lanes: int = _FIRST_LANES

    def grow(self) -> None:
        self.runs *= 4
        self.events *= 4
        self.lanes *= 4


@dataclass(slots=True)
class RunBuffers:
    """Spans, starts, events and lanes, as in `Runs`, for a kernel to fill.

    numpy requests huge pages for large arrays, and untouched pages cost nothing. So allocating too
    much is cheaper than growing: growing inside a kernel took longer than matching
    (docs/notes/matching.md).
    """

    arrays: Arrays
    counts: tuple[int, int, int] = field(default=(0, 0, 0))

    @classmethod
    def of(cls, room: Room) -> RunBuffers:
        return cls(
            (
                np.empty((room.runs, 4), np.int32),
                np.empty(room.runs, np.int64),
                np.empty(room.events, np.int32),
                np.empty(room.lanes, np.uint16),
            )
        )

    def set_counts(self, runs: int, events: int, lanes: int) -> bool:
        """Record the counts that a kernel returned; False if it ran out of room."""
        self.counts = (max(runs, 0), events, lanes)
        return runs >= 0

    def found(self, ids: Ints64, first_event: int = 0) -> Runs:
        """The runs written; `ids` are the subscriptions by box number."""
        spans, starts, events, lanes = self.arrays
        runs, listed, picked = self.counts
        return Runs(ids, spans[:runs], starts[:runs], events[:listed], lanes[:picked], first_event)


class EachEvent:
    """Runs kernels that match one event at a time, in a buffer that each thread reuses.

    A thread's next call overwrites its results: where an event matches thousands of subscriptions,
    fresh memory would take longer than matching. Safe to share among threads.
    """

    def __init__(self) -> None:
        self._room_per_event = _MATCHES_PER_EVENT
        self._mine = threading.local()

    def __call__(
        self, event_count: int, kernel: Callable[[int, Ints64, Ints32], int]
    ) -> tuple[Ints64, Ints32]:
        """Offsets and owners: the matches of each event.

        The kernel fills both from a given event on and returns the event for which there was no
        room; it continues there with twice the buffer.
        """
        offsets = np.zeros(event_count + 1, np.int64)
        owners = self._room_for(_FEW_MATCHES + self._room_per_event * event_count)
        event = kernel(0, offsets, owners)
        while event < event_count:
            self._room_per_event *= 2
            larger = np.empty(2 * len(owners), np.int32)
            larger[: offsets[event]] = owners[: offsets[event]]
            owners = larger
            event = kernel(event, offsets, owners)
        if len(owners) <= _KEPT_MATCHES:
            self._mine.owners = owners
        return offsets, owners[: offsets[-1]]

    def _room_for(self, matches: int) -> Ints32:
        kept: Ints32 | None = getattr(self._mine, "owners", None)
        return kept if kept is not None and len(kept) >= matches else np.empty(matches, np.int32)
