"""An index for boxes that share few predicates: two-dimensional geometry instead of a trie.

The two columns that most boxes constrain span a plane; a box is a rectangle in it, and predicates
on other columns are tested last. For single events, rectangles are packed into blocks of 64 by
sort-tile-recursive order (Leutenegger et al. 1997), and blocks into groups: an event outside the
hull of a block skips it, an event inside the intersection of its rectangles matches all of them.
For many events the events are indexed instead, in slabs along the first column, each sorted along
the second, and the rectangles are streamed: a slab that lies inside a rectangle contributes one
contiguous range of events.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.matching.table import BoxTable

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]

BLOCK_BOXES = 64
GROUP_BLOCKS = 64


@dataclass(frozen=True, slots=True)
class BoxIndex:
    """Rectangles `ranges[:, b]` = (low x, high x, low y, high y), both ends included, in cells.

    The last block is padded with empty rectangles, so every block has exactly BLOCK_BOXES of them.
    `blocks` and `groups` hold hulls, `cores` the intersection of each block (low above high if it
    is empty).
    """

    axes: tuple[int, int]
    cell_counts: tuple[int, int]
    ranges: Ints32
    blocks: Ints32
    cores: Ints32
    groups: Ints32
    box_owners: Ints32
    rest_offsets: Ints64
    """Box `b` has the further predicates `rest_offsets[b] : rest_offsets[b + 1]`."""
    rest_columns: Ints32
    rest_lows: Ints32
    rest_highs: Ints32

    @property
    def nbytes(self) -> int:
        arrays = (self.ranges, self.blocks, self.cores, self.groups, self.box_owners)
        return sum(array.nbytes for array in (*arrays, self.rest_offsets, self.rest_columns))


def build_box_index(table: BoxTable) -> BoxIndex:
    counts = np.bincount(table.columns, minlength=len(table.boundaries))
    by_use = np.argsort(-counts, kind="stable")
    x, y = int(by_use[0]), int(by_use[min(1, len(by_use) - 1)])
    box_count = len(table.owners)
    boxes = np.repeat(np.arange(box_count), np.diff(table.offsets))
    ranges = np.empty((4, box_count), np.int32)
    for axis, column in enumerate((x, y)):
        ranges[2 * axis] = 0
        ranges[2 * axis + 1] = table.boundaries[column].cell_count - 1
        chosen = table.columns == column
        ranges[2 * axis, boxes[chosen]] = table.lows[chosen]
        ranges[2 * axis + 1, boxes[chosen]] = table.highs[chosen] - 1
    order = _tiled(ranges)
    padding = -box_count % BLOCK_BOXES
    nothing = np.tile(np.array([[1], [0], [1], [0]], np.int32), padding)
    packed = np.ascontiguousarray(np.concatenate([ranges[:, order], nothing], axis=1))
    blocks = _hulls(packed, BLOCK_BOXES)
    rest = ~np.isin(table.columns, (x, y))
    position = np.empty(box_count, np.int64)
    position[order] = np.arange(box_count)
    rest_order = np.argsort(position[boxes[rest]], kind="stable")
    rest_counts = np.bincount(position[boxes[rest]], minlength=box_count + padding)
    return BoxIndex(
        (x, y),
        (table.boundaries[x].cell_count, table.boundaries[y].cell_count),
        packed,
        blocks,
        _cores(packed),
        _hulls(blocks, GROUP_BLOCKS),
        np.concatenate([table.owners[order], np.zeros(padding, np.int32)]),
        np.concatenate([[0], np.cumsum(rest_counts)]).astype(np.int64),
        table.columns[rest][rest_order],
        table.lows[rest][rest_order],
        table.highs[rest][rest_order],
    )


def _tiled(ranges: Ints32) -> Ints64:
    """Sort-tile-recursive order: slices along x of equal size, each sorted along y."""
    centres = ranges[0::2].astype(np.int64) + ranges[1::2]
    box_count = ranges.shape[1]
    slices = max(1, int(np.sqrt(box_count / BLOCK_BOXES)))
    by_x = np.argsort(centres[0], kind="stable")
    slice_of = np.empty(box_count, np.int64)
    slice_of[by_x] = np.arange(box_count) * slices // max(1, box_count)
    return np.lexsort((centres[1], slice_of))


def _hulls(ranges: Ints32, size: int) -> Ints32:
    """The hull of each `size` consecutive rectangles; empty ones, (1, 0), do not enlarge it."""
    starts = np.arange(0, ranges.shape[1], size)
    empty = ranges[0] > ranges[1]
    lows = np.where(empty, np.iinfo(np.int32).max, ranges[0::2])
    highs = np.where(empty, -1, ranges[1::2])
    hulls = np.empty((4, len(starts)), np.int32)
    hulls[0::2] = np.minimum.reduceat(lows, starts, axis=1) if len(starts) else 0
    hulls[1::2] = np.maximum.reduceat(highs, starts, axis=1) if len(starts) else 0
    return hulls


def _cores(ranges: Ints32) -> Ints32:
    """The intersection of the rectangles of each block; empty for a padded block."""
    starts = np.arange(0, ranges.shape[1], BLOCK_BOXES)
    cores = np.empty((4, len(starts)), np.int32)
    cores[0::2] = np.maximum.reduceat(ranges[0::2], starts, axis=1) if len(starts) else 0
    cores[1::2] = np.minimum.reduceat(ranges[1::2], starts, axis=1) if len(starts) else 0
    return cores
