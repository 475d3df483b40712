"""Cells: the value ranges between consecutive predicate ends of one column.

Predicates cannot tell two values of one cell apart, so kernels see cell numbers only. Cell 0 is
NULL, cell 1 everything that is not NULL and below the first boundary. An interval is a half-open
range of cells. Cell numbers are local to one segment and never leave it.

Keys of number columns are 64-bit integers, so "just above k" and "just below k + 1" are the same
boundary, stored as one integer. Text (and decimals beyond 64 bits) keeps cuts as they are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from penstock.catalog import Key, ValueType
from penstock.kernels.compiled import njit
from penstock.matching.events import DictionaryColumn, KeyColumn, NumberColumn
from penstock.matching.key_arrays import fits_int64
from penstock.predicates.intervals import ABOVE_NULL, BOTTOM, TOP, Cut, Interval, above, below

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]

NULL_CELL = 0
FIRST_CELL = 1
_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1
_TABLE_ENTRIES = 1 << 18
"""Boundaries that span at most this many keys get a lookup table from key to cell (max. 1 MB)."""


_LISTED_PLACES = 10_000
"""Up to this many places of a column are also kept as Python integers: 360 KB."""


@dataclass(frozen=True, slots=True)
class NumberBoundaries:
    """Boundaries of a column whose keys fit 64 bits.

    `places` ascend; a place `b` separates the keys below `b` from the rest. `closed` records that
    it was written as the end of "at most b - 1", which matters for display only.
    """

    places: Ints64
    closed: npt.NDArray[np.uint8]
    table: Ints32 | None
    """Maps key - places[0] + 1 to a cell; None without places, or if they span too many keys."""

    @classmethod
    def of(cls, places: Ints64, closed: npt.NDArray[np.uint8]) -> NumberBoundaries:
        table = None
        if len(places) and int(places[-1]) - int(places[0]) < _TABLE_ENTRIES:
            keys = np.arange(int(places[-1]) - int(places[0]) + 2) + (int(places[0]) - 1)
            table = (np.searchsorted(places, keys, "right") + FIRST_CELL).astype(np.int32)
        return cls(places, closed, table)

    @property
    def cell_count(self) -> int:
        return len(self.places) + 2

    def cell(self, key: Key | None) -> int:
        if key is None:
            return NULL_CELL
        assert isinstance(key, int)
        if self.table is not None:
            place = key - int(self.places[0]) + 1
            return int(self.table[min(max(place, 0), len(self.table) - 1)])
        return int(self.places.searchsorted(key, "right")) + FIRST_CELL

    def cells(self, column: KeyColumn) -> Ints32:
        assert isinstance(column, NumberColumn)
        if self.table is not None:
            cells = _cells_by_table(column.keys, self.places[0] - 1, self.table)
        else:
            found = np.searchsorted(self.places, column.keys, "right")
            cells = (found + FIRST_CELL).astype(np.int32)
        if column.nulls is not None:
            cells[column.nulls] = NULL_CELL
        return cells

    def cell_of_cut(self, cut: Cut) -> int:
        """The first cell above a cut that is among the boundaries."""
        place = _place(cut)
        if not isinstance(place, int):
            return self.cell_count if place == TOP else _rank_of_end(place)
        return int(np.searchsorted(self.places, place, "right")) + FIRST_CELL

    def cut_before(self, cell: int) -> Cut:
        """The cut at which a cell begins."""
        if cell <= FIRST_CELL:
            return ABOVE_NULL if cell == FIRST_CELL else BOTTOM
        if cell == self.cell_count:
            return TOP
        place = int(self.places[cell - 2])
        return above(place - 1) if self.closed[cell - 2] else below(place)


@dataclass(frozen=True, slots=True)
class CutBoundaries:
    """Boundaries of a column of text, or of very long decimals."""

    cuts: tuple[Cut, ...]

    @property
    def cell_count(self) -> int:
        return len(self.cuts) + 2

    def cell(self, key: Key | None) -> int:
        return NULL_CELL if key is None else bisect_right(self.cuts, below(key)) + FIRST_CELL

    def cells(self, column: KeyColumn) -> Ints32:
        assert isinstance(column, DictionaryColumn)
        # NULL has index -1, which reads the last entry.
        by_entry = [self.cell(key) for key in column.dictionary]
        cells: Ints32 = np.array([*by_entry, NULL_CELL], np.int32)[column.indices]
        return cells

    def cell_of_cut(self, cut: Cut) -> int:
        if len(cut) == 1:
            return self.cell_count if cut == TOP else _rank_of_end(cut)
        return bisect_right(self.cuts, cut) + FIRST_CELL

    def cut_before(self, cell: int) -> Cut:
        if cell <= FIRST_CELL:
            return ABOVE_NULL if cell == FIRST_CELL else BOTTOM
        return TOP if cell == self.cell_count else self.cuts[cell - 2]


Boundaries: TypeAlias = NumberBoundaries | CutBoundaries


def boundaries_of(value_type: ValueType, cuts: Iterable[Cut]) -> Boundaries:
    """The boundaries at all these cuts; cuts at the ends of the domain need none."""
    if not fits_int64(value_type):
        return CutBoundaries(tuple(sorted({cut for cut in cuts if len(cut) == 3})))
    closed: dict[int, int] = {}
    for cut in cuts:
        place = _place(cut)
        if isinstance(place, int):
            assert len(cut) == 3
            shown_as_closed = cut[2] and not value_type.discrete
            closed[place] = closed.get(place, 0) | int(shown_as_closed)
    places = np.array(sorted(closed), np.int64)
    flags = np.array([closed[place] for place in sorted(closed)], np.uint8)
    return NumberBoundaries.of(places, flags)


def merge_boundaries(parts: Sequence[Boundaries], value_type: ValueType) -> Boundaries:
    """The union of the boundaries of all parts."""
    numbers = [part for part in parts if isinstance(part, NumberBoundaries)]
    if len(numbers) < len(parts) or not parts:
        return boundaries_of(
            value_type, (c for p in parts if isinstance(p, CutBoundaries) for c in p.cuts)
        )
    places, first = np.unique(np.concatenate([p.places for p in numbers]), return_index=True)
    closed = np.concatenate([p.closed for p in numbers])[first]
    return NumberBoundaries.of(places, closed)


def moved_cells(old: Boundaries, new: Boundaries) -> Ints32:
    """Where each cell of `old` begins in `new`, which has all of its boundaries."""
    if isinstance(old, NumberBoundaries) and isinstance(new, NumberBoundaries):
        inner = np.searchsorted(new.places, old.places, "right") + FIRST_CELL
    else:
        cuts = [old.cut_before(cell) for cell in range(2, old.cell_count)]
        inner = np.array([new.cell_of_cut(cut) for cut in cuts], np.int64)
    ends = (NULL_CELL, FIRST_CELL), (new.cell_count,)
    return np.concatenate([ends[0], inner, ends[1]]).astype(np.int32)


def interval_coder(boundaries: Boundaries) -> Callable[[Interval], tuple[int, int]]:
    """A function from intervals whose ends are among the boundaries to half-open cell ranges."""
    if isinstance(boundaries, CutBoundaries):
        return lambda i: (boundaries.cell_of_cut(i.low), boundaries.cell_of_cut(i.high))
    # A bisect in a list beats numpy's searchsorted for single lookups; known cuts are cached.
    places = boundaries.places.tolist()
    top = boundaries.cell_count
    known: dict[Cut, int] = {}

    def cell(cut: Cut) -> int:
        found = known.get(cut)
        if found is None:
            place = _place(cut)
            if isinstance(place, int):
                found = bisect_right(places, place) + FIRST_CELL
            else:
                found = top if place == TOP else _rank_of_end(place)
            known[cut] = found
        return found

    return lambda interval: (cell(interval.low), cell(interval.high))


def key_coder(boundaries: Boundaries) -> Callable[[Key | None], int]:
    """`cell` of these boundaries for single keys; lists are faster than numpy for that."""
    if isinstance(boundaries, CutBoundaries) or len(boundaries.places) > _LISTED_PLACES:
        return boundaries.cell
    places = boundaries.places.tolist()

    def cell(key: Key | None) -> int:
        return NULL_CELL if key is None else bisect_right(places, key) + FIRST_CELL

    return cell


def cells_interval(boundaries: Boundaries, low: int, high: int) -> Interval:
    return Interval(boundaries.cut_before(low), boundaries.cut_before(high))


def _place(cut: Cut) -> int | Cut:
    """A cut between 64-bit keys as an integer, or the end of the domain if it lies beyond them."""
    if len(cut) == 1:
        return cut
    key = cut[1]
    assert isinstance(key, int)
    place = key + cut[2]
    if place <= _LOWEST:
        return ABOVE_NULL
    return TOP if place > _HIGHEST else place


def _rank_of_end(cut: Cut) -> int:
    return NULL_CELL if cut == BOTTOM else FIRST_CELL


@njit
def _cells_by_table(keys: Ints64, base: int, table: Ints32) -> Ints32:
    cells = np.empty(len(keys), np.int32)
    last = len(table) - 1
    for i in range(len(keys)):
        key = keys[i]
        if key <= base:
            cells[i] = table[0]
        elif key >= base + last:
            cells[i] = table[last]
        else:
            cells[i] = table[key - base]
    return cells
