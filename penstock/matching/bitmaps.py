"""One event at a time over shared predicates: a bitmap of boxes for every cell of every column.

The boxes that contain an event are those set in all of its cells' bitmaps. A summary has one bit
per word that is not empty, so most words are never looked at. The boxes are in the order of the
trie: boxes with the same root are neighbours, and whole words fall to one predicate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.matching.compiled import njit, trailing_zeros
from penstock.matching.runs import EachEvent
from penstock.matching.table import BoxTable
from penstock.matching.trie import Trie

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.uint8]

ROWS_PER_ROUND = 4
"""Rows that are looked at before it is asked whether any box is left."""


@dataclass(frozen=True, slots=True)
class Bitmaps:
    """Bitmaps over boxes by row (see `Trie`), and their summaries.

    `used` are the columns with predicates, those of most boxes first.
    """

    used: Ints64
    row_bases: Ints32
    bits: Words
    summary: Words
    box_owners: Ints32

    @property
    def nbytes(self) -> int:
        return self.bits.nbytes + self.summary.nbytes


def bitmap_bytes(trie: Trie) -> int:
    """What the bitmaps of a trie would take."""
    return int(trie.row_bases[-1]) * len(trie.box_owners) // 8


def build_bitmaps(table: BoxTable, trie: Trie) -> Bitmaps:
    counts = np.bincount(table.columns, minlength=len(table.boundaries))
    used = np.argsort(-counts, kind="stable")[: max(1, np.count_nonzero(counts))]
    word_count = -(-max(1, len(table.owners)) // 64)
    rows = int(trie.row_bases[-1])
    bits = np.empty((rows, -(-word_count // 64) * 64), np.uint64)
    summary = np.zeros((rows, bits.shape[1] // 64), np.uint64)
    place = np.empty(len(trie.box_order), np.int32)
    place[trie.box_order] = np.arange(len(place), dtype=np.int32)
    _set_bits(
        bits,
        trie.row_bases,
        place,
        np.repeat(np.arange(len(table.owners)), np.diff(table.offsets)),
        table.columns,
        table.lows,
        table.highs,
    )
    _summarise(bits, summary)
    return Bitmaps(used.astype(np.int64), trie.row_bases, bits, summary, trie.box_owners)


def bitmap_matches(
    bitmaps: Bitmaps, cells: Ints32, dead: Flags, each_event: EachEvent
) -> tuple[Ints64, Ints32]:
    """Offsets and owners: who matches each event. An owner comes once for each of its boxes."""
    return each_event(
        len(cells),
        lambda first, offsets, owners: _match_each(
            first,
            cells,
            bitmaps.used,
            bitmaps.row_bases,
            bitmaps.bits,
            bitmaps.summary,
            bitmaps.box_owners,
            dead,
            offsets,
            owners,
        ),
    )


@njit
def _set_bits(
    bits: Words,
    row_bases: Ints32,
    place: Ints32,
    boxes: Ints64,
    columns: Ints32,
    lows: Ints32,
    highs: Ints32,
) -> None:
    """In every row: the boxes that ask nothing of its column, and those that accept its cell."""
    indifferent = np.empty(bits.shape[1], np.uint64)
    for column in range(len(row_bases) - 1):
        indifferent[:] = ~np.uint64(0)
        for p in range(len(columns)):
            if columns[p] == column:
                box = place[boxes[p]]
                indifferent[box >> 6] &= ~(np.uint64(1) << np.uint64(box & 63))
        for box in range(len(place), 64 * len(indifferent)):
            indifferent[box >> 6] &= ~(np.uint64(1) << np.uint64(box & 63))
        for row in range(row_bases[column], row_bases[column + 1] - 1):
            bits[row] = indifferent
    for p in range(len(columns)):
        box = place[boxes[p]]
        bit = np.uint64(1) << np.uint64(box & 63)
        base = row_bases[columns[p]]
        for row in range(base + lows[p], base + highs[p]):
            bits[row, box >> 6] |= bit


@njit
def _summarise(bits: Words, summary: Words) -> None:
    for row in range(bits.shape[0]):
        for word in range(bits.shape[1]):
            if bits[row, word] != 0:
                summary[row, word >> 6] |= np.uint64(1) << np.uint64(word & 63)


@njit
def _match_each(
    first: int,
    cells: Ints32,
    used: Ints64,
    row_bases: Ints32,
    bits: Words,
    summary: Words,
    box_owners: Ints32,
    dead: Flags,
    offsets: Ints64,
    owners: Ints32,
) -> int:
    found = offsets[first]
    width = bits.shape[1]
    flat = bits.reshape(bits.size)
    # Unsigned, since negative indices would be looked out for; one more round of rows to AND.
    starts = np.zeros(len(used) + ROWS_PER_ROUND, np.uint64)
    maybe = np.zeros(summary.shape[1], np.uint64)
    for event in range(first, len(cells)):
        maybe[:] = ~np.uint64(0)
        for i in range(len(used)):
            row = row_bases[used[i]] + cells[event, used[i]]
            starts[i] = np.uint64(row * width)
            for k in range(len(maybe)):
                maybe[k] &= summary[row, k]
        starts[len(used) :] = starts[0]
        for k in range(len(maybe)):
            words = maybe[k]
            if words != 0 and found + 64 * 64 > len(owners):
                return event
            while words != 0:
                word = np.uint64((k << 6) + trailing_zeros(words))
                words &= words - np.uint64(1)
                left = ~np.uint64(0)
                for i in range(0, len(used), ROWS_PER_ROUND):
                    for row in range(ROWS_PER_ROUND):
                        left &= flat[starts[i + row] + word]
                    if left == 0:
                        break
                found = _list_boxes(left, word << np.uint64(6), box_owners, dead, owners, found)
        offsets[event + 1] = found
    return len(cells)


@njit
def _list_boxes(
    boxes: np.uint64,
    first_box: np.uint64,
    box_owners: Ints32,
    dead: Flags,
    owners: Ints32,
    found: int,
) -> int:
    """Append the owners of the boxes that are set and alive; returns how many there are now."""
    any_dead = len(dead) > 0
    while boxes != 0:
        owner = box_owners[first_box + np.uint64(trailing_zeros(boxes))]
        boxes &= boxes - np.uint64(1)
        owners[found] = owner
        found += int(not any_dead or dead[owner] == 0)
    return found
