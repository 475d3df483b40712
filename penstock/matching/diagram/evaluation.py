"""Evaluating diagrams: predicates first, then every node once, from the bottom to the roots.

Events are lanes of 64-bit words: one AND and one OR evaluate a node for 64 events.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from penstock.catalog import Relation
from penstock.matching.boundaries import boundaries_of, interval_cells
from penstock.matching.compiled import njit, trailing_zeros
from penstock.matching.diagram.nodes import FALSE, TRUE, NodeTable
from penstock.matching.diagram.predicates import Predicate
from penstock.matching.events import EventBatch
from penstock.predicates.intervals import Cut

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

LANES = 64


class CodedPredicates:
    """Predicates as ranges of cells (`boundaries`), for all of them at once."""

    def __init__(self, relation: Relation, predicates: Sequence[Predicate]) -> None:
        cuts: list[list[Cut]] = [[] for _ in relation.columns]
        for predicate in predicates:
            cuts[predicate.column] += [predicate.interval.low, predicate.interval.high]
        self.boundaries = [
            boundaries_of(column.type, of_column)
            for column, of_column in zip(relation.columns, cuts, strict=True)
        ]
        ranges = [interval_cells(self.boundaries[p.column], p.interval) for p in predicates]
        self.columns = np.array([p.column for p in predicates], np.int32)
        self.lows = np.array([low for low, _ in ranges], np.int32)
        self.highs = np.array([high for _, high in ranges], np.int32)

    def __len__(self) -> int:
        return len(self.columns)

    def truth(self, batch: EventBatch) -> Words:
        """A row for each 64 events, a word for each predicate, in which each event has a bit."""
        cells = np.empty((len(self.boundaries), len(batch)), np.int32)
        for c, (boundaries, column) in enumerate(zip(self.boundaries, batch.columns, strict=True)):
            cells[c] = boundaries.cells(column)
        truth = np.zeros((words_for(len(batch)), len(self)), np.uint64)
        _assign(cells, self.columns, self.lows, self.highs, truth)
        return truth


def words_for(events: int) -> int:
    return -(-events // LANES)


def direct_truth(predicates: Sequence[Predicate], batch: EventBatch) -> Words:
    """The same as `CodedPredicates.truth`, one predicate and event at a time."""
    truth = np.zeros((words_for(len(batch)), len(predicates)), np.uint64)
    for e in range(len(batch)):
        keys = batch.keys(e)
        for p, predicate in enumerate(predicates):
            if predicate.interval.contains(keys[predicate.column]):
                truth[e // LANES, p] |= np.uint64(1 << (e % LANES))
    return truth


def evaluate_one(nodes: NodeTable, truth: Sequence[bool]) -> list[bool]:
    """The value of every node for one event: what `evaluate` computes for many."""
    values = [False, True]
    for place in range(TRUE + 1, len(nodes)):
        low, high = nodes.children(place)
        values.append(values[high] if truth[nodes.variables[place]] else values[low])
    return values


@njit
def _assign(cells: Ints32, columns: Ints32, lows: Ints32, highs: Ints32, truth: Words) -> None:
    events = cells.shape[1]
    for p in range(len(columns)):
        of_column = cells[columns[p]]
        low, high = lows[p], highs[p]
        for start in range(0, events, LANES):
            word = np.uint64(0)
            for lane in range(min(LANES, events - start)):
                cell = of_column[start + lane]
                if low <= cell and cell < high:
                    word |= np.uint64(1) << np.uint64(lane)
            truth[start // LANES, p] = word


@njit
def evaluate(
    variables: Ints32, lows: Ints32, highs: Ints32, truth: Words, lanes: np.uint64
) -> Words:
    """The value of every node for one word of events; `lanes` says which bits are events."""
    values = np.empty(len(variables), np.uint64)
    values[FALSE] = np.uint64(0)
    values[TRUE] = lanes
    for node in range(TRUE + 1, len(variables)):
        holds = truth[variables[node]]
        values[node] = (holds & values[highs[node]]) | (~holds & values[lows[node]])
    return values


@njit
def matched_runs(values: Words, roots: Ints32, first_event: int) -> tuple[Ints32, Ints32, Ints32]:
    """Which roots are true of which events: owners, lengths of their runs, and events."""
    runs, total = 0, 0
    for root in roots:
        word = values[root]
        runs += word != 0
        while word:
            word &= word - np.uint64(1)
            total += 1
    owners, lengths = np.empty(runs, np.int32), np.empty(runs, np.int32)
    events = np.empty(total, np.int32)
    run, place = 0, 0
    for owner in range(len(roots)):
        word = values[roots[owner]]
        if word:
            before = place
            while word:
                events[place] = first_event + trailing_zeros(word)
                place += 1
                word &= word - np.uint64(1)
            owners[run] = owner
            lengths[run] = place - before
            run += 1
    return owners, lengths, events
