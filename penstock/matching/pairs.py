"""The (event, subscription) pairs of one batch, kept short until somebody needs them long."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from penstock.matching.compiled import njit

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]
Lanes = npt.NDArray[np.uint16]

_NO_INTS: Ints32 = np.empty(0, np.int32)
_NO_LONGS: Ints64 = np.empty(0, np.int64)
_NO_LANES: Lanes = np.empty(0, np.uint16)


CONTIGUOUS = -1


@dataclass(frozen=True, slots=True)
class Pairs:
    """Matches as runs: who matches which of a list of events.

    Run `i` belongs to the subscription `ids[owners[i]]`. Its events (positions in the batch) are
    `events[bases[i] + lanes[starts[i] + k]]` for k below `lengths[i]`, or, if `starts[i]` is
    CONTIGUOUS, the stretch `events[bases[i] : bases[i] + lengths[i]]`. So a match costs two bytes
    or none, and runs may share what they refer to: a thousand equal subscriptions cost one list.
    One subscription may have several runs. No pair occurs twice.

    `by_event`, `by_subscription` and `expand` write the pairs out, for the edge.
    """

    event_count: int
    ids: Ints64
    owners: Ints32
    bases: Ints32
    starts: Ints64
    lengths: Ints32
    events: Ints32
    lanes: Lanes

    @classmethod
    def none(cls, event_count: int) -> Pairs:
        return cls(
            event_count, _NO_LONGS, _NO_INTS, _NO_INTS, _NO_LONGS, _NO_INTS, _NO_INTS, _NO_LANES
        )

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
        ids, firsts, counts = np.unique(subscriptions[order], return_index=True, return_counts=True)
        return cls(
            event_count,
            ids,
            np.arange(len(ids), dtype=np.int32),
            firsts.astype(np.int32),
            np.full(len(ids), CONTIGUOUS, np.int64),
            counts.astype(np.int32),
            events[order].astype(np.int32),
            _NO_LANES,
        )

    @classmethod
    def join(cls, parts: Sequence[Pairs], event_count: int, first_events: Sequence[int]) -> Pairs:
        """Pairs of one batch that were found apart.

        Part `i` numbers its events from 0; they begin at `first_events[i]` of the whole batch.
        """
        return cls._join(parts, event_count, first_events, shared_ids=False)

    @classmethod
    def join_same_ids(
        cls, parts: Sequence[Pairs], event_count: int, first_events: Sequence[int]
    ) -> Pairs:
        """The same for parts whose ids are one and the same array."""
        return cls._join(parts, event_count, first_events, shared_ids=True)

    @classmethod
    def _join(
        cls,
        parts: Sequence[Pairs],
        event_count: int,
        first_events: Sequence[int],
        shared_ids: bool,
    ) -> Pairs:
        if len(parts) == 1 and first_events[0] == 0:
            return parts[0]
        owners, bases, starts, events = [], [], [], []
        ids_before = events_before = lanes_before = 0
        for part, first in zip(parts, first_events, strict=True):
            owners.append(part.owners + np.int32(ids_before))
            bases.append(part.bases + np.int32(events_before))
            moved = part.starts + np.int64(lanes_before)
            starts.append(np.where(part.starts == CONTIGUOUS, CONTIGUOUS, moved))
            events.append(part.events + np.int32(first) if first else part.events)
            ids_before += 0 if shared_ids else len(part.ids)
            events_before += len(part.events)
            lanes_before += len(part.lanes)
        return cls(
            event_count,
            parts[0].ids
            if shared_ids
            else np.concatenate([_NO_LONGS, *(part.ids for part in parts)]),
            np.concatenate([_NO_INTS, *owners]),
            np.concatenate([_NO_INTS, *bases]),
            np.concatenate([_NO_LONGS, *starts]),
            np.concatenate([_NO_INTS, *(part.lengths for part in parts)]),
            np.concatenate([_NO_INTS, *events]),
            np.concatenate([_NO_LANES, *(part.lanes for part in parts)]),
        )

    def __len__(self) -> int:
        """How many pairs there are."""
        return int(self.lengths.sum(dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """The size of the runs, without the ids they share with the index."""
        runs = (self.owners, self.bases, self.starts, self.lengths)
        return sum(array.nbytes for array in (*runs, self.events, self.lanes))

    def expand(self) -> tuple[Ints32, Ints64]:
        """All pairs as two parallel arrays: event positions and subscription ids."""
        events = np.empty(len(self), np.int32)
        ids = np.empty(len(self), np.int64)
        _expand(
            self.ids,
            self.owners,
            self.bases,
            self.starts,
            self.lengths,
            self.events,
            self.lanes,
            events,
            ids,
        )
        return events, ids

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
        seen[self.expand()[0]] = True
        return seen


@njit
def _expand(
    ids: Ints64,
    owners: Ints32,
    bases: Ints32,
    starts: Ints64,
    lengths: Ints32,
    events: Ints32,
    lanes: Lanes,
    out_events: Ints32,
    out_ids: Ints64,
) -> None:
    count = 0
    for run in range(len(owners)):
        base, start, subscription = bases[run], starts[run], ids[owners[run]]
        for k in range(lengths[run]):
            out_events[count + k] = events[base + (k if start < 0 else lanes[start + k])]
            out_ids[count + k] = subscription
        count += lengths[run]
