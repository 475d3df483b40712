"""One event at a time over shared predicates: a bitmap of boxes for every cell of every column.

The boxes that contain an event are those set in the bitmaps of all its cells. A summary has one bit
per non-zero word, so most words are never read; the summary has a summary of its own, the top,
which is used when there are very many boxes. Boxes are in trie order: boxes with the same root are
neighbours, so one failing predicate clears whole words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.kernels.compiled import njit, prefetch, trailing_zeros
from penstock.matching.runs import EachEvent
from penstock.matching.table import BoxTable
from penstock.matching.trie import Trie

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.uint8]

TALL_WORDS = 2
"""Width of the top, in words, from which starting there pays: more than 262,144 boxes."""
ROWS_PER_ROUND = 4
"""Rows that are ANDed between two tests for an empty result."""


@dataclass(frozen=True, slots=True)
class Bitmaps:
    """Bitmaps over boxes by row (see `Trie`), their summaries, and the summaries of those.

    Bit `b` of row `r` of `bits` is set if box `b` of the trie accepts the cell that row `r` stands
    for. Rows are padded to a multiple of 64 words; padding bits are 0. `used` lists the columns
    with predicates, those of most boxes first.
    """

    used: Ints64
    row_bases: Ints32
    bits: Words
    summary: Words
    top: Words
    box_owners: Ints32

    @property
    def nbytes(self) -> int:
        return self.bits.nbytes + self.summary.nbytes + self.top.nbytes


def bitmap_bytes(trie: Trie) -> int:
    """The memory that the bitmaps of a trie would take."""
    return int(trie.row_bases[-1]) * len(trie.box_owners) // 8


def build_bitmaps(table: BoxTable, trie: Trie) -> Bitmaps:
    counts = np.bincount(table.columns, minlength=len(table.boundaries))
    used = np.argsort(-counts, kind="stable")[: max(1, np.count_nonzero(counts))]
    word_count = -(-max(1, len(table.owners)) // 64)
    rows = int(trie.row_bases[-1])
    bits = np.empty((rows, -(-word_count // 64) * 64), np.uint64)
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
    summary = _summarised(bits)
    top = _summarised(summary)
    return Bitmaps(used.astype(np.int64), trie.row_bases, bits, summary, top, trie.box_owners)


def bitmap_matches(
    bitmaps: Bitmaps, cells: Ints32, dead: Flags, each_event: EachEvent
) -> tuple[Ints64, Ints32]:
    """Offsets and owners: the matches of each event. An owner occurs once per matching box."""
    match_each = _match_each if bitmaps.top.shape[1] < TALL_WORDS else _match_each_from_top
    return each_event(
        len(cells),
        lambda first, offsets, owners: match_each(
            first,
            cells,
            bitmaps.used,
            bitmaps.row_bases,
            bitmaps.bits,
            bitmaps.summary,
            bitmaps.top,
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
    """Set, in every row, the boxes that do not constrain its column and those that accept its cell.

    `place[b]` is the trie position of table box `b`; predicate `p` belongs to box `boxes[p]`. The
    last row of each column stands for no cell and stays uninitialised: no event reads it.
    """
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
def _summarised(bits: Words) -> Words:
    """One bit for each word that is not 0."""
    summary = np.zeros((bits.shape[0], (bits.shape[1] + 63) // 64), np.uint64)
    for row in range(bits.shape[0]):
        for word in range(bits.shape[1]):
            if bits[row, word] != 0:
                summary[row, word >> 6] |= np.uint64(1) << np.uint64(word & 63)
    return summary


@njit
def _list_boxes(
    boxes: np.uint64,
    first_box: np.uint64,
    box_owners: Ints32,
    dead: Flags,
    owners: Ints32,
    found: int,
) -> int:
    """Append the owners of the boxes that are set and alive; returns the new count.

    Every owner is written and only the living advance `found`, which saves a branch. One word has
    64 boxes, so `owners` needs 64 free entries.
    """
    any_dead = len(dead) > 0
    while boxes != 0:
        owner = box_owners[first_box + np.uint64(trailing_zeros(boxes))]
        boxes &= boxes - np.uint64(1)
        owners[found] = owner
        found += int(not any_dead or dead[owner] == 0)
    return found


def each_kernel(from_top: bool) -> Callable[..., int]:
    """A kernel that matches one event after the other.

    With `from_top`, only those words of the summary are read that the top does not rule out;
    otherwise all of them, in vector instructions.

    The kernel continues at event `first` and writes `owners[offsets[e] : offsets[e + 1]]` for each
    event `e`. A word of the summary stands for 64 words of 64 boxes, so it returns the current
    event as soon as fewer than 64 * 64 entries of `owners` are free; `EachEvent` enlarges the
    buffer and calls it again for that event. It returns the number of events when done.
    """

    @njit
    def match_each(
        first: int,
        cells: Ints32,
        used: Ints64,
        row_bases: Ints32,
        bits: Words,
        summary: Words,
        top: Words,
        box_owners: Ints32,
        dead: Flags,
        offsets: Ints64,
        owners: Ints32,
    ) -> int:
        found = offsets[first]
        width = bits.shape[1]
        flat = bits.reshape(bits.size)
        rows = np.zeros(len(used), np.int64)
        # Unsigned, because numba checks signed indices for negative values. Padded by one round,
        # so that the AND below runs in whole rounds; the padding repeats the first row.
        starts = np.zeros(len(used) + ROWS_PER_ROUND, np.uint64)
        maybe = np.zeros(summary.shape[1], np.uint64)
        places = np.arange(len(maybe))
        possible = len(maybe)
        for event in range(first, len(cells)):
            for i in range(len(used)):
                rows[i] = row_bases[used[i]] + cells[event, used[i]]
                starts[i] = np.uint64(rows[i] * width)
            starts[len(used) :] = starts[0]
            if from_top:
                possible = _list_set(top, rows, places)
                for p in range(possible):
                    maybe[places[p]] = _all_of(summary, rows, places[p])
            else:
                maybe[:] = ~np.uint64(0)
                for i in range(len(rows)):
                    for k in range(len(maybe)):
                        maybe[k] &= summary[rows[i], k]
            for p in range(possible):
                k = places[p]
                words = maybe[k]
                if words != 0 and found + 64 * 64 > len(owners):
                    return event
                if from_top:
                    _ask_for(flat, starts[: len(used)], box_owners, k, words)
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

    return match_each


@njit
def _ask_for(flat: Words, starts: Words, box_owners: Ints32, place: int, words: np.uint64) -> None:
    """Prefetch all words and owners that a word of the summary leads to, so that the cache misses
    overlap: with very many boxes, little of it is cached."""
    while words != 0:
        word = (place << 6) + trailing_zeros(words)
        words &= words - np.uint64(1)
        for i in range(len(starts)):
            prefetch(flat, np.int64(starts[i]) + word)
        for line in range(4):
            prefetch(box_owners, (word << 6) + 16 * line)


@njit
def _all_of(words: Words, rows: Ints64, place: int) -> np.uint64:
    """The AND of one word over all rows."""
    left = ~np.uint64(0)
    for i in range(len(rows)):
        left &= words[rows[i], place]
    return left


@njit
def _list_set(words: Words, rows: Ints64, places: Ints64) -> int:
    """Write the bits that are set in all rows to `places`, one entry per bit; returns how many."""
    found = 0
    for place in range(words.shape[1]):
        left = _all_of(words, rows, place)
        while left != 0:
            places[found] = (place << 6) + trailing_zeros(left)
            found += 1
            left &= left - np.uint64(1)
    return found


_match_each = each_kernel(from_top=False)
_match_each_from_top = each_kernel(from_top=True)
