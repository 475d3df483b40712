"""The default matcher: indexed segments, a small unindexed delta, and merging in tiers."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from penstock.catalog import Relation, Row
from penstock.errors import SubscriptionError
from penstock.matching.events import EventBatch, row_keys
from penstock.matching.explain import explain_boxes
from penstock.matching.interface import MatcherStatistics, MatchExplanation
from penstock.matching.matcher_registry import register
from penstock.matching.merging import bury_missing, merge_segments, next_merge
from penstock.matching.pairs import Ints64, Mask, Pairs
from penstock.matching.range_boxes import RangeBoxes
from penstock.matching.sampling import EventSample
from penstock.matching.segment import DEFAULT_POLICY, BoxSegment, Policy
from penstock.matching.snapshot import load_segments, save_segments
from penstock.matching.table import BoxTable
from penstock.predicates.boxes import Box

_PARALLEL_EVENTS = 4096
"""Smaller batches are matched by one thread."""
_INLINE_MERGE_BOXES = 4096
"""Merges of up to this many boxes run inline, in a few milliseconds, larger ones in a thread."""


# Many methods: the protocol alone has 11, and merging needs the same lock and segments.
@register("lanes")
class LaneMatcher:
    """Subscriptions in immutable segments (`BoxSegment`), newest last.

    New subscriptions wait until the next match, become a small segment that is scanned, and are
    merged into ever larger ones, four of about equal size at a time. Small merges run inline, large
    ones in a background thread that builds aside and then swaps the list of segments. Removed
    subscriptions are marked dead and left out of the next merge.

    Any number of threads may match while one inserts and removes: a match works on the list of
    segments it read at its start and never waits for a merge.
    """

    def __init__(
        self,
        relation: Relation,
        *,
        threads: int | None = None,
        sample: EventBatch | None = None,
        background: bool = True,
        policy: Policy = DEFAULT_POLICY,
    ) -> None:
        """`sample` holds events like those to come, to order predicates by; without it, the
        first batches are used. Large batches are matched by `threads` threads (one per core)."""
        self.relation = relation
        self._threads = threads if threads is not None else (os.cpu_count() or 1)
        self._background = background
        self._policy = policy
        self._sample = EventSample(relation, sample)
        self._waiting: dict[int, tuple[Box, ...]] = {}
        self._segments: tuple[BoxSegment, ...] = ()
        self._changing = threading.RLock()
        self._merging: tuple[BoxSegment, ...] = ()
        self._merger: threading.Thread | None = None
        self._pool: ThreadPoolExecutor | None = None

    # --- subscriptions --------------------------------------------------------------------------

    def __len__(self) -> int:
        with self._changing:
            return len(self._waiting) + sum(map(len, self._segments))

    def __contains__(self, subscription: int) -> bool:
        with self._changing:
            return subscription in self._waiting or self._find(subscription) is not None

    def insert(self, subscription: int, boxes: Sequence[Box]) -> None:
        with self._changing:
            self._bury(subscription)
            self._waiting[subscription] = tuple(boxes)

    def insert_many(self, subscriptions: Iterable[tuple[int, Sequence[Box]]]) -> None:
        for subscription, boxes in subscriptions:
            self.insert(subscription, boxes)
        self._settle()

    def insert_ranges(self, boxes: RangeBoxes) -> None:
        """Insert many subscriptions at once, from flat arrays."""
        table = BoxTable.of_ranges(self.relation, boxes)
        with self._changing:
            if self._waiting or self._segments:
                for subscription in table.ids.tolist():
                    self._waiting.pop(subscription, None)
                    self._bury(subscription)
            self._segments = (
                *self._segments,
                BoxSegment.build(table, self._sample.batch, self._policy),
            )
        self._merge_what_is_due()

    def remove(self, subscription: int) -> bool:
        with self._changing:
            if self._waiting.pop(subscription, None) is not None:
                return True
            return self._bury(subscription)

    def _find(self, subscription: int) -> tuple[BoxSegment, int] | None:
        for segment in reversed(self._segments):
            place = segment.place_of(subscription)
            if place is not None:
                return segment, place
        return None

    def _bury(self, subscription: int) -> bool:
        found = self._find(subscription)
        if found is None:
            return False
        found[0].kill(found[1])
        return True

    def boxes_of(self, subscription: int) -> Sequence[Box] | None:
        """The boxes of a subscription; None if it is not held."""
        with self._changing:
            boxes: Sequence[Box] | None = self._waiting.get(subscription)
            found = self._find(subscription) if boxes is None else None
        return found[0].table.boxes_of(found[1]) if found is not None else boxes

    # --- matching -------------------------------------------------------------------------------

    def match(self, row: Row) -> list[int]:
        keys = row_keys(self.relation, row)
        found = [segment.match_keys(keys) for segment in self._settle()]
        if not found:
            return []
        ids = np.sort(found[0] if len(found) == 1 else np.concatenate(found))
        matching: list[int] = ids.tolist()
        return matching

    def match_batch(self, batch: EventBatch) -> Pairs:
        self._sample.observe(batch)
        segments = self._settle()
        if not segments:
            return Pairs.none(len(batch))
        if self._threads == 1 or len(batch) < _PARALLEL_EVENTS:
            return _matched(segments, batch)
        pool, share = self._sharing(batch)
        parts, firsts, rest = [], [], []
        for segment in segments:
            strategy = segment.shared_strategy(share, self._threads)
            if strategy is None:
                rest.append(segment)
            else:
                found = segment.match_sharing_boxes(batch, strategy, pool, self._threads)
                parts.append(found)
                firsts.append(0)
        if rest:
            starts = list(range(0, len(batch), share))
            slices = [batch.slice(start, start + share) for start in starts]
            parts += pool.map(lambda part: _matched(rest, part), slices)
            firsts += starts
        return Pairs.join(parts, len(batch), firsts)

    def any_match(self, batch: EventBatch) -> Mask:
        self._sample.observe(batch)
        segments = self._settle()
        if self._threads == 1 or len(batch) < _PARALLEL_EVENTS:
            return _any_match(segments, batch)
        pool, share = self._sharing(batch)
        slices = [batch.slice(start, start + share) for start in range(0, len(batch), share)]
        return np.concatenate(list(pool.map(lambda part: _any_match(segments, part), slices)))

    def _sharing(self, batch: EventBatch) -> tuple[ThreadPoolExecutor, int]:
        """The thread pool, and the number of events per thread."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, "penstock-match")
        return self._pool, -(-len(batch) // self._threads)

    # --- segments -------------------------------------------------------------------------------

    def _settle(self) -> tuple[BoxSegment, ...]:
        """The segments, after indexing all pending insertions."""
        if self._waiting:
            with self._changing:
                if self._waiting:
                    table = BoxTable.of_unions(self.relation, self._waiting.items())
                    self._waiting = {}
                    fresh = BoxSegment.build(table, self._sample.batch, self._policy)
                    self._segments = (*self._segments, fresh)
            self._merge_what_is_due()
        return self._segments

    def _merge_what_is_due(self) -> None:
        """Run small merges inline and start a background thread for larger ones."""
        with self._changing:
            while due := self._due():
                if sum(len(s.table.owners) for s in due) > _INLINE_MERGE_BOXES:
                    break
                self._swap(due)
            if not due or self._merging:
                return
            self._merging = tuple(due)
            self._merger = threading.Thread(
                target=self._merge_aside, name="penstock-merge", daemon=True
            )
            self._merger.start()
        if not self._background:
            self._merger.join()

    def _due(self) -> list[BoxSegment]:
        return next_merge([s for s in self._segments if s not in self._merging])

    def _merge_aside(self) -> None:
        """Body of the background thread: merge as long as a merge is due."""
        while self._merging:
            self._swap(self._merging)
            with self._changing:
                self._merging = tuple(self._due())

    def _swap(self, old: Sequence[BoxSegment]) -> None:
        """Replace segments by one that holds their living subscriptions."""
        merged = merge_segments(old, self._sample.batch, self._policy)
        with self._changing:
            bury_missing(merged, old)
            kept = [segment for segment in self._segments if segment not in old]
            self._segments = (merged, *kept)

    def wait(self) -> None:
        """Block until no merge is due or running."""
        merger = self._merger
        if merger is not None:
            merger.join()

    def compact(self) -> None:
        """Merge everything into one segment, ordered by the events seen so far."""
        self._settle()
        self.wait()
        if self._segments:
            self._swap(self._segments)

    # --- inspection -----------------------------------------------------------------------------

    @property
    def segments(self) -> tuple[BoxSegment, ...]:
        """The segments, after indexing all pending insertions; largest first."""
        return self._settle()

    def statistics(self) -> MatcherStatistics:
        segments = self._settle()
        details: dict[str, int | float | str] = {
            "segments": len(segments),
            "unindexed_boxes": sum(len(s.table.owners) for s in segments if not s.is_indexed),
            "dead": sum(segment.dead_count for segment in segments),
            "nodes": sum(len(s.trie.nodes) - 1 for s in segments if s.trie is not None),
        }
        for segment in segments[:1]:
            for (strategy, size), cost in sorted(segment.planner.costs.items()):
                details[f"{strategy}_ns_per_event_at_{4**size}"] = round(cost)
        return MatcherStatistics(
            sum(map(len, segments)),
            sum(len(segment.table.owners) for segment in segments),
            sum(segment.table.distinct_predicates for segment in segments),
            sum(segment.nbytes for segment in segments),
            details,
        )

    def explain(self, row: Row, subscription: int) -> MatchExplanation:
        boxes = self.boxes_of(subscription)
        if boxes is None:
            raise SubscriptionError(f"no subscription {subscription} over {self.relation.name}")
        return explain_boxes(self.relation, subscription, boxes, row)

    def with_threads(self, threads: int) -> LaneMatcher:
        """A read-only matcher over the same segments."""
        other = LaneMatcher(self.relation, threads=threads, policy=self._policy)
        other._segments = self._settle()
        return other

    def only(self, wanted: Callable[[Ints64], Mask]) -> LaneMatcher:
        """A read-only matcher over the same segments, restricted to the subscriptions whose ids
        are `wanted`."""
        other = LaneMatcher(self.relation, threads=self._threads, policy=self._policy)
        other._segments = tuple(one.only(wanted(one.table.ids)) for one in self._settle())
        return other

    # --- snapshots ------------------------------------------------------------------------------

    def save(self, directory: Path) -> None:
        """Write a snapshot: the segments as files, and a manifest that names them."""
        save_segments(directory, self._settle())

    @classmethod
    def open(cls, relation: Relation, directory: Path, threads: int | None = None) -> LaneMatcher:
        """Map a snapshot into memory. Processes that open the same one share its pages."""
        matcher = cls(relation, threads=threads)
        matcher._segments = load_segments(directory, relation)
        return matcher


def _matched(segments: Sequence[BoxSegment], batch: EventBatch) -> Pairs:
    parts = [segment.match_batch(batch) for segment in segments]
    return Pairs.join(parts, len(batch), [0] * len(parts))


def _any_match(segments: Sequence[BoxSegment], batch: EventBatch) -> Mask:
    found = np.zeros(len(batch), np.bool_)
    for segment in segments:
        left = np.flatnonzero(~found)
        found[left] = segment.any_match(batch if len(left) == len(batch) else batch.take(left))
    return found
