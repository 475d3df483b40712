"""The second step of a backtest: the history of every row, one place after the other.

Changes before the start only make the rows that were there. From these rows come the first contents
and what groups begin with; from the changes behind the start come messages and steps of groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter

from penstock.errors import ChangeError
from penstock.flow.changes import Checked, Delta
from penstock.flow.memory import MemoryRows
from penstock.flow.stages import RowStage
from penstock.history.rows import HistoryKind, HistoryRow, place_of, refused
from penstock.history.spec import WorkerSpec
from penstock.joins import StepsByEdge
from penstock.joins.selections import NewSelections
from penstock.pipeline.shuffle_codec import (
    group_place,
    pack_change,
    pack_step,
    row_place,
    unpack_change,
)

ROWS_AT_ONCE = 4_096
"""The matchers are asked about so many rows at a time, and so many are in memory."""


def change_rows(
    changes: Iterable[tuple[int, Checked | ChangeError]], tables: frozenset[str], start: int
) -> Iterator[HistoryRow]:
    """The changes of the tables that are asked about; of all others nothing needs to be known."""
    bad = 0
    for offset, change in changes:
        if isinstance(change, ChangeError):
            bad += offset >= start
        elif change.relation.name in tables:
            place = place_of(row_place(change.relation.name, change.key))
            yield HistoryRow(place, offset, HistoryKind.CHANGE, 0, pack_change(offset, change))
    yield refused(bad)


def replay_rows(rows: Iterable[HistoryRow], prepared: WorkerSpec) -> Iterator[HistoryRow]:
    """All that follows from the changes of some places, which come sorted."""
    replay = _RowReplay(prepared)
    for _, history in groupby(rows, attrgetter("place")):
        yield from replay.live_through(history)
    yield from replay.rest()


class _RowReplay:
    def __init__(self, prepared: WorkerSpec) -> None:
        self._prepared = prepared
        self._question = prepared.question
        self._begun = MemoryRows()  # rows as they were at the start, for which nothing is done yet
        self._begun_count = 0
        self._run: list[Delta] = []
        self._bad = 0

    def live_through(self, history: Iterator[HistoryRow]) -> Iterator[HistoryRow]:
        """The changes of one place, from the first on."""
        store = MemoryRows()
        stage = RowStage(store, self._prepared.index)
        begun = False
        for row in history:
            if row.kind == HistoryKind.REFUSED:
                yield row
                continue
            if not begun and row.offset >= self._question.start:
                self._begin(store)
                begun = True
            self._carry_out(row, stage, begun)
            if len(self._run) >= ROWS_AT_ONCE:
                yield from self._told()
        if not begun:
            self._begin(store)
        if self._begun_count >= ROWS_AT_ONCE:
            yield from self._welcomed()

    def _carry_out(self, row: HistoryRow, stage: RowStage, begun: bool) -> None:
        checked = unpack_change(row.body, self._question.catalog)
        try:
            delta = stage.resolve(row.offset, checked)
        except ChangeError:
            self._bad += begun
            return
        if begun and delta is not None:
            self._run.append(delta)

    def _begin(self, store: MemoryRows) -> None:
        for relation in self._question.catalog:
            for key, row in store.rows(relation):
                self._begun.put(relation, key, row)
                self._begun_count += 1

    def rest(self) -> Iterator[HistoryRow]:
        yield from self._welcomed()
        yield from self._told()
        yield refused(self._bad)

    def _welcomed(self) -> Iterator[HistoryRow]:
        """What the queries begin with, of the rows collected."""
        start = self._question.start
        stage = RowStage(self._begun, self._prepared.index)
        for edge in self._prepared.index.edges:
            yield from _step_rows(HistoryKind.SEED, {edge: stage.seed(start, edge)})
        for points in self._prepared.selections:
            yield from self._prepared.deliveries(stage.initial(start, NewSelections(points)))
        self._begun, self._begun_count = MemoryRows(), 0

    def _told(self) -> Iterator[HistoryRow]:
        """What the changes collected lead to."""
        stage = RowStage(MemoryRows(), self._prepared.index)
        messages, steps = stage.consequences(self._run)
        yield from self._prepared.deliveries(messages)
        yield from _step_rows(HistoryKind.STEP, steps)
        self._run = []


def _step_rows(kind: HistoryKind, steps: StepsByEdge) -> Iterator[HistoryRow]:
    for edge, groups in steps.items():
        for value, mine in groups.items():
            place = place_of(group_place(edge, value))
            for step in mine:
                yield HistoryRow(place, step.offset, kind, step.step, pack_step(edge, value, step))
