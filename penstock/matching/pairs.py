"""The (event, subscription) pairs of one batch, in factored form until they are expanded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from penstock.matching.expansion import SLACK, mark_listed, write_pairs

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]
Lanes = npt.NDArray[np.uint16]
Mask = npt.NDArray[np.bool_]

NO_LANES: Lanes = np.empty(0, np.uint16)
CONTIGUOUS = -1
FIRST, COUNT, BASE, LENGTH = range(4)
"""Columns of a span."""
_CHUNK_PAIRS = 1 << 14
"""Pairs per chunk: 192 KB, which stays in the second-level cache until it is read."""


@dataclass(frozen=True, slots=True)
class Runs:
    """Matches as products: a run is a set of subscriptions that all match the same events.

    Run `i` has the span (first, count, base, length) and stands for count * length pairs. Its
    subscriptions are `ids[first : first + count]`. Its events are `events[base + lanes[start + k]]`
    for k below length, where start is `starts[i]`; or, if that is CONTIGUOUS,
    `events[base : base + length]`. So a match costs two bytes or none, and a thousand equal
    subscriptions cost as much as one. Event numbers are relative to `first_event` of the batch.
    """

    ids: Ints64
    spans: Ints32
    starts: Ints64
    events: Ints32
    lanes: Lanes
    first_event: int = 0

    def __len__(self) -> int:
        """How many pairs there are."""
        return int(self.spans[:, COUNT].astype(np.int64) @ self.spans[:, LENGTH].astype(np.int64))

    @property
    def nbytes(self) -> int:
        """The size of the runs, without the ids they share with the index."""
        arrays = (self.spans, self.starts, self.events, self.lanes)
        return sum(array.nbytes for array in arrays)


@dataclass(frozen=True, slots=True)
class Pairs:
    """All pairs of a batch, in parts that were computed separately. No pair occurs twice.

    `by_event`, `by_subscription`, `expand` and `chunks` materialise them.
    """

    event_count: int
    parts: tuple[Runs, ...]

    @classmethod
    def none(cls, event_count: int) -> Pairs:
        return cls(event_count, ())

    @classmethod
    def of_events(cls, matches: Sequence[Iterable[int]]) -> Pairs:
        """From the subscriptions of each event."""
        listed = [list(one) for one in matches]
        counts = np.array([len(one) for one in listed], np.int64)
        ids = np.array([i for one in listed for i in one], np.int64)
        return cls(len(listed), (runs_by_event(counts, ids),))

    @classmethod
    def of_pairs(
        cls, event_count: int, events: npt.NDArray[np.integer], subscriptions: Ints64
    ) -> Pairs:
        """From two parallel arrays without duplicates, in any order."""
        order = np.argsort(events, kind="stable")
        counts = np.bincount(events, minlength=event_count)
        return cls(event_count, (runs_by_event(counts, subscriptions[order]),))

    @classmethod
    def join(cls, found: Sequence[Pairs], event_count: int, first_events: Sequence[int]) -> Pairs:
        """Concatenate pairs of one batch that were computed separately.

        Event 0 of `found[i]` is event `first_events[i]` of the whole batch.
        """
        moved = (
            replace(part, first_event=part.first_event + first)
            for pairs, first in zip(found, first_events, strict=True)
            for part in pairs.parts
        )
        return cls(event_count, tuple(moved))

    def __len__(self) -> int:
        """How many pairs there are."""
        return sum(map(len, self.parts))

    @property
    def nbytes(self) -> int:
        """The size of the runs, without the ids they share with the index."""
        return sum(part.nbytes for part in self.parts)

    def chunks(self, pairs: int = _CHUNK_PAIRS) -> Iterator[tuple[Ints32, Ints64]]:
        """All pairs in chunks: event positions and subscription ids.

        The next chunk overwrites the arrays, so any number of pairs takes the memory of one chunk.
        A chunk has room for a whole batch of events, the most that one subscription can need.
        """
        size = max(pairs, self.event_count) + SLACK
        events, ids = np.empty(size, np.int32), np.empty(size, np.int64)
        for part in self.parts:
            run = offset = 0
            while run < len(part.spans):
                written, run, offset = self._write(part, run, offset, events, ids)
                yield events[:written], ids[:written]

    def expand(self) -> tuple[Ints32, Ints64]:
        """All pairs as two parallel arrays: event positions and subscription ids."""
        size = len(self) + SLACK
        events, ids = np.empty(size, np.int32), np.empty(size, np.int64)
        done = 0
        for part in self.parts:
            done += self._write(part, 0, 0, events[done:], ids[done:])[0]
        return events[:done], ids[:done]

    def _write(
        self, part: Runs, run: int, offset: int, events: Ints32, ids: Ints64
    ) -> tuple[int, int, int]:
        return write_pairs(
            part.ids,
            part.spans,
            part.starts,
            part.events,
            part.lanes,
            part.first_event,
            run,
            offset,
            events,
            ids,
        )

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

    def any_match(self) -> Mask:
        """Which events match at least one subscription."""
        seen = np.zeros(self.event_count, np.bool_)
        for part in self.parts:
            mark_listed(part.spans, part.starts, part.events, part.lanes, seen[part.first_event :])
        return seen


def runs_by_event(counts: Ints64, ids: Ints64) -> Runs:
    """One run per event: event `e` has the next `counts[e]` of the subscriptions `ids`."""
    some = np.flatnonzero(counts)
    spans = np.ones((len(some), 4), np.int32)
    spans[:, FIRST] = (np.cumsum(counts) - counts)[some]
    spans[:, COUNT] = counts[some]
    spans[:, BASE] = some
    starts = np.full(len(some), CONTIGUOUS, np.int64)
    return Runs(ids, spans, starts, np.arange(len(counts), dtype=np.int32), NO_LANES)
