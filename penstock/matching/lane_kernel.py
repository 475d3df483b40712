"""Bit-parallel matching: the trie is walked with 512 events as the lanes of eight 64-bit words.

For each column that roots clusters, the events are sorted by their cell in that column. The events
that satisfy a cluster's root are then neighbours, so the lanes that walk the cluster are full,
however rare the root predicate is. For each 512 events a table holds, for each cell of each column,
the lanes whose cell is lower; any predicate is then one AND-NOT of two of its rows, so the number
of distinct predicates does not matter. A lane mask that becomes empty skips the subtree.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from penstock.kernels.compiled import njit
from penstock.matching.cluster_walk import cluster_walk, set_lanes
from penstock.matching.runs import RunBuffers
from penstock.matching.trie import Trie

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]
Lanes = npt.NDArray[np.uint16]
Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.uint8]

WORDS = 8
LANES = 64 * WORDS
NARROW_WORDS = 2
"""Words of the narrow walk, for the many clusters that few events enter."""
_PASS_BYTES = 1 << 19
_FEWEST_PASS_EVENTS, _MOST_PASS_EVENTS = 8192, 262_144
_MANY_NODES = 1_000_000
"""1M nodes take 18 MB: more than a core's share of the last-level cache."""
_FULL_LANES = LANES // 2
"""Average number of events per pass that should enter a cluster."""

_walk_narrow = cluster_walk(NARROW_WORDS)
_walk_wide = cluster_walk(WORDS)


def pass_events(trie: Trie, columns: int) -> int:
    """Events per pass of sorting and walking.

    The cells of a pass should fit half a megabyte, so that they stay in the second-level cache; but
    a cluster entered by one event in 200 should still fill 40 lanes. Passes are larger if the nodes
    do not fit the cache, and if few events enter most clusters.
    """
    fitting = _PASS_BYTES // (4 * max(1, columns))
    fewest = _FEWEST_PASS_EVENTS if len(trie.nodes) < _MANY_NODES else 4 * _FEWEST_PASS_EVENTS
    filling = int(_FULL_LANES / max(trie.root_share, 1e-9))
    return min(_MOST_PASS_EVENTS, max(fewest, fitting, filling))


def lane_runs(
    trie: Trie, cells: Ints32, dead: Flags, runs: RunBuffers, columns: range | None = None
) -> bool:
    """Add the matches of all events with all boxes that have predicates.

    With `columns`, only those in clusters rooted there. `dead` owners match nothing (empty array:
    none is dead). False if the buffers were too small.
    """
    chosen = columns or range(cells.shape[1])
    counts = _walk_all(
        cells,
        chosen.start,
        chosen.stop,
        trie.row_bases,
        trie.nodes,
        trie.depths,
        trie.box_owners,
        trie.root_nodes,
        trie.root_lows,
        trie.root_highs,
        trie.root_offsets,
        dead,
        trie.height,
        *runs.arrays,
    )
    return runs.set_counts(*counts)


