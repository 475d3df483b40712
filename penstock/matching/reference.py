"""Reference implementations of the kernels, slow and readable, for the tests."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from penstock.matching.pairs import CONTIGUOUS, Runs
from penstock.matching.table import BoxTable

Ints32 = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.uint8]


def plain_matches(table: BoxTable, cells: Ints32, dead: Flags) -> list[tuple[int, int]]:
    """All (event, owner) pairs, ascending: the result of every strategy, one box at a time."""
    found = []
    for box, owner in enumerate(table.owners.tolist()):
        holds = np.full(len(cells), not dead[owner])
        for p in range(int(table.offsets[box]), int(table.offsets[box + 1])):
            column = cells[:, table.columns[p]]
            holds &= (column >= table.lows[p]) & (column < table.highs[p])
        found += [(event, owner) for event in np.flatnonzero(holds).tolist()]
    return sorted(found)


def plain_pairs(runs: Runs) -> list[tuple[int, int]]:
    """All (event, subscription) pairs of the runs, ascending."""
    found = []
    for (first, count, base, length), start in zip(runs.spans, runs.starts, strict=True):
        for k in range(length):
            place = k if start == CONTIGUOUS else int(runs.lanes[start + k])
            event = int(runs.events[base + place]) + runs.first_event
            found += [(event, int(i)) for i in runs.ids[first : first + count]]
    return sorted(found)


def words_of_lanes(lanes: Collection[int], words: int) -> Words:
    """Bit `lane % 64` of word `lane // 64` is set for each lane."""
    bits = np.zeros(words, np.uint64)
    for lane in lanes:
        bits[lane // 64] |= np.uint64(1) << np.uint64(lane % 64)
    return bits


def lanes_of_words(words: Words) -> list[int]:
    """The lanes whose bits are set, ascending."""
    return [i for i in range(64 * len(words)) if int(words[i // 64]) >> (i % 64) & 1]
