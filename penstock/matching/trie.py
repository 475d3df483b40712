"""The trie of a segment: boxes with a common prefix of predicates share its nodes.

The predicates of each box are ordered by selectivity, the most selective first, and the boxes are
sorted by these lists. Nodes are in preorder and store where their subtree ends, so a subtree that
no event can match is skipped by one jump. The nodes at the top are the roots of *clusters*: the
boxes whose most selective predicate is the root's. Sorting a batch by a column costs time, so only
some columns may root clusters; `access.py` chooses them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.kernels.compiled import njit
from penstock.matching.access import access_columns
from penstock.matching.table import BoxTable

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

LOW_ROW, HIGH_ROW, SKIP, FIRST_BOX = range(4)
"""Columns of a node."""

_SORTED_PREDICATES = 32
"""Sort depth: longer common prefixes may stay unshared."""


@dataclass(frozen=True, slots=True)
class Trie:
    """Boxes in preorder.

    A *row* stands for one cell of one column: row `row_bases[c] + cell`. A node's predicate holds
    for the rows from its low row up to its high row. The paths of the boxes `nodes[i, FIRST_BOX]`
    up to `nodes[i + 1, FIRST_BOX]` end at node `i`; the last node is a sentinel. The boxes before
    the first node's have no predicates. Clusters are listed by column, then by low cell.
    """

    row_bases: Ints32
    nodes: Ints32
    depths: npt.NDArray[np.uint16]
    box_owners: Ints32
    root_nodes: Ints32
    root_lows: Ints32
    root_highs: Ints32
    root_offsets: Ints32
    """Column `c` has the clusters `root_offsets[c] : root_offsets[c + 1]`."""
    box_order: Ints32
    """Position in the table of each box of the trie."""

    @property
    def height(self) -> int:
        return int(self.depths.max()) if len(self.depths) else 0

    @property
    def root_share(self) -> float:
        """The average share of its column's cells that a cluster root accepts; equals the share of
        events if they are spread evenly."""
        if not len(self.root_nodes):
            return 1.0
        cells = np.repeat(np.diff(self.row_bases) - 1, np.diff(self.root_offsets))
        return float(np.mean((self.root_highs - self.root_lows) / np.maximum(cells, 1)))

    @property
    def unconditional(self) -> Ints32:
        """The owners of boxes that contain every row."""
        return self.box_owners[: self.nodes[0, FIRST_BOX]]

    @property
    def nbytes(self) -> int:
        arrays = (self.nodes, self.depths, self.box_owners, self.root_nodes, self.box_order)
        return sum(array.nbytes for array in arrays)


def build_trie(table: BoxTable, sample: Ints32) -> Trie:
    """The trie of a table, its predicates ordered by how many of the sampled cells they accept."""
    row_bases = np.cumsum([0, *(b.cell_count + 1 for b in table.boundaries)]).astype(np.int32)
    _, first, which = np.unique(table.predicate_keys, return_index=True, return_inverse=True)
    numbers: Ints32 = which.astype(np.int32)
    shares = selectivities(table, sample, first)
    access = access_columns(table, shares[numbers], int(row_bases[-1]))
    numbers = numbers[_predicate_order(table, _ranks(shares)[numbers], access)]
    order = _box_order(numbers, table.offsets)
    nodes, depths = _preorder(numbers, table.offsets, order)
    columns, lows, highs = (array[first] for array in (table.columns, table.lows, table.highs))
    number = nodes[:-1, LOW_ROW].copy()
    nodes[:-1, LOW_ROW] = row_bases[columns[number]] + lows[number]
    nodes[:-1, HIGH_ROW] = row_bases[columns[number]] + highs[number]
    roots = np.flatnonzero(depths[:-1] == 1).astype(np.int32)
    by_root = number[roots]
    root_columns, root_lows, root_highs = columns[by_root], lows[by_root], highs[by_root]
    if len(access):
        # Boxes without an access column are walked by all events, sorted by the first one.
        rest = ~np.isin(root_columns, access)
        root_columns[rest] = access[0]
        root_lows[rest], root_highs[rest] = 0, table.boundaries[access[0]].cell_count
    listed = np.lexsort((root_lows, root_columns))
    counts = np.bincount(root_columns, minlength=len(table.boundaries))
    return Trie(
        row_bases,
        nodes,
        depths,
        table.owners[order],
        roots[listed],
        root_lows[listed],
        root_highs[listed],
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        order,
    )


def _predicate_order(table: BoxTable, ranks: Ints32, access: Ints64) -> Ints64:
    """Positions of the predicates, box by box: the access predicate first, then by rank."""
    boxes = np.repeat(np.arange(len(table.owners)), np.diff(table.offsets))
    last = np.int32(len(ranks))
    eligible = np.where(np.isin(table.columns, access), ranks, last)
    best = np.full(len(table.owners), last, np.int32)
    np.minimum.at(best, boxes, eligible)
    return np.lexsort((np.where(eligible == best[boxes], -1, ranks), boxes))


def _ranks(shares: Floats) -> Ints32:
    """The rank of each predicate, the most selective first."""
    order = np.argsort(shares, kind="stable")
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    return ranks


def selectivities(table: BoxTable, sample: Ints32, predicates: Ints64) -> Floats:
    """The share of the sampled events that each predicate accepts.

    One pseudo-event, spread evenly over the cells, orders the predicates that accept no sample.
    """
    shares = np.empty(len(predicates))
    columns = table.columns[predicates]
    for c, boundaries in enumerate(table.boundaries):
        chosen = columns == c
        if chosen.any():
            counts = np.bincount(sample[:, c], minlength=boundaries.cell_count)
            weights = (counts + 1 / boundaries.cell_count) / (len(sample) + 1)
            below = np.concatenate([[0.0], np.cumsum(weights)])
            places = predicates[chosen]
            shares[chosen] = below[table.highs[places]] - below[table.lows[places]]
    return shares


def _box_order(numbers: Ints32, offsets: Ints64) -> Ints32:
    """The boxes, sorted by their lists of predicates; a prefix comes first.

    Predicates are numbered by column, then by low end, so that neighbours have similar predicates
    on the same column: an event that fails one often fails all boxes of a bitmap word.
    """
    sizes = np.diff(offsets)
    width = min(int(sizes.max(initial=0)), _SORTED_PREDICATES)
    keys = np.full((width, len(sizes)), -1, np.int32)
    for place in range(width):
        has = sizes > place
        keys[place, has] = numbers[offsets[:-1][has] + place]
    if not width:
        return np.arange(len(sizes), dtype=np.int32)
    return np.lexsort(keys[::-1]).astype(np.int32)


@njit
def _preorder(
    numbers: Ints32, offsets: Ints64, order: Ints32
) -> tuple[Ints32, npt.NDArray[np.uint16]]:
    """Nodes (predicate, 0, skip, first box) and depths of boxes in sorted order.

    A predicate occurrence makes at most one node, so `len(numbers)` nodes and a sentinel suffice.
    `path[d]` is the node at depth `d` of the current box.
    """
    nodes = np.zeros((len(numbers) + 1, 4), np.int32)
    depths = np.zeros(len(numbers) + 1, np.uint16)
    longest = 0
    for i in range(len(order)):
        longest = max(longest, offsets[i + 1] - offsets[i])
    path = np.zeros(longest + 1, np.int32)
    depth = used = 0
    for i in range(len(order)):
        start = offsets[order[i]]
        size = offsets[order[i] + 1] - start
        shared = 0
        while shared < min(size, depth) and nodes[path[shared], 0] == numbers[start + shared]:
            shared += 1
        if shared == size and size < depth:
            shared = max(0, size - 1)  # only beyond the sort depth: gets a node of its own
        for closed in range(shared, depth):
            nodes[path[closed], 2] = used
        for place in range(shared, size):
            nodes[used, 0] = numbers[start + place]
            nodes[used, 3] = i
            depths[used] = place + 1
            path[place] = used
            used += 1
        depth = size
    for closed in range(depth):
        nodes[path[closed], 2] = used
    nodes[used, 3] = len(order)
    return nodes[: used + 1].copy(), depths[: used + 1].copy()
