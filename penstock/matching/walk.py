"""One event at a time through the trie: only the clusters whose root it satisfies are entered.

For every cell of an access column the clusters that accept it are listed, so an event finds its
clusters by one look per column, however many there are. (The root is the access predicate of
Fabret et al. 2001.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.matching.compiled import njit
from penstock.matching.runs import each_event
from penstock.matching.trie import HIGH_ROW, LOW_ROW, Trie

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8]

_ENTRIES_PER_BOX = 4
_FREE_ENTRIES = 1 << 16


@dataclass(frozen=True, slots=True)
class Doors:
    """Row `r` (see `Trie`) opens the clusters `clusters[offsets[r] : offsets[r + 1]]`.

    `everyone` are the clusters that every event has to try.
    """

    offsets: Ints32
    clusters: Ints32
    everyone: Ints32
    node_columns: npt.NDArray[np.uint16]

    @property
    def nbytes(self) -> int:
        arrays = (self.offsets, self.clusters, self.everyone, self.node_columns)
        return sum(array.nbytes for array in arrays)


def build_doors(trie: Trie) -> Doors | None:
    """The doors of a trie; None if broad roots would need too many entries."""
    bases = trie.row_bases.astype(np.int64)
    node_columns = (np.searchsorted(bases, trie.nodes[:, LOW_ROW], "right") - 1).astype(np.uint16)
    columns = np.repeat(np.arange(len(bases) - 1), np.diff(trie.root_offsets))
    own = node_columns[trie.root_nodes] == columns
    roots = trie.root_nodes[own]
    lows, highs = (trie.nodes[roots, end].astype(np.int64) for end in (LOW_ROW, HIGH_ROW))
    if (highs - lows).sum() > _FREE_ENTRIES + _ENTRIES_PER_BOX * len(trie.box_owners):
        return None
    rows = np.concatenate([np.arange(a, b) for a, b in zip(lows, highs, strict=True)] or [lows])
    clusters = np.repeat(roots, highs - lows)
    counts = np.bincount(rows, minlength=int(bases[-1]))
    return Doors(
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int32),
        clusters[np.argsort(rows, kind="stable")],
        trie.root_nodes[~own],
        node_columns,
    )


def walk_matches(
    trie: Trie, doors: Doors, box_ids: Ints64, cells: Ints32, dead: Flags
) -> tuple[Ints64, Ints64]:
    """Offsets and subscriptions: who matches each event.

    A subscription comes once for each of its boxes, which `box_ids` names.
    """
    return each_event(
        len(cells),
        lambda first, offsets, ids: _walk_each(
            first,
            cells,
            trie.row_bases,
            trie.nodes,
            trie.box_owners,
            box_ids,
            doors.offsets,
            doors.clusters,
            doors.everyone,
            doors.node_columns,
            dead,
            offsets,
            ids,
        ),
    )


@njit
def _walk_each(
    first_event: int,
    cells: Ints32,
    row_bases: Ints32,
    nodes: Ints32,
    box_owners: Ints32,
    box_ids: Ints64,
    door_offsets: Ints32,
    clusters: Ints32,
    everyone: Ints32,
    node_columns: npt.NDArray[np.uint16],
    dead: Flags,
    offsets: Ints64,
    ids: Ints64,
) -> int:
    column_count = cells.shape[1]
    rows = np.empty(column_count, np.int32)
    found = offsets[first_event]
    any_dead = len(dead) > 0
    for event in range(first_event, len(cells)):
        for column in range(column_count):
            rows[column] = row_bases[column] + cells[event, column]
        if found + nodes[0, 3] > len(ids):
            return event
        for place in range(nodes[0, 3]):
            ids[found] = box_ids[place]
            found += int(not any_dead or dead[box_owners[place]] == 0)
        for column in range(column_count + 1):
            if column < column_count:
                listed = clusters
                start, stop = door_offsets[rows[column]], door_offsets[rows[column] + 1]
            else:
                listed = everyone
                start, stop = 0, len(everyone)
            for door in range(start, stop):
                node = np.int64(listed[door])
                end = np.int64(nodes[node, 2])
                while node < end:
                    row = rows[node_columns[node]]
                    if row < nodes[node, 0] or row >= nodes[node, 1]:
                        node = np.int64(nodes[node, 2])
                        continue
                    box, box_end = nodes[node, 3], nodes[node + 1, 3]
                    node += 1
                    if found + (box_end - box) > len(ids):
                        return event
                    for place in range(box, box_end):
                        ids[found] = box_ids[place]
                        found += int(not any_dead or dead[box_owners[place]] == 0)
        offsets[event + 1] = found
    return len(cells)
