"""A segment: the conditions of some subscriptions, with the indexes that pay for them.

Immutable but for the flags of the dead, what the planner learns, and bitmaps, which are built once
single events have cost as much without them as building would.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from penstock.catalog import Key
from penstock.matching.bitmaps import Bitmaps, bitmap_bytes, bitmap_matches, build_bitmaps
from penstock.matching.box_index import BoxIndex, build_box_index
from penstock.matching.box_kernel import PASS_EVENTS as BOX_PASS_EVENTS
from penstock.matching.box_kernel import (
    EventIndex,
    box_matches,
    box_part_runs,
    box_runs,
    index_events,
)
from penstock.matching.dedupe import deduplicated
from penstock.matching.events import EventBatch
from penstock.matching.lane_kernel import lane_runs, pass_events
from penstock.matching.pairs import CONTIGUOUS, Pairs
from penstock.matching.planner import PROBE_EVENTS, Planner
from penstock.matching.runs import Room, RunBuffers
from penstock.matching.scan import scan_runs
from penstock.matching.table import BoxTable
from penstock.matching.trie import Trie, build_trie
from penstock.matching.walk import Doors, build_doors, walk_matches

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8]

UNINDEXED_BOXES = 256
"""Fewer boxes are scanned: about 3 ns per box and event, and nothing to build."""
SINGLE_EVENTS = 64
"""Up to so many events, routes that take one event at a time compete."""
MAX_ROWS = 1 << 16
"""Cells of all columns for which lanes are worth a try: a table of 4 MB per stretch."""
BITMAP_BYTES_PER_BOX = 1024
_BITMAP_NANOSECONDS = 4
"""To build one byte of bitmaps, about."""
_SCAN_EVENTS = 4096
_SCANNED_LISTS = 64
"""Lists of events for which a scan has room at first."""
_OWN_RANGES = 0.25
"""Distinct predicates per box from which the box index is worth a try."""

_NOBODY: Flags = np.empty(0, np.uint8)


@dataclass(frozen=True, slots=True)
class Policy:
    """How segments are built and matched. With a `route`, always by that one (for measuring)."""

    unindexed_boxes: int = UNINDEXED_BOXES
    route: str | None = None

    def wants(self, *routes: str) -> bool:
        return self.route is None or self.route in routes


DEFAULT_POLICY = Policy()
_warm: set[str] = set()


class Segment:
    """Matches batches against one `BoxTable`.

    Threads may match at once; `kill` may run beside them and is seen by the next batch at the
    latest.
    """

    def __init__(
        self,
        table: BoxTable,
        trie: Trie | None,
        box_index: BoxIndex | None,
        policy: Policy = DEFAULT_POLICY,
    ) -> None:
        self.table = table
        self.trie = trie
        self.box_index = box_index
        self.policy = policy
        self.planner = Planner()
        self.dead: Flags = _NOBODY
        self.dead_count = 0
        self._bitmaps: Bitmaps | None = None
        self._bitmap_debt_ns = 0
        self._building = threading.Lock()
        self._room: dict[str, Room] = {}
        self._any_overlap = bool(table.overlapping.any())

    @classmethod
    def build(
        cls, table: BoxTable, sample: EventBatch | None, policy: Policy = DEFAULT_POLICY
    ) -> Segment:
        """Index a table, for events like those of the sample."""
        if len(table.owners) < policy.unindexed_boxes or policy.route == "scan":
            return cls(table, None, None, policy)
        rows = sum(boundaries.cell_count + 1 for boundaries in table.boundaries)
        trie = box_index = None
        if policy.wants("lanes", "walk", "bitmaps") and (policy.route or rows <= MAX_ROWS):
            columns = len(table.boundaries)
            cells = table.cells(sample) if sample else np.empty((0, columns), np.int32)
            trie = build_trie(table, cells)
        own_ranges = table.distinct_predicates >= _OWN_RANGES * len(table.owners)
        if policy.wants("boxes", "blocks") and (policy.route or trie is None or own_ranges):
            box_index = build_box_index(table)
        return cls(table, trie, box_index, policy)

    def __len__(self) -> int:
        return len(self.table.ids) - self.dead_count

    def place_of(self, subscription: int) -> int | None:
        """The position of a subscription that is here and alive."""
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
        """Mark as dead what a snapshot says was dead."""
        self.dead = dead.copy()
        self.dead_count = int(dead.sum(dtype=np.int64))

    @property
    def is_indexed(self) -> bool:
        return self.trie is not None or self.box_index is not None

    @property
    def nbytes(self) -> int:
        doors = self.__dict__.get("_doors")
        parts = (self.table, self.trie, self.box_index, doors, self._bitmaps)
        return sum(part.nbytes for part in parts if part is not None) + self.dead.nbytes

    def routes(self, events: int) -> list[str]:
        """The routes that can be taken for a batch of so many events."""
        if not self.is_indexed:
            return ["scan"]
        if self.policy.route is not None:
            return [self.policy.route]
        names = []
        if self.trie is not None:
            names.append("lanes")
        if self._doors is not None:
            names.append("walk")
        if self.box_index is not None:
            names.append("boxes")
        if events <= SINGLE_EVENTS:
            if self._bitmaps is not None:
                names.append("bitmaps")
            if self.box_index is not None:
                names.append("blocks")
        return names

    def match_batch(self, batch: EventBatch) -> Pairs:
        """All pairs of the batch, by the route that is cheapest."""
        if not len(batch) or not len(self.table.ids):
            return Pairs.none(len(batch))
        return self._match_cells(self.table.cells(batch))

    def prefers_sharing_boxes(self, events: int) -> bool:
        """Whether threads should share the boxes of a batch of so many events, not the events."""
        routes = self.routes(events)
        return "boxes" in routes and self.planner.choose(routes, events) == "boxes"

    def match_sharing_boxes(self, batch: EventBatch, pool: Executor, threads: int) -> Pairs:
        """All pairs of the batch; each thread takes some of the boxes."""
        index = self.box_index
        assert index is not None
        cells = self.table.cells(batch)
        parts, firsts = [], []
        cuts = np.linspace(0, index.ranges.shape[1], threads + 1).astype(np.int64).tolist()
        shares = [range(start, stop) for start, stop in pairwise(cuts)]
        for first in range(0, len(cells), BOX_PASS_EVENTS):
            part = cells[first : first + BOX_PASS_EVENTS]
            events = index_events(index, part)
            work = partial(self._some_boxes, index, events, part)
            parts += list(pool.map(work, shares))
            firsts += [first] * threads
        pairs = Pairs.join_same_ids(parts, len(cells), firsts)
        return deduplicated(pairs, self.table.overlapping) if self._any_overlap else pairs

    def _some_boxes(
        self, index: BoxIndex, events: EventIndex, cells: Ints32, boxes: range
    ) -> Pairs:
        return self._with_room(
            "boxes",
            cells,
            lambda part, runs: box_part_runs(index, events, part, self.dead, boxes, runs),
        )

    def match_keys(self, keys: Sequence[Key | None]) -> Ints64:
        """The subscriptions that one event matches, in no order."""
        if not len(self.table.ids):
            return self.table.ids
        pairs = self._match_cells(self.table.cells_of_row(keys))
        return pairs.ids[pairs.owners]

    def _match_cells(self, cells: Ints32) -> Pairs:
        events = len(cells)
        routes = self.routes(events)
        if self.planner.needs_probe(routes, events):
            for name in routes:
                self._measured(name, cells[:PROBE_EVENTS])
        route = self.planner.choose(routes, events)
        if events <= SINGLE_EVENTS:
            self._pay_for_bitmaps(route, events)
        return self._measured(route, cells)

    def single_routes(self) -> list[str]:
        """The routes of `match_each`."""
        routes = ["walk"] if self._doors is not None else []
        if self.trie is not None and self.affords_bitmaps:
            routes.append("bitmaps")
        if self.box_index is not None:
            routes.append("blocks")
        return routes

    def match_each(self, batch: EventBatch, route: str) -> tuple[Ints64, Ints32]:
        """Offsets and owners by event, found one event at a time, nothing shared between events.

        For measuring: an owner comes once for each of its boxes.
        """
        cells = self.table.cells(batch)
        if route == "bitmaps":
            return bitmap_matches(self._own_bitmaps(), cells, self.dead)
        if route == "walk":
            assert self.trie is not None
            assert self._doors is not None
            return walk_matches(self.trie, self._doors, cells, self.dead)
        assert self.box_index is not None
        return box_matches(self.box_index, cells, self.dead)

    def _measured(self, route: str, cells: Ints32) -> Pairs:
        work: dict[str, Callable[[Ints32], Pairs]] = {
            "scan": self._by_scan,
            "lanes": self._by_lanes,
            "walk": self._by_walk,
            "boxes": self._by_boxes,
            "bitmaps": self._by_bitmaps,
            "blocks": self._by_blocks,
        }
        if route not in _warm:
            # The first call compiles or loads a kernel, which says nothing about its cost.
            work[route](cells[:1])
            _warm.add(route)
        pairs = self.planner.timed(route, len(cells), lambda: work[route](cells))
        return deduplicated(pairs, self.table.overlapping) if self._any_overlap else pairs

    def _by_scan(self, cells: Ints32) -> Pairs:
        return self._in_passes(
            "scan",
            cells,
            _SCAN_EVENTS,
            lambda part, runs: scan_runs(self.table, part, self.dead, runs),
        )

    def _by_lanes(self, cells: Ints32) -> Pairs:
        trie = self.trie
        assert trie is not None
        pairs = self._in_passes(
            "lanes",
            cells,
            pass_events(cells.shape[1]),
            lambda part, runs: lane_runs(trie, part, self.dead, runs),
        )
        return self._with_unconditional(pairs, trie)

    def _by_walk(self, cells: Ints32) -> Pairs:
        assert self.trie is not None
        assert self._doors is not None
        found = walk_matches(self.trie, self._doors, cells, self.dead)
        return self._with_unconditional(self._of_each(*found), self.trie)

    def _by_boxes(self, cells: Ints32) -> Pairs:
        index = self.box_index
        assert index is not None
        return self._in_passes(
            "boxes",
            cells,
            BOX_PASS_EVENTS,
            lambda part, runs: box_runs(index, part, self.dead, runs),
        )

    def _by_blocks(self, cells: Ints32) -> Pairs:
        assert self.box_index is not None
        return self._of_each(*box_matches(self.box_index, cells, self.dead))

    def _by_bitmaps(self, cells: Ints32) -> Pairs:
        return self._of_each(*bitmap_matches(self._own_bitmaps(), cells, self.dead))

    def _of_each(self, offsets: Ints64, owners: Ints32) -> Pairs:
        """Pairs with one run per match, for few events."""
        events = np.arange(len(offsets) - 1, dtype=np.int32)
        counts = np.diff(offsets)
        return Pairs(
            len(events),
            self.table.ids,
            owners,
            np.repeat(events, counts),
            np.full(len(owners), CONTIGUOUS, np.int64),
            np.ones(len(owners), np.int32),
            events,
            np.empty(0, np.uint16),
        )

    def _in_passes(
        self,
        route: str,
        cells: Ints32,
        pass_events: int,
        kernel: Callable[[Ints32, RunBuffers], bool],
    ) -> Pairs:
        parts, firsts = [], []
        for first in range(0, len(cells), pass_events):
            parts.append(self._with_room(route, cells[first : first + pass_events], kernel))
            firsts.append(first)
        return Pairs.join_same_ids(parts, len(cells), firsts)

    def _with_room(
        self, route: str, cells: Ints32, kernel: Callable[[Ints32, RunBuffers], bool]
    ) -> Pairs:
        """Run a kernel with as much room as it needs."""
        room = self._room.setdefault(route, Room())
        columns = cells.shape[1] if route != "scan" else _SCANNED_LISTS
        while True:
            room.events = max(room.events, len(cells) * columns)
            runs = RunBuffers.of(room)
            if kernel(cells, runs):
                return runs.pairs(len(cells), self.table.ids)
            room.grow()

    def _with_unconditional(self, pairs: Pairs, trie: Trie) -> Pairs:
        """Add the owners of boxes that contain every row."""
        owners = trie.unconditional
        if len(self.dead):
            owners = owners[self.dead[owners] == 0]
        if not len(owners):
            return pairs
        events = np.arange(pairs.event_count, dtype=np.int32)
        count = len(owners)
        everyone = Pairs(
            pairs.event_count,
            pairs.ids,
            owners,
            np.zeros(count, np.int32),
            np.full(count, CONTIGUOUS, np.int64),
            np.full(count, pairs.event_count, np.int32),
            events,
            np.empty(0, np.uint16),
        )
        return Pairs.join_same_ids([pairs, everyone], pairs.event_count, [0, 0])

    def _pay_for_bitmaps(self, route: str, events: int) -> None:
        """Build the bitmaps once single events have cost about as much without them."""
        if self._bitmaps is not None or not self.affords_bitmaps:
            return
        self._bitmap_debt_ns += int(self.planner.cost(route, events) * events)
        if self._bitmap_debt_ns > _BITMAP_NANOSECONDS * self._bitmap_bytes:
            self._own_bitmaps()

    @cached_property
    def _doors(self) -> Doors | None:
        """Built with the first match, so that opening a snapshot reads no more than a header."""
        return build_doors(self.trie) if self.trie is not None else None

    @property
    def _bitmap_bytes(self) -> int:
        return bitmap_bytes(self.trie) if self.trie is not None else 0

    @property
    def affords_bitmaps(self) -> bool:
        """Whether bitmaps are possible and small enough."""
        return 0 < self._bitmap_bytes <= BITMAP_BYTES_PER_BOX * len(self.table.owners)

    def _own_bitmaps(self) -> Bitmaps:
        assert self.trie is not None
        with self._building:
            if self._bitmaps is None:
                self._bitmaps = build_bitmaps(self.table, self.trie)
        return self._bitmaps
