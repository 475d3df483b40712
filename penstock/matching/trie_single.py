"""One event at a time through the trie: it enters only the clusters whose root it satisfies.

A segment tree for each access column finds the clusters whose root accepts a cell, however many
there are and however broad their roots. (The root is the access predicate of Fabret et al. 2001.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.kernels.compiled import njit
from penstock.matching.runs import EachEvent
from penstock.matching.trie import HIGH_ROW, LOW_ROW, Trie

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class RootIndex:
    """For each column a segment tree over its cells, which lists the clusters rooted there.

    The tree of column `c` has `sizes[c]` leaves (none if nothing is rooted there) and is numbered
    as a heap from `bases[c]` on: node 1 is the top, the leaf of a cell is `sizes[c]` + cell. Tree
    node `t` lists `clusters[offsets[t] : offsets[t + 1]]`. The lists on the path from a leaf to the
    top are the clusters that accept its cell, each once. `everyone` are the clusters that every
    event has to try.
    """

    bases: Ints64
    sizes: Ints64
    offsets: Ints64
    clusters: Ints32
    everyone: Ints32
    node_columns: npt.NDArray[np.uint16]

    @property
    def nbytes(self) -> int:
        arrays = (self.offsets, self.clusters, self.everyone, self.node_columns)
        return sum(array.nbytes for array in arrays)


def build_doors(trie: Trie) -> RootIndex:
    rows = trie.row_bases.astype(np.int64)
    node_columns = np.searchsorted(rows, trie.nodes[:, LOW_ROW], "right") - 1
    listed_at = np.repeat(np.arange(len(rows) - 1), np.diff(trie.root_offsets))
    own = node_columns[trie.root_nodes] == listed_at
    roots, columns = trie.root_nodes[own], listed_at[own]
    leaves = [1 << int(count).bit_length() for count in np.diff(rows)]
    sizes = np.where(np.bincount(columns, minlength=len(leaves)) > 0, leaves, 0)
    bases = np.concatenate([[0], np.cumsum(2 * sizes)])
    low, high = (trie.nodes[roots, end] - rows[columns] for end in (LOW_ROW, HIGH_ROW))
    places, chosen = _covering(sizes[columns] + low, sizes[columns] + high)
    places += bases[columns[chosen]]
    counts = np.bincount(places, minlength=int(bases[-1]))
    return RootIndex(
        bases,
        sizes,
        np.concatenate([[0], np.cumsum(counts)]),
        roots[chosen][np.argsort(places, kind="stable")],
        trie.root_nodes[~own],
        node_columns.astype(np.uint16),
    )


def _covering(low: Ints64, high: Ints64) -> tuple[Ints64, Ints64]:
    """The tree nodes that cover leaves `low[i]` up to `high[i]`, and for each node its i.

    Bottom up: a low end that is a right child, and a high end whose predecessor is a left child,
    are emitted and stepped over; the parents cover the rest.
    """
    which = np.arange(len(low))
    places, chosen = [low[:0]], [which[:0]]
    while len(which):
        for end, step, node in ((low, 1, low), (high, -1, high - 1)):
            odd = (end & 1 == 1) & (low < high)
            places.append(node[odd].copy())
            chosen.append(which[odd])
            end[odd] += step
        low, high = low >> 1, high >> 1
        open_still = low < high
        low, high, which = low[open_still], high[open_still], which[open_still]
    return np.concatenate(places), np.concatenate(chosen)


def walk_matches(
    trie: Trie, doors: RootIndex, cells: Ints32, dead: Flags, each_event: EachEvent
) -> tuple[Ints64, Ints32]:
    """Offsets and owners: the matches of each event. An owner occurs once per matching box."""
    return each_event(
        len(cells),
        lambda first, offsets, owners: _walk_each(
            first,
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
            offsets,
            owners,
        ),
    )


@njit
def _walk_each(
    first_event: int,
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
    offsets: Ints64,
    owners: Ints32,
) -> int:
    """Match from `first_event` on; returns the first event without room, or the event count.

    `nodes[0, 3]` boxes have no predicates and match every event. `entered` collects the clusters of
    one event: a cluster is listed at several tree nodes, but only once on any path from a leaf to
    the top, so the total number of list entries bounds it.
    """
    column_count = cells.shape[1]
    rows = np.empty(column_count, np.int32)
    entered = np.empty(len(clusters) + len(everyone), np.int32)
    entered[: len(everyone)] = everyone
    found = offsets[first_event]
    any_dead = len(dead) > 0
    for event in range(first_event, len(cells)):
        if found + nodes[0, 3] > len(owners):
            return event
        for place in range(nodes[0, 3]):
            owners[found] = box_owners[place]
            found += int(not any_dead or dead[box_owners[place]] == 0)
        entered_count = len(everyone)
        for column in range(column_count):
            rows[column] = row_bases[column] + cells[event, column]
            place = tree_sizes[column] + cells[event, column]
            while tree_sizes[column] > 0 and place > 0:
                tree_node = tree_bases[column] + place
                for door in range(door_offsets[tree_node], door_offsets[tree_node + 1]):
                    entered[entered_count] = clusters[door]
                    entered_count += 1
                place >>= 1
        for i in range(entered_count):
            node = np.int64(entered[i])
            end = np.int64(nodes[node, 2])
            while node < end:
                row = rows[node_columns[node]]
                if row < nodes[node, 0] or row >= nodes[node, 1]:
                    node = np.int64(nodes[node, 2])
                    continue
                box, box_end = nodes[node, 3], nodes[node + 1, 3]
                node += 1
                if found + (box_end - box) > len(owners):
                    return event
                for place in range(box, box_end):
                    owner = box_owners[place]
                    owners[found] = owner
                    found += int(not any_dead or dead[owner] == 0)
        offsets[event + 1] = found
    return len(cells)
