"""Truth values of all predicates: keys become order codes, predicates ranges of codes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from penstock.catalog import Relation
from penstock.kernels.compiled import njit
from penstock.matching.events import DictionaryColumn, EventBatch, KeyColumn
from penstock.matching.matchers.diagram.predicates import Predicate
from penstock.predicates.codes import NULL_CODE, Codes

Ints32 = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]

LANES = 64
"""Events per word, one bit each."""
_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1


class CodedPredicates:
    """Predicates as closed ranges of codes of their columns."""

    def __init__(self, relation: Relation, predicates: Sequence[Predicate]) -> None:
        by_column: list[list[Predicate]] = [[] for _ in relation.columns]
        for predicate in predicates:
            by_column[predicate.column].append(predicate)
        self._codes = [Codes.of_intervals(p.interval for p in held) for held in by_column]
        ranges = [self._codes[p.column].interval(p.interval) for p in predicates]
        self._columns = np.array([p.column for p in predicates], np.int32)
        self._lows = np.array([low for low, _ in ranges], np.int32)
        self._highs = np.array([high for _, high in ranges], np.int32)

    def __len__(self) -> int:
        return len(self._columns)

    def truth(self, batch: EventBatch) -> Words:
        """One row per 64 events, one word per predicate, one bit per event."""
        codes = np.empty((len(self._codes), len(batch)), np.int32)
        for c, (of_column, column) in enumerate(zip(self._codes, batch.columns, strict=True)):
            codes[c] = column_codes(of_column, column)
        truth = np.zeros((words_for(len(batch)), len(self)), np.uint64)
        _assign(codes, self._columns, self._lows, self._highs, truth)
        return truth


def words_for(events: int) -> int:
    return -(-events // LANES)


def column_codes(codes: Codes, column: KeyColumn) -> Ints32:
    """The code of every key of a column."""
    if isinstance(column, DictionaryColumn):
        # NULL has index -1, which reads the last entry.
        by_entry = [codes.value(key) for key in column.dictionary]
        entries: Ints32 = np.array([*by_entry, NULL_CODE], np.int32)[column.indices]
        return entries
    # Constants beyond 64 bits lie below or above all keys.
    first = bisect_left(codes.constants, _LOWEST)
    last = bisect_left(codes.constants, _HIGHEST + 1)
    constants = np.array(codes.constants[first:last], np.int64)
    places = np.searchsorted(constants, column.keys)
    on_constant = np.zeros(len(places), np.bool_)
    inside = places < len(constants)
    on_constant[inside] = constants[places[inside]] == column.keys[inside]
    found: Ints32 = (2 * (first + places) + on_constant).astype(np.int32)
    if column.nulls is not None:
        found[column.nulls] = NULL_CODE
    return found


def direct_truth(predicates: Sequence[Predicate], batch: EventBatch) -> Words:
    """The same as `CodedPredicates.truth`, one predicate and event at a time."""
    truth = np.zeros((words_for(len(batch)), len(predicates)), np.uint64)
    for e in range(len(batch)):
        keys = batch.keys(e)
        for p, predicate in enumerate(predicates):
            if predicate.interval.contains(keys[predicate.column]):
                truth[e // LANES, p] |= np.uint64(1 << (e % LANES))
    return truth


@njit
def _assign(codes: Ints32, columns: Ints32, lows: Ints32, highs: Ints32, truth: Words) -> None:
    """Fill `truth[e // 64, p]` from codes by column and event; bits beyond the last event are 0."""
    events = codes.shape[1]
    for p in range(len(columns)):
        of_column = codes[columns[p]]
        low, high = lows[p], highs[p]
        for start in range(0, events, LANES):
            word = np.uint64(0)
            for lane in range(min(LANES, events - start)):
                code = of_column[start + lane]
                if low <= code and code <= high:
                    word |= np.uint64(1) << np.uint64(lane)
            truth[start // LANES, p] = word
