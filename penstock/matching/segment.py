"""A segment: the conditions of some subscriptions, with the indexes that pay off for them.

Immutable except for the dead flags, the planner's measurements, and bitmaps, which are built once
single events have cost as much without them as building would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from penstock.catalog import Key
from penstock.matching.boundaries import key_coder
from penstock.matching.box_index import BoxIndex, build_box_index
from penstock.matching.events import EventBatch
from penstock.matching.pairs import Mask, Pairs, Runs
from penstock.matching.planner import Planner
from penstock.matching.strategies import EACH, SINGLE_EVENTS, Strategies
from penstock.matching.table import BoxTable
from penstock.matching.trie import Trie, build_trie

T = TypeVar("T")
Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8]

UNINDEXED_BOXES = 256
"""Smaller segments are scanned: about 3 ns per box and event, and nothing to build."""
MAX_ROWS = 1 << 16
"""Maximum cells over all columns for the lanes strategy: a table of 4 MB per 512 events."""
_BITMAP_NANOSECONDS = 4
"""Approximate cost of building one byte of bitmaps."""
_OWN_RANGES = 0.25
"""Minimum distinct predicates per box for the box index."""
_IN_PLANE = 0.5
"""Minimum share of predicates on the two columns of the box index."""

_NOBODY: Flags = np.empty(0, np.uint8)


@dataclass(frozen=True, slots=True)
class Policy:
    """How segments are built and matched. `strategy` forces one strategy, for benchmarks."""

    unindexed_boxes: int = UNINDEXED_BOXES
    strategy: str | None = None

    def wants(self, *strategies: str) -> bool:
        return self.strategy is None or self.strategy in strategies


DEFAULT_POLICY = Policy()
FIRST, ALL = "first match", "all matches"
"""The two ways to test whether events match any subscription."""


class BoxSegment:
    """Matches batches against one `BoxTable`.

    Threads may match concurrently; `kill` may run at the same time and takes effect with the next
    batch at the latest.
    """

    def __init__(
        self,
        table: BoxTable,
        trie: Trie | None,
        box_index: BoxIndex | None,
        policy: Policy = DEFAULT_POLICY,
        strategies: Strategies | None = None,
    ) -> None:
        self.table = table
        self.trie = trie
        self.box_index = box_index
        self.policy = policy
        self.planner = Planner(EACH)
        self._searches = Planner((FIRST,))
        self._warm: set[str] = set()
        self.dead: Flags = _NOBODY
        self.dead_count = 0
        self.strategies = strategies or Strategies(table, trie, box_index)
        self._bitmap_debt_ns = 0
        self._any_overlap = bool(table.overlapping.any())

    @classmethod
    def build(
        cls, table: BoxTable, sample: EventBatch | None, policy: Policy = DEFAULT_POLICY
    ) -> BoxSegment:
        """Index a table; the sample gives predicate selectivities."""
        if len(table.owners) < policy.unindexed_boxes or policy.strategy == "scan":
            return cls(table, None, None, policy)
        rows = sum(boundaries.cell_count + 1 for boundaries in table.boundaries)
        trie = box_index = None
        if policy.wants("lanes", "walk", "bitmaps") and (policy.strategy or rows <= MAX_ROWS):
            columns = len(table.boundaries)
            cells = table.cells(sample) if sample else np.empty((0, columns), np.int32)
            trie = build_trie(table, cells)
        if policy.wants("boxes", "blocks") and (
            policy.strategy or trie is None or _in_plane(table)
        ):
            box_index = build_box_index(table)
        return cls(table, trie, box_index, policy)

    def __len__(self) -> int:
        return len(self.table.ids) - self.dead_count

    def place_of(self, subscription: int) -> int | None:
        """The position of a subscription; None if it is not held or dead."""
        place = self.table.place_of(subscription)
        if place is None or (len(self.dead) and self.dead[place]):
            return None
        return place

    def kill(self, place: int) -> None:
        if not len(self.dead):
            self.dead = np.zeros(len(self.table.ids), np.uint8)
        self.dead_count += int(self.dead[place] == 0)
        self.dead[place] = 1

    def bury(self, dead: Flags) -> None:
        """Restore the dead flags of a snapshot."""
        self.dead = dead.copy()
        self.dead_count = int(dead.sum(dtype=np.int64))

    def only(self, wanted: Mask) -> BoxSegment:
        """A read-only copy in which only living subscriptions that are wanted stay alive."""
        other = BoxSegment(self.table, self.trie, self.box_index, self.policy, self.strategies)
        other.bury(np.where(wanted, self.dead if len(self.dead) else 0, 1).astype(np.uint8))
        return other

    @property
    def is_indexed(self) -> bool:
        return self.trie is not None or self.box_index is not None

    @property
    def nbytes(self) -> int:
        parts = (self.table, self.trie, self.box_index, self.strategies)
        return sum(part.nbytes for part in parts if part is not None) + self.dead.nbytes

    def choose(self, events: int) -> str:
        """The strategy for a batch of `events` events."""
        return self.planner.choose(self._names(events), events)

    def _names(self, events: int) -> tuple[str, ...]:
        forced = self.policy.strategy
        return self.strategies.names(events) if forced is None or not self.is_indexed else (forced,)

    def match_batch(self, batch: EventBatch) -> Pairs:
        """All pairs of the batch, by the cheapest strategy."""
        if not len(batch) or not len(self.table.ids):
            return Pairs.none(len(batch))
        return self._matched(self.table.cells(batch))

    def _matched(self, cells: Ints32) -> Pairs:
        names = self._names(len(cells))
        self._compare(self.planner, names, cells, self._batch)
        strategy = self.planner.choose(names, len(cells))
        if len(cells) <= SINGLE_EVENTS:
            self._pay_for_bitmaps(strategy, len(cells))
        return Pairs(len(cells), self._batch(strategy, cells))

    def any_match(self, batch: EventBatch) -> Mask:
        """Which events match any subscription: by a search that ends at the first match, unless
        finding all matches in bulk measures cheaper."""
        if not len(batch) or not len(self.table.ids):
            return np.zeros(len(batch), np.bool_)
        cells = self.table.cells(batch)
        names = (FIRST, ALL) if self.is_indexed else (ALL,)
        self._compare(self._searches, names, cells, self._search)
        return self._search(self._searches.choose(names, len(cells)), cells)

    def _search(self, name: str, cells: Ints32) -> Mask:
        if name == ALL:
            return self._timed(
                self._searches, ALL, cells, lambda some: self._matched(some).any_match()
            )
        return self._timed(
            self._searches, FIRST, cells, lambda some: self.strategies.any_match(some, self.dead)
        )

    @staticmethod
    def _compare(
        planner: Planner, names: Sequence[str], cells: Ints32, work: Callable[[str, Ints32], object]
    ) -> None:
        """Before a large batch, measure the promising strategies on prefixes of it."""
        for probe in planner.probes(names, len(cells)):
            for name in planner.hopeful(names, probe):
                work(name, cells[:probe])

    def shared_strategy(self, events: int, threads: int) -> str | None:
        """The strategy for which threads should divide the boxes instead of taking `events` events
        each; None if there is none or its cost is not known yet."""
        strategy = self.choose(events)
        known = self.policy.strategy == strategy or self.planner.cost(strategy, events) > 0.0
        return (
            strategy if known and self.strategies.shares_boxes(strategy, events, threads) else None
        )

    def match_sharing_boxes(
        self, batch: EventBatch, strategy: str, pool: Executor, threads: int
    ) -> Pairs:
        """All pairs of the batch; each thread takes some of the boxes."""
        cells = self.table.cells(batch)
        parts = self.strategies.batch_sharing_boxes(strategy, cells, self.dead, pool, threads)
        return Pairs(len(cells), parts)

    def match_keys(self, keys: Sequence[Key | None]) -> Ints64:
        """The subscriptions that one event matches, unordered."""
        if not len(self.table.ids):
            return self.table.ids
        found = [coder(key) for coder, key in zip(self._coders, keys, strict=True)]
        cells = np.array([found], np.int32)
        strategy = self.choose(1)
        self._pay_for_bitmaps(strategy, 1)
        if strategy not in EACH:
            return Pairs(1, self._batch(strategy, cells)).expand()[1]
        owners = self._timed(
            self.planner,
            strategy,
            cells,
            lambda some: self.strategies.each(strategy, some, self.dead)[1],
        )
        return self.table.ids[np.unique(owners) if self._any_overlap else owners]

    @cached_property
    def _coders(self) -> list[Callable[[Key | None], int]]:
        return [key_coder(boundaries) for boundaries in self.table.boundaries]

    def match_each(
        self, batch: EventBatch, strategy: str, at_once: int
    ) -> Iterator[tuple[Ints64, Ints32]]:
        """Offsets and owners by event, matched one at a time, yielded per `at_once` events.

        For benchmarks: an owner occurs once per matching box.
        """
        cells = self.table.cells(batch)
        for first in range(0, len(cells), at_once):
            yield self.strategies.each(strategy, cells[first : first + at_once], self.dead)

    def _batch(self, strategy: str, cells: Ints32) -> tuple[Runs, ...]:
        return self._timed(
            self.planner,
            strategy,
            cells,
            lambda some: self.strategies.batch(strategy, some, self.dead),
        )

    def _timed(self, planner: Planner, name: str, cells: Ints32, work: Callable[[Ints32], T]) -> T:
        if name not in self._warm:
            # The first call loads the kernel or builds its index; that must not count as its cost.
            work(cells[:1])
            self._warm.add(name)
        return planner.timed(name, len(cells), lambda: work(cells))

    def _pay_for_bitmaps(self, strategy: str, events: int) -> None:
        """Build the bitmaps once small batches have cost about as much as building them would."""
        if self.strategies.has_bitmaps or not self.strategies.affords_bitmaps:
            return
        self._bitmap_debt_ns += int(self.planner.cost(strategy, events) * events)
        if self._bitmap_debt_ns > _BITMAP_NANOSECONDS * self.strategies.bitmap_bytes:
            self.strategies.make_bitmaps()


def _in_plane(table: BoxTable) -> bool:
    """Whether boxes share few predicates and most predicates are on the same two columns."""
    uses = np.sort(np.bincount(table.columns, minlength=2))
    own = table.distinct_predicates >= _OWN_RANGES * len(table.owners)
    return own and bool(uses[-2:].sum() >= _IN_PLANE * uses.sum())
