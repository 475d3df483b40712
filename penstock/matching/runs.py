"""Room for the runs that a kernel finds."""

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
"""Memory for so many, 16 MB, is kept for the next call of a thread."""


@dataclass(slots=True)
class Room:
    """How much room results have needed lately; one per matcher and size of batch."""

    runs: int = _FIRST_RUNS
    events: int = 0
    lanes: int = _FIRST_LANES

    def grow(self) -> None:
        self.runs *= 4
        self.events *= 4
        self.lanes *= 4


@dataclass(slots=True)
class RunBuffers:
    """Spans, starts, events and lanes, as `Runs` has them, to be filled.

    The arrays come from numpy, which asks for huge pages where results are large, and what is not
    touched costs nothing. So it is cheaper to ask for too much than to grow: growing inside a
    kernel took longer than matching (docs/notes/matching.md).
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
        """What a kernel says that it wrote; False if it ran out of room."""
        self.counts = (max(runs, 0), events, lanes)
        return runs >= 0

    def found(self, ids: Ints64, first_event: int = 0) -> Runs:
        """What was written, over the subscriptions whose boxes the kernel numbered."""
        spans, starts, events, lanes = self.arrays
        runs, listed, picked = self.counts
        return Runs(ids, spans[:runs], starts[:runs], events[:listed], lanes[:picked], first_event)


class EachEvent:
    """Matches of one event after the other, in memory that is used again.

    A thread's results are overwritten by its next call: fresh memory for each would take longer
    than finding them, where an event matches thousands of subscriptions. Safe to share.
    """

    def __init__(self) -> None:
        self._room_per_event = _MATCHES_PER_EVENT
        self._mine = threading.local()

    def __call__(
        self, event_count: int, kernel: Callable[[int, Ints64, Ints32], int]
    ) -> tuple[Ints64, Ints32]:
        """Offsets and owners: who matches each event.

        The kernel fills both from an event on and says which event found no room; it goes on
        there with more.
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
