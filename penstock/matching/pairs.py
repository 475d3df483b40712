"""The (event, subscription) pairs of one batch, kept short until somebody needs them long."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]

_NO_INTS: Ints32 = np.empty(0, np.int32)
_NO_LONGS: Ints64 = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Matches as runs: who matches which stretch of `events`.

    Run `i` says that the subscription `ids[owners[i]]` matches the events
    `events[starts[i] : starts[i] + lengths[i]]` (positions in the batch). Runs may share stretches,
    so a thousand equal subscriptions cost one list of events; one subscription may have several
    runs. No pair occurs twice. `by_event`, `by_subscription` and `expand` write the pairs out.
    """

    event_count: int
    ids: Ints64
    owners: Ints32
    starts: Ints64
    lengths: Ints32
    events: Ints32

    @classmethod
    def none(cls, event_count: int) -> Pairs:
        return cls(event_count, _NO_LONGS, _NO_INTS, _NO_LONGS, _NO_INTS, _NO_INTS)

    @classmethod
    def of_events(cls, matches: Sequence[Iterable[int]]) -> Pairs:
        """From the subscriptions of each event."""
        listed = [list(one) for one in matches]
        counts = np.array([len(one) for one in listed], np.int64)
        flat = np.array([i for one in listed for i in one], np.int64)
        return cls.of_pairs(len(listed), np.repeat(np.arange(len(listed)), counts), flat)

    @classmethod
    def of_pairs(
        cls, event_count: int, events: npt.NDArray[np.integer], subscriptions: Ints64
    ) -> Pairs:
        """From two parallel arrays without duplicates, in any order."""
        order = np.argsort(subscriptions, kind="stable")
        ids, starts, counts = np.unique(subscriptions[order], return_index=True, return_counts=True)
        return cls(
            event_count,
            ids,
            np.arange(len(ids), dtype=np.int32),
            starts.astype(np.int64),
            counts.astype(np.int32),
            events[order].astype(np.int32),
        )

    @classmethod
    def join(cls, parts: Sequence[Pairs], event_count: int, first_events: Sequence[int]) -> Pairs:
        """Pairs of one batch that were found apart.

        Part `i` numbers its events from 0; they begin at `first_events[i]` of the whole batch.
        """
        if len(parts) == 1 and first_events[0] == 0:
            return parts[0]
        owners, starts, events = [], [], []
        ids_before = events_before = 0
        for part, first in zip(parts, first_events, strict=True):
            owners.append(part.owners + np.int32(ids_before))
            starts.append(part.starts + np.int64(events_before))
            events.append(part.events + np.int32(first) if first else part.events)
            ids_before += len(part.ids)
            events_before += len(part.events)
        return cls(
            event_count,
            np.concatenate([_NO_LONGS, *(part.ids for part in parts)]),
            np.concatenate([_NO_INTS, *owners]),
            np.concatenate([_NO_LONGS, *starts]),
            np.concatenate([_NO_INTS, *(part.lengths for part in parts)]),
            np.concatenate([_NO_INTS, *events]),
        )

    def __len__(self) -> int:
        """How many pairs there are."""
        return int(self.lengths.sum(dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """The size of the runs, without the ids they share with the index."""
        return int(
            self.owners.nbytes + self.starts.nbytes + self.lengths.nbytes + self.events.nbytes
        )

    def expand(self) -> tuple[Ints32, Ints64]:
        """All pairs as two parallel arrays: event positions and subscription ids."""
        return self.events[self._places()], np.repeat(self.ids[self.owners], self.lengths)

    def by_event(self) -> tuple[Ints64, Ints64]:
        """Offsets and ids: event `e` has `ids[offsets[e] : offsets[e + 1]]`, ascending."""
        events, ids = self.expand()
        order = np.lexsort((ids, events))
        offsets = np.zeros(self.event_count + 1, np.int64)
        np.cumsum(np.bincount(events, minlength=self.event_count), out=offsets[1:])
        return offsets, ids[order]

    def by_subscription(self) -> tuple[Ints64, Ints64, Ints32]:
        """Ids (ascending, those that match anything), offsets, and events (ascending in each)."""
        events, subscriptions = self.expand()
        order = np.lexsort((events, subscriptions))
        ids, counts = np.unique(subscriptions, return_counts=True)
        return ids, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), events[order]

    def lists(self) -> list[list[int]]:
        """The subscriptions of each event, ascending."""
        offsets, ids = self.by_event()
        return [ids[low:high].tolist() for low, high in pairwise(offsets)]

    def concerned(self) -> npt.NDArray[np.bool_]:
        """Which events match anybody at all."""
        seen = np.zeros(self.event_count, np.bool_)
        seen[self.events[self._places()]] = True
        return seen

    def _places(self) -> Ints64:
        """The position in `events` of every pair, run after run."""
        ends = np.cumsum(self.lengths, dtype=np.int64)
        total = int(ends[-1]) if len(ends) else 0
        places: Ints64 = np.repeat(self.starts - (ends - self.lengths), self.lengths)
        places += np.arange(total, dtype=np.int64)
        return places
