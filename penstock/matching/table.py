"""The conditions of many subscriptions as flat arrays: the content of one segment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.catalog import Relation
from penstock.matching.boundaries import (
    FIRST_CELL,
    Boundaries,
    NumberBoundaries,
    boundaries_of,
    cells_interval,
    interval_coder,
    merge_boundaries,
    moved_cells,
)
from penstock.matching.events import EventBatch
from penstock.matching.overlap import may_overlap
from penstock.matching.range_boxes import RangeBoxes
from penstock.predicates.boxes import Box, is_empty
from penstock.predicates.intervals import Cut

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BoxTable:
    """Subscriptions, their boxes and the boxes' predicates, in cells of this table's boundaries.

    Box `b` belongs to the subscription `ids[owners[b]]` and holds the predicates
    `offsets[b] : offsets[b + 1]`; predicate `p` says that the cell of column `columns[p]` is in
    `[lows[p], highs[p])`. Empty boxes are left out. `overlapping[s]` says that two
    boxes of a subscription may contain the same row.
    """

    relation: Relation
    boundaries: tuple[Boundaries, ...]
    ids: Ints64
    overlapping: npt.NDArray[np.uint8]
    owners: Ints32
    offsets: Ints64
    columns: Ints32
    lows: Ints32
    highs: Ints32

    @classmethod
    def of_unions(cls, relation: Relation, unions: Iterable[tuple[int, Sequence[Box]]]) -> BoxTable:
        """From boxes, in any order of ids (each once)."""
        held = sorted((i, _needed(boxes)) for i, boxes in unions)
        flat = [one for _, boxes in held for one in boxes]
        cuts: list[list[Cut]] = [[] for _ in relation.columns]
        for one in flat:
            for column, interval in one:
                cuts[column] += (interval.low, interval.high)
        boundaries = tuple(
            boundaries_of(column.type, set(of_column))
            for column, of_column in zip(relation.columns, cuts, strict=True)
        )
        coders = [interval_coder(of_column) for of_column in boundaries]
        predicates = [
            (column, *coders[column](interval)) for one in flat for column, interval in one
        ]
        coded = np.array(predicates, np.int32).reshape(-1, 3)
        return cls(
            relation,
            boundaries,
            np.array([i for i, _ in held], np.int64),
            np.array([may_overlap(boxes) for _, boxes in held], np.uint8),
            np.repeat(np.arange(len(held), dtype=np.int32), [len(boxes) for _, boxes in held]),
            _offsets([len(one) for one in flat]),
            *(np.ascontiguousarray(coded[:, i]) for i in range(3)),
        )

    @classmethod
    def of_ranges(cls, relation: Relation, boxes: RangeBoxes) -> BoxTable:
        """From flat arrays over number columns; several boxes of one subscription may overlap."""
        if (np.diff(boxes.offsets) == 0).any():
            return cls.of_unions(relation, boxes.unions())
        ids, owners, counts = np.unique(
            boxes.subscriptions, return_inverse=True, return_counts=True
        )
        order = np.argsort(owners, kind="stable")
        sizes = np.diff(boxes.offsets)
        places = stretches(boxes.offsets[:-1][order], sizes[order])
        columns = boxes.columns[places]
        lows, highs = np.empty((2, len(places)), np.int32)
        boundaries: list[Boundaries] = []
        for number, column in enumerate(relation.columns):
            chosen = columns == number
            low = boxes.lows[places[chosen]]
            high = boxes.highs[places[chosen]] + 1
            both = np.unique(np.concatenate([low, high]))
            of_column = boundaries_of(column.type, ())
            if len(both):
                of_column = NumberBoundaries.of(both, np.zeros(len(both), np.uint8))
                lows[chosen] = np.searchsorted(both, low, "right") + FIRST_CELL
                highs[chosen] = np.searchsorted(both, high, "right") + FIRST_CELL
            boundaries.append(of_column)
        return cls(
            relation,
            tuple(boundaries),
            ids,
            (counts > 1).astype(np.uint8),
            owners[order].astype(np.int32),
            _offsets(sizes[order]),
            columns,
            lows,
            highs,
        )

    @classmethod
    def merge(
        cls, tables: Sequence[BoxTable], dropped: Sequence[npt.NDArray[np.bool_]]
    ) -> BoxTable:
        """All subscriptions of several tables, except those marked as dropped."""
        relation = tables[0].relation
        kept = [table.without(drop) for table, drop in zip(tables, dropped, strict=True)]
        boundaries = tuple(
            merge_boundaries([table.boundaries[c] for table in kept], column.type)
            for c, column in enumerate(relation.columns)
        )
        moved = [table._moved(boundaries) for table in kept]
        owners_before = np.cumsum([0, *(len(table.ids) for table in kept)])
        joined = cls(
            relation,
            boundaries,
            np.concatenate([table.ids for table in kept]),
            np.concatenate([table.overlapping for table in kept]),
            np.concatenate(
                [t.owners + np.int32(n) for t, n in zip(kept, owners_before, strict=False)]
            ),
            _offsets(np.concatenate([np.diff(table.offsets) for table in kept])),
            np.concatenate([table.columns for table in kept]),
            np.concatenate([lows for lows, _ in moved]),
            np.concatenate([highs for _, highs in moved]),
        )
        return joined._sorted()

    def without(self, dropped: npt.NDArray[np.bool_]) -> BoxTable:
        """The same table without some of its subscriptions; the boundaries stay."""
        if not dropped.any():
            return self
        number = np.cumsum(~dropped) - 1
        keep_box = ~dropped[self.owners]
        sizes = np.diff(self.offsets)
        places = stretches(self.offsets[:-1][keep_box], sizes[keep_box])
        return BoxTable(
            self.relation,
            self.boundaries,
            self.ids[~dropped],
            self.overlapping[~dropped],
            number[self.owners[keep_box]].astype(np.int32),
            _offsets(sizes[keep_box]),
            self.columns[places],
            self.lows[places],
            self.highs[places],
        )

    def _moved(self, boundaries: Sequence[Boundaries]) -> tuple[Ints32, Ints32]:
        lows, highs = self.lows.copy(), self.highs.copy()
        for column, (old, new) in enumerate(zip(self.boundaries, boundaries, strict=True)):
            chosen = self.columns == column
            if chosen.any():
                moved = moved_cells(old, new)
                lows[chosen], highs[chosen] = moved[lows[chosen]], moved[highs[chosen]]
        return lows, highs

    def _sorted(self) -> BoxTable:
        """The same table with ascending ids."""
        order = np.argsort(self.ids, kind="stable")
        number = np.empty(len(order), np.int32)
        number[order] = np.arange(len(order), dtype=np.int32)
        return BoxTable(
            self.relation,
            self.boundaries,
            self.ids[order],
            self.overlapping[order],
            number[self.owners],
            self.offsets,
            self.columns,
            self.lows,
            self.highs,
        )

    def place_of(self, subscription: int) -> int | None:
        """The position of a subscription among the ids."""
        place = int(self.ids.searchsorted(subscription))
        held = place < len(self.ids) and self.ids[place] == subscription
        return place if held else None

    def boxes_of(self, place: int) -> list[Box]:
        """The boxes of one subscription, in their original order."""
        found: list[Box] = []
        for b in np.flatnonzero(self.owners == place):
            predicates = range(int(self.offsets[b]), int(self.offsets[b + 1]))
            found.append(
                tuple(
                    sorted(
                        (
                            column := int(self.columns[p]),
                            cells_interval(
                                self.boundaries[column], int(self.lows[p]), int(self.highs[p])
                            ),
                        )
                        for p in predicates
                    )
                )
            )
        return found

    def cells(self, batch: EventBatch) -> Ints32:
        """The cells of all events, one row per event."""
        cells = np.empty((len(batch), len(self.boundaries)), np.int32)
        for c, (boundaries, column) in enumerate(zip(self.boundaries, batch.columns, strict=True)):
            cells[:, c] = boundaries.cells(column)
        return cells

    @property
    def predicate_keys(self) -> Ints64:
        """One number per predicate, equal for equal predicates.

        The packing has room for 4M cells in a column, which takes two million constants.
        """
        keys = self.columns.astype(np.int64) << 44
        return keys | (self.lows.astype(np.int64) << 22) | self.highs

    @property
    def distinct_predicates(self) -> int:
        return len(np.unique(self.predicate_keys))

    @property
    def nbytes(self) -> int:
        arrays = (self.ids, self.overlapping, self.owners, self.offsets)
        predicates = (self.columns, self.lows, self.highs)
        return sum(array.nbytes for array in (*arrays, *predicates))


def _needed(boxes: Sequence[Box]) -> list[Box]:
    """Without empty boxes; only the unconstrained box if there is one."""
    return [()] if () in boxes else [one for one in boxes if not is_empty(one)]


def _offsets(sizes: Sequence[int] | npt.NDArray[np.integer]) -> Ints64:
    return np.concatenate([[0], np.cumsum(np.asarray(sizes, np.int64))]).astype(np.int64)


def stretches(starts: Ints64, sizes: Ints64) -> Ints64:
    """The concatenated ranges `starts[i] : starts[i] + sizes[i]`."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    places: Ints64 = np.arange(total, dtype=np.int64) + np.repeat(starts - (ends - sizes), sizes)
    return places
