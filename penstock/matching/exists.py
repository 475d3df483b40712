"""Whether events match any subscription: the search ends at the first match of each event.

A message to all subscriptions needs no more than that. The more subscriptions an event matches,
the sooner one is found; only events without a match cost as much as a full search.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from penstock.kernels.compiled import njit
from penstock.matching.box_index import BLOCK_BOXES, GROUP_BLOCKS, BoxIndex
from penstock.matching.box_kernel import contains
from penstock.matching.pairs import Mask
from penstock.matching.trie import Trie
from penstock.matching.trie_single import RootIndex

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8]


def any_box(index: BoxIndex, cells: Ints32, dead: Flags) -> Mask:
    """Which events lie in some rectangle, by a search through the blocks."""
    found = np.zeros(len(cells), np.bool_)
    _any_box(
        cells,
        index.axes[0],
        index.axes[1],
        index.ranges,
        index.blocks,
        index.cores,
        index.groups,
        index.box_owners,
        index.rest_offsets,
        index.rest_columns,
        index.rest_lows,
        index.rest_highs,
        dead,
        found,
    )
    return found


@njit
def _any_box(
    cells: Ints32,
    x_axis: int,
    y_axis: int,
    ranges: Ints32,
    blocks: Ints32,
    cores: Ints32,
    groups: Ints32,
    box_owners: Ints32,
    rest_offsets: Ints64,
    rest_columns: Ints32,
    rest_lows: Ints32,
    rest_highs: Ints32,
    dead: Flags,
    found: Mask,
) -> None:
    any_check = len(dead) > 0 or len(rest_columns) > 0
    for event in range(len(cells)):
        x, y = cells[event, x_axis], cells[event, y_axis]
        group = _next_with(groups, 0, groups.shape[1], x, y)
        while group < groups.shape[1] and not found[event]:
            last = min(blocks.shape[1], (group + 1) * GROUP_BLOCKS)
            block = _next_with(blocks, group * GROUP_BLOCKS, last, x, y)
            while block < last and not found[event]:
                if not any_check and contains(cores, block, x, y):
                    found[event] = True
                    break
                end = (block + 1) * BLOCK_BOXES
                box = _next_with(ranges, block * BLOCK_BOXES, end, x, y)
                while box < end and not found[event]:
                    # The owner must be alive, and all predicates on other columns hold.
                    holds = len(dead) == 0 or dead[box_owners[box]] == 0
                    for p in range(rest_offsets[box], rest_offsets[box + 1]):
                        cell = cells[event, rest_columns[p]]
                        holds = holds and cell >= rest_lows[p] and cell < rest_highs[p]
                    found[event] = holds
                    box = _next_with(ranges, box + 1, end, x, y)
                block = _next_with(blocks, block + 1, last, x, y)
            group = _next_with(groups, group + 1, groups.shape[1], x, y)


@njit
def _next_with(ranges: Ints32, first: int, end: int, x: int, y: int) -> int:
    """The first rectangle from `first` on that contains the point (x, y), or `end`."""
    while first < end and not contains(ranges, first, x, y):
        first += 1
    return first


def any_walk(trie: Trie, doors: RootIndex, cells: Ints32, dead: Flags) -> Mask:
    """Which events match some box, by a walk through the trie that ends at the first match."""
    found = np.zeros(len(cells), np.bool_)
    owners = trie.unconditional
    if len(owners) and not (len(dead) and dead[owners].all()):
        found[:] = True
        return found
    _any_walk(
        cells,
        trie.row_bases,
        trie.nodes,
        trie.box_owners,
        doors.bases,
        doors.sizes,
        doors.offsets,
        doors.clusters,
        doors.everyone,
        doors.node_columns,
        dead,
        found,
    )
    return found


@njit
def _any_walk(
    cells: Ints32,
    row_bases: Ints32,
    nodes: Ints32,
    box_owners: Ints32,
    tree_bases: Ints64,
    tree_sizes: Ints64,
    door_offsets: Ints64,
    clusters: Ints32,
    everyone: Ints32,
    node_columns: npt.NDArray[np.uint16],
    dead: Flags,
    found: Mask,
) -> None:
    column_count = cells.shape[1]
    rows = np.empty(column_count, np.int32)
    for event in range(len(cells)):
        for column in range(column_count):
            rows[column] = row_bases[column] + cells[event, column]
        for column in range(column_count):
            place = tree_sizes[column] + cells[event, column]
            while tree_sizes[column] > 0 and place > 0 and not found[event]:
                tree_node = tree_bases[column] + place
                listed = clusters[door_offsets[tree_node] : door_offsets[tree_node + 1]]
                found[event] = _any_in(listed, nodes, rows, node_columns, box_owners, dead)
                place >>= 1
        if not found[event]:
            found[event] = _any_in(everyone, nodes, rows, node_columns, box_owners, dead)


@njit
def _any_in(
    roots: Ints32,
    nodes: Ints32,
    rows: Ints32,
    node_columns: npt.NDArray[np.uint16],
    box_owners: Ints32,
    dead: Flags,
) -> bool:
    """Whether some living box of these clusters contains the event; `rows` are its trie rows."""
    for root in roots:
        node, end = np.int64(root), np.int64(nodes[root, 2])
        while node < end:
            row = rows[node_columns[node]]
            if row < nodes[node, 0] or row >= nodes[node, 1]:
                node = np.int64(nodes[node, 2])
                continue
            for box in range(nodes[node, 3], nodes[node + 1, 3]):
                if len(dead) == 0 or dead[box_owners[box]] == 0:
                    return True
            node += 1
    return False