@njit
def _walk_all(
    cells: Ints32,
    first_column: int,
    last_column: int,
    row_bases: Ints32,
    nodes: Ints32,
    depths: npt.NDArray[np.uint16],
    box_owners: Ints32,
    root_nodes: Ints32,
    root_lows: Ints32,
    root_highs: Ints32,
    root_offsets: Ints32,
    dead: Flags,
    height: int,
    spans: Ints32,
    starts: Ints64,
    events: Ints32,
    lanes: Lanes,
) -> tuple[int, int, int]:
    """The numbers of runs, events and lanes written; -1 runs if the buffers were too small.

    `below` has one row per trie row (cell of a column), `live` one per depth of the trie: path
    depths are at most `height`. `events` receives one permutation of the batch per column that
    roots clusters; the caller makes room for one per column. The walks check `spans` and `lanes`.
    """
    event_count, column_count = cells.shape
    below = np.zeros((row_bases[column_count], WORDS), np.uint64)
    live = np.zeros((height + 1, WORDS), np.uint64)
    live_narrow = np.zeros((height + 1, NARROW_WORDS), np.uint64)
    run_count = listed = picked = 0
    for column in range(first_column, last_column):
        if root_offsets[column] == root_offsets[column + 1]:
            continue
        order = events[listed : listed + event_count]
        cell_count = row_bases[column + 1] - row_bases[column] - 1
        first_of_cell = _sort_by_cell(cells, column, cell_count, order)
        for first in range(0, event_count, LANES):
            last = min(event_count, first + LANES)
            lowest = cells[order[first], column]
            highest = cells[order[last - 1], column]
            is_filled = False
            for root in range(root_offsets[column], root_offsets[column + 1]):
                if root_lows[root] > highest:
                    break
                start = max(first, first_of_cell[root_lows[root]])
                stop = min(last, first_of_cell[root_highs[root]])
                if root_highs[root] <= lowest or start >= stop:
                    continue
                if not is_filled:
                    _fill_below(below, cells, row_bases, order[first:last], column)
                    is_filled = True
                node = root_nodes[root]
                # If the root is on the sort column, the lanes were selected by its predicate.
                is_implied = row_bases[column] <= nodes[node, 0] < row_bases[column + 1]
                base = listed + first
                start, stop = start - first, stop - first
                word = min(start >> 6, WORDS - NARROW_WORDS)
                if stop <= 64 * (word + NARROW_WORDS):
                    set_lanes(live_narrow[0], start - 64 * word, stop - 64 * word)
                    run_count, picked = _walk_narrow(
                        nodes,
                        depths,
                        node,
                        is_implied,
                        below,
                        word,
                        live_narrow,
                        box_owners,
                        dead,
                        base,
                        spans,
                        starts,
                        lanes,
                        run_count,
                        picked,
                    )
                else:
                    set_lanes(live[0], start, stop)
                    run_count, picked = _walk_wide(
                        nodes,
                        depths,
                        node,
                        is_implied,
                        below,
                        0,
                        live,
                        box_owners,
                        dead,
                        base,
                        spans,
                        starts,
                        lanes,
                        run_count,
                        picked,
                    )
                if run_count < 0:
                    return -1, 0, 0
        listed += event_count
    return run_count, listed, picked


@njit
def _sort_by_cell(cells: Ints32, column: int, cell_count: int, order: Ints32) -> Ints32:
    """Counting sort of the events by one column into `order`; returns where each cell begins.

    Counts are shifted by two, so that after the scatter entry `c` is the begin of cell `c`.
    """
    first_of_cell = np.zeros(cell_count + 2, np.int32)
    for event in range(len(order)):
        first_of_cell[cells[event, column] + 2] += 1
    for cell in range(2, cell_count + 2):
        first_of_cell[cell] += first_of_cell[cell - 1]
    for event in range(len(order)):
        cell = cells[event, column]
        order[first_of_cell[cell + 1]] = event
        first_of_cell[cell + 1] += 1
    return first_of_cell


@njit
def _fill_below(
    below: Words, cells: Ints32, row_bases: Ints32, chosen: Ints32, skipped: int
) -> None:
    """Fill the table: `below[row_bases[c] + cell]` is the lanes whose cell in column `c` is lower.

    The sort column is skipped: roots on it hold for all their lanes, and a box has no second
    predicate on it. Each column has one row more than cells, for the end of the last cell.
    """
    for column in range(cells.shape[1]):
        if column != skipped:
            below[row_bases[column] : row_bases[column + 1]] = 0
    for lane in range(len(chosen)):
        bit = np.uint64(1) << np.uint64(lane & 63)
        word = lane >> 6
        event = chosen[lane]
        for column in range(cells.shape[1]):
            below[row_bases[column] + cells[event, column] + 1, word] |= bit
    for column in range(cells.shape[1]):
        if column != skipped:
            for row in range(row_bases[column] + 1, row_bases[column + 1]):
                for word in range(WORDS):
                    below[row, word] |= below[row - 1, word]
