"""Many events at once: the trie is walked with 512 events as the lanes of eight 64-bit words.

For each column that roots clusters, the events are sorted by their cell in that column. The events
that satisfy a cluster's root are then neighbours, so the lanes that walk the cluster are full,
however rare the root predicate is. For each stretch of 512 events a table says, for each cell of
each column, which lanes lie below it; any predicate is then one AND-NOT of two of its rows, so the
number of distinct predicates does not matter. A lane mask that becomes empty skips the subtree.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from penstock.matching.compiled import njit, popcount, put_eight, trailing_zeros
from penstock.matching.runs import RunBuffers
from penstock.matching.trie import Trie

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]
Lanes = npt.NDArray[np.uint16]
Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.uint8]

WORDS = 8
LANES = 64 * WORDS
_PASS_BYTES = 1 << 19
_FEWEST_PASS_EVENTS, _MOST_PASS_EVENTS = 8192, 65_536

_FEW_BITS = 5
"""Up to so many set bits of a word are taken one by one, more byte by byte through a table."""
_BITS_OF_BYTE = np.array(
    [([k for k in range(8) if byte >> k & 1] + [0] * 8)[:8] for byte in range(256)], np.uint16
)


def pass_events(columns: int) -> int:
    """How many events to sort and walk in one go.

    As many as have their cells in half a megabyte, so that they stay in the second-level cache;
    but so many that a cluster entered by one event in 200 still fills 40 lanes.
    """
    fitting = _PASS_BYTES // (4 * max(1, columns))
    return max(_FEWEST_PASS_EVENTS, min(_MOST_PASS_EVENTS, fitting))


def lane_runs(trie: Trie, cells: Ints32, dead: Flags, runs: RunBuffers) -> bool:
    """Add the matches of all events with all boxes that have predicates.

    `dead` owners match nothing (no array: nobody is dead). False if the buffers were too small.
    """
    counts = _walk_all(
        cells,
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
    owners: Ints32,
    bases: Ints32,
    starts: Ints64,
    lengths: Ints32,
    events: Ints32,
    lanes: Lanes,
) -> tuple[int, int, int]:
    """The numbers of runs, events and lanes written; -1 runs if there was no room."""
    event_count, column_count = cells.shape
    below = np.zeros((row_bases[column_count], WORDS), np.uint64)
    live = np.zeros((height + 1, WORDS), np.uint64)
    run_count = listed = picked = 0
    any_dead = len(dead) > 0
    for column in range(column_count):
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
                _set_lanes(live[0], start - first, stop - first)
                node = np.int64(root_nodes[root])
                end = np.int64(nodes[node, 2])
                # Lanes sorted by the root's own column were chosen by it: it holds for all.
                is_implied = row_bases[column] <= nodes[node, 0] < row_bases[column + 1]
                while node < end:
                    depth = np.int64(depths[node])
                    if is_implied:
                        live[1] = live[0]
                        is_implied = False
                    else:
                        low, high = nodes[node, 0], nodes[node, 1]
                        some = np.uint64(0)
                        for word in range(WORDS):
                            left = live[depth - 1, word] & below[high, word] & ~below[low, word]
                            live[depth, word] = left
                            some |= left
                        if some == 0:
                            node = np.int64(nodes[node, 2])
                            continue
                    box, box_end = nodes[node, 3], nodes[node + 1, 3]
                    node += 1
                    if box == box_end:
                        continue
                    if run_count + (box_end - box) > len(owners) or picked + LANES + 8 > len(lanes):
                        return -1, 0, 0
                    begin = picked
                    picked = _pick_lanes(live[depth], lanes, picked)
                    for place in range(box, box_end):
                        owner = box_owners[place]
                        owners[run_count] = owner
                        bases[run_count] = listed + first
                        starts[run_count] = begin
                        lengths[run_count] = picked - begin
                        run_count += int(not any_dead or dead[owner] == 0)
        listed += event_count
    return run_count, listed, picked


@njit
def _sort_by_cell(cells: Ints32, column: int, cell_count: int, order: Ints32) -> Ints32:
    """Sort the events by one column into `order`; returns where each cell begins."""
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
    """below[row_bases[c] + cell] becomes the lanes whose cell in column c is lower.

    The column that the lanes are sorted by is skipped: the roots on it hold for their lanes, and a
    box has no second predicate on it.
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


@njit
def _set_lanes(words: Words, start: int, stop: int) -> None:
    """Set the lanes from `start` to `stop`, and no others."""
    for word in range(WORDS):
        low = min(64, max(0, start - word * 64))
        high = min(64, max(0, stop - word * 64))
        ones = np.uint64(0)
        if high > low:
            ones = ~np.uint64(0) >> np.uint64(64 - (high - low)) << np.uint64(low)
        words[word] = ones


@njit
def _pick_lanes(words: Words, lanes: Lanes, picked: int) -> int:
    """Append the numbers of the set bits to `lanes`; up to 8 entries beyond may be overwritten."""
    for word in range(WORDS):
        bits = words[word]
        if bits == 0:
            continue
        if popcount(bits) <= _FEW_BITS:
            while bits != 0:
                lanes[picked] = np.uint16(word * 64 + trailing_zeros(bits))
                picked += 1
                bits &= bits - np.uint64(1)
        else:
            for place in range(8):
                byte = np.int64(bits >> np.uint64(8 * place)) & 255
                put_eight(lanes, picked, _BITS_OF_BYTE, byte, np.uint16(word * 64 + 8 * place))
                picked += popcount(np.uint64(byte))
    return picked
