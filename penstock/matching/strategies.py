"""The strategies for matching the boxes of one segment.

======== ============================================================ ======================
scan     every box against every event                                no index, few boxes
lanes    many events at once through the trie                         `lane_kernel`
walk     one event at a time through the trie                         `trie_single`
bitmaps  one event at a time, a bitmap of boxes for every cell        `bitmaps`
boxes    rectangles streamed over indexed events                      `box_kernel`
blocks   one event at a time through blocks of rectangles             `box_kernel`
======== ============================================================ ======================
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from penstock.matching.bitmaps import Bitmaps, bitmap_bytes, bitmap_matches, build_bitmaps
from penstock.matching.box_index import BoxIndex
from penstock.matching.box_kernel import PASS_EVENTS as BOX_PASS_EVENTS
from penstock.matching.box_kernel import (
    box_matches,
    box_part_runs,
    box_runs,
    index_events,
)
from penstock.matching.dedupe import deduplicated
from penstock.matching.exists import any_box, any_walk
from penstock.matching.lane_kernel import lane_runs, pass_events
from penstock.matching.pairs import CONTIGUOUS, NO_LANES, Mask, Runs, runs_by_event
from penstock.matching.runs import EachEvent, Room, RunBuffers
from penstock.matching.scan import scan_runs
from penstock.matching.table import BoxTable
from penstock.matching.trie import SKIP, Trie
from penstock.matching.trie_single import RootIndex, build_doors, walk_matches

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8]
Kernel = Callable[[Ints32, RunBuffers], bool]

SINGLE_EVENTS = 64
"""Largest batch for which strategies that take one event at a time are considered."""
EACH = ("walk", "bitmaps", "blocks")
"""The strategies that take one event at a time."""
BITMAP_BYTES_PER_BOX = 1024
_SCAN_EVENTS = 4096
_SCANNED_LISTS = 64
"""Event lists for which a scan has room initially."""


@dataclass(frozen=True, slots=True)
class BoxNames:
    """The subscriptions of the boxes, in the order of an index."""

    ids: Ints64
    doubtful: Flags
    """Flags boxes that may overlap another box of their subscription; empty if there are none."""

    @property
    def nbytes(self) -> int:
        return self.ids.nbytes + self.doubtful.nbytes

    @classmethod
    def of(cls, table: BoxTable, owners: Ints32) -> BoxNames:
        some = table.overlapping.any()
        doubtful = table.overlapping[owners] if some else np.empty(0, np.uint8)
        return cls(table.ids[owners], doubtful)


# Many methods: two for each strategy, and one for each lazily built index that they share.
class Strategies:
    """The strategies that are possible with a table, a trie and a box index.

    The root index, bitmaps and names are built on first use, so that opening a snapshot reads no
    more than a header. Safe for concurrent use by threads.
    """

    def __init__(self, table: BoxTable, trie: Trie | None, box_index: BoxIndex | None) -> None:
        self._table = table
        self._trie = trie
        self._box_index = box_index
        self._bitmaps: Bitmaps | None = None
        self._building = threading.Lock()
        self._room: dict[str, Room] = {}
        self._each: dict[str, EachEvent] = {}
        self._names: dict[bool, tuple[str, ...]] = {}

    def names(self, events: int) -> tuple[str, ...]:
        """The strategies that are possible for `events` events."""
        few = events <= SINGLE_EVENTS
        if few not in self._names:
            self._names[few] = tuple(self._possible(few))
        return self._names[few]

    def _possible(self, few: bool) -> list[str]:
        if self._trie is None and self._box_index is None:
            return ["scan"]
        names = []
        if self._trie is not None:
            names += ["lanes", "walk"]
        if self._box_index is not None:
            names.append("boxes")
        if few and self._bitmaps is not None:
            names.append("bitmaps")
        if few and self._box_index is not None:
            names.append("blocks")
        return names

    @property
    def nbytes(self) -> int:
        """The size of what was built on first use."""
        made = ("_doors", "_trie_names", "_block_names", "_table_names")
        parts = [self._bitmaps, *(self.__dict__.get(name) for name in made)]
        return sum(int(part.nbytes) for part in parts if part is not None)

    # --- many events ----------------------------------------------------------------------------

    def batch(self, strategy: str, cells: Ints32, dead: Flags) -> tuple[Runs, ...]:
        """All matches of the events, each once."""
        if strategy in EACH:
            offsets, owners = self.each(strategy, cells, dead)
            return (self._each_once(np.diff(offsets), self._table.ids[owners]),)
        if strategy == "lanes":
            trie = self._trie
            assert trie is not None
            size = pass_events(trie, cells.shape[1])
            found = self._in_passes(
                strategy,
                self._trie_names,
                cells,
                size,
                lambda part, runs: lane_runs(trie, part, dead, runs),
            )
            return (*found, *self._unconditional(trie, len(cells), dead))
        if strategy == "boxes":
            index = self._box_index
            assert index is not None
            return self._in_passes(
                strategy,
                self._block_names,
                cells,
                BOX_PASS_EVENTS,
                lambda part, runs: box_runs(index, part, dead, runs),
            )
        return self._in_passes(
            strategy,
            self._table_names,
            cells,
            _SCAN_EVENTS,
            lambda part, runs: scan_runs(self._table, part, dead, runs),
        )

    def shares_boxes(self, strategy: str, events: int, threads: int) -> bool:
        """Whether threads should divide the boxes instead of taking `events` events each.

        Both `boxes` and `lanes` cost less per event the more events a pass has (`lanes` up to
        `pass_events`). `lanes` divides boxes by sort column, so there must be enough columns for
        all threads.
        """
        if strategy != "lanes":
            return strategy == "boxes"
        trie = self._trie
        assert trie is not None
        too_few = events < pass_events(trie, len(trie.row_bases) - 1)
        return too_few and len(self._access) >= 2 * threads and not len(self._trie_names.doubtful)

    def batch_sharing_boxes(
        self, strategy: str, cells: Ints32, dead: Flags, pool: Executor, threads: int
    ) -> tuple[Runs, ...]:
        """`batch` by a strategy that divides boxes: each thread takes some of them."""
        if strategy == "lanes":
            return self._sharing_columns(cells, dead, pool)
        return self._sharing_rectangles(cells, dead, pool, threads)

    def _sharing_columns(self, cells: Ints32, dead: Flags, pool: Executor) -> tuple[Runs, ...]:
        """One task per pass and column: the clusters rooted at that column."""
        trie = self._trie
        assert trie is not None
        names, size = self._trie_names, pass_events(trie, cells.shape[1])

        def one(work: tuple[int, range]) -> Runs:
            first, columns = work
            return self._with_room(
                f"lanes {columns.start}",
                names,
                cells[first : first + size],
                first,
                lambda part, runs: lane_runs(trie, part, dead, runs, columns),
            )

        firsts = range(0, len(cells), size)
        found = pool.map(one, [(first, columns) for first in firsts for columns in self._access])
        return (*found, *self._unconditional(trie, len(cells), dead))

    def _sharing_rectangles(
        self, cells: Ints32, dead: Flags, pool: Executor, threads: int
    ) -> tuple[Runs, ...]:
        index = self._box_index
        assert index is not None
        cuts = np.linspace(0, index.ranges.shape[1], threads + 1).astype(np.int64).tolist()
        shares = [range(start, stop) for start, stop in pairwise(cuts)]
        found: list[Runs] = []
        for first in range(0, len(cells), BOX_PASS_EVENTS):
            part = cells[first : first + BOX_PASS_EVENTS]
            events = index_events(index, part)
            kernels = [partial(box_part_runs, index, events, dead, share) for share in shares]
            work = partial(self._with_room, "boxes", self._block_names, part, first)
            # A subscription's boxes may be in different shares: deduplicate after concatenation.
            parts = list(pool.map(work, kernels))
            found += parts if not len(self._block_names.doubtful) else [_concat(parts)]
        return self._settled(found, self._block_names)

    def _in_passes(
        self, strategy: str, names: BoxNames, cells: Ints32, pass_events: int, kernel: Kernel
    ) -> tuple[Runs, ...]:
        found = [
            self._with_room(strategy, names, cells[first : first + pass_events], first, kernel)
            for first in range(0, len(cells), pass_events)
        ]
        return self._settled(found, names)

    def _settled(self, found: list[Runs], names: BoxNames) -> tuple[Runs, ...]:
        """Each pair once."""
        if not len(names.doubtful):
            return tuple(found)
        return tuple(clean for part in found for clean in deduplicated(part, names.doubtful))

    def _with_room(
        self, strategy: str, names: BoxNames, cells: Ints32, first_event: int, kernel: Kernel
    ) -> Runs:
        """Run a kernel, with ever larger buffers until its output fits."""
        room = self._room.setdefault(strategy, Room())
        columns = cells.shape[1] if strategy != "scan" else _SCANNED_LISTS
        while True:
            room.events = max(room.events, len(cells) * columns)
            runs = RunBuffers.of(room)
            if kernel(cells, runs):
                return runs.found(names.ids, first_event)
            room.grow()

    def _unconditional(self, trie: Trie, event_count: int, dead: Flags) -> list[Runs]:
        """The owners of boxes that contain every row, as runs over all events."""
        owners = trie.unconditional
        if len(dead):
            owners = owners[dead[owners] == 0]
        if not len(owners):
            return []
        spans = np.array([[0, len(owners), 0, event_count]], np.int32)
        events = np.arange(event_count, dtype=np.int32)
        starts = np.array([CONTIGUOUS], np.int64)
        return [Runs(self._table.ids[owners], spans, starts, events, NO_LANES)]

    # --- one event at a time --------------------------------------------------------------------

    def each(self, strategy: str, cells: Ints32, dead: Flags) -> tuple[Ints64, Ints32]:
        """Offsets and owners by event, matched one event at a time.

        An owner (a position in the ids of the table) occurs once per matching box. The next call
        of the same thread overwrites the arrays.
        """
        room = self._each.setdefault(strategy, EachEvent())
        if strategy == "bitmaps":
            return bitmap_matches(self.make_bitmaps(), cells, dead, room)
        if strategy == "walk":
            assert self._trie is not None
            return walk_matches(self._trie, self._doors, cells, dead, room)
        assert self._box_index is not None
        return box_matches(self._box_index, cells, dead, room)

    def each_strategies(self) -> list[str]:
        """The strategies of `each`; includes bitmaps if they are affordable."""
        strategies = ["walk"] if self._trie is not None else []
        if self.affords_bitmaps:
            strategies.append("bitmaps")
        if self._box_index is not None:
            strategies.append("blocks")
        return strategies

    def _each_once(self, counts: Ints64, ids: Ints64) -> Runs:
        if not self._table.overlapping.any():
            return runs_by_event(counts, ids)
        events = np.repeat(np.arange(len(counts)), counts)
        both = np.unique(np.stack([events, ids]), axis=1)
        return runs_by_event(np.bincount(both[0], minlength=len(counts)), both[1])

    # --- any match ------------------------------------------------------------------------------

    def any_match(self, cells: Ints32, dead: Flags) -> Mask:
        """Which events match any subscription; the search ends at an event's first match."""
        if self._box_index is not None:
            return any_box(self._box_index, cells, dead)
        assert self._trie is not None
        return any_walk(self._trie, self._doors, cells, dead)

    # --- built on first use ---------------------------------------------------------------------

    @cached_property
    def _doors(self) -> RootIndex:
        assert self._trie is not None
        return build_doors(self._trie)

    @cached_property
    def _access(self) -> list[range]:
        """The columns that root clusters, those of most boxes first."""
        assert self._trie is not None
        offsets, roots = self._trie.root_offsets, self._trie.root_nodes
        nodes = self._trie.nodes
        sizes = nodes[roots, SKIP] - roots
        before = np.concatenate([[0], np.cumsum(sizes)])
        walked = before[offsets[1:]] - before[offsets[:-1]]
        order = np.argsort(-walked, kind="stable").tolist()
        return [range(column, column + 1) for column in order if walked[column]]

    @cached_property
    def _trie_names(self) -> BoxNames:
        assert self._trie is not None
        return BoxNames.of(self._table, self._trie.box_owners)

    @cached_property
    def _block_names(self) -> BoxNames:
        assert self._box_index is not None
        return BoxNames.of(self._table, self._box_index.box_owners)

    @cached_property
    def _table_names(self) -> BoxNames:
        return BoxNames.of(self._table, self._table.owners)

    @property
    def has_bitmaps(self) -> bool:
        return self._bitmaps is not None

    @property
    def bitmap_bytes(self) -> int:
        return bitmap_bytes(self._trie) if self._trie is not None else 0

    @property
    def affords_bitmaps(self) -> bool:
        """Whether bitmaps are possible and small enough."""
        return 0 < self.bitmap_bytes <= BITMAP_BYTES_PER_BOX * len(self._table.owners)

    def make_bitmaps(self) -> Bitmaps:
        assert self._trie is not None
        with self._building:
            if self._bitmaps is None:
                self._bitmaps = build_bitmaps(self._table, self._trie)
                self._names = {}
        return self._bitmaps


def _concat(parts: list[Runs]) -> Runs:
    """Concatenate runs over the same boxes and the same list of events."""
    lanes_before = np.cumsum([0, *(len(part.lanes) for part in parts)])
    starts = [
        np.where(part.starts == CONTIGUOUS, CONTIGUOUS, part.starts + before)
        for part, before in zip(parts, lanes_before, strict=False)
    ]
    first = parts[0]
    return Runs(
        first.ids,
        np.concatenate([part.spans for part in parts]),
        np.concatenate(starts),
        first.events,
        np.concatenate([part.lanes for part in parts]),
        first.first_event,
    )
