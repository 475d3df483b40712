"""The fast gear of shared matching: states as arrays, one kernel call per document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.documents.document import Document
from penstock.documents.pattern_states import PatternStates
from penstock.documents.patterns import Operator, TreePattern, number_of
from penstock.documents.state_kernel import (
    TEST_NONE,
    TEST_NUMBER,
    TEST_TEXT_EQUAL,
    TEST_TEXT_OTHER,
    Memory,
    StateArrays,
    run_states,
)
from penstock.xml_text import ATTRIBUTE

_NO_CODE = -1
_POOL = 1 << 16
"""Initial size of the kernel's lists; it asks for more if needed."""


class FastMatcher:
    """Which of many patterns match a document. Not thread-safe: it keeps the kernel's working
    memory."""

    def __init__(self, patterns: Sequence[TreePattern]) -> None:
        shared = _clustered(PatternStates.of(patterns))
        self.labels = {label: i for i, label in enumerate(sorted({s.label for s in shared.states}))}
        self.codes = _text_codes(shared)
        self.longest = max(map(len, self.codes), default=-1)
        self.text_labels = _compared_labels(shared, str)
        self.number_labels = _compared_labels(shared, float)
        self.arrays = _state_arrays(shared, self.labels, self.codes)
        self.states = len(shared.states)
        self.anywhere = _Hits.of(shared.anywhere, self.states)
        self.at_top = _Hits.of(shared.at_top, self.states)
        self.memory = _memory_of(0, self.states, _POOL)

    def matching(self, document: Document) -> list[int]:
        """The numbers of the patterns that match, sorted."""
        return sorted(self.matching_array(document).tolist())

    def matching_array(self, document: Document) -> NDArray[np.int64]:
        """The same as an unsorted array: sorting many matches takes as long as finding them."""
        if not self.states:
            return np.zeros(0, np.int64)
        inputs = self.inputs(document)
        levels = int(document.level_array.max()) + 2
        self._make_room(levels, len(self.memory.pool))
        while True:
            count, top_count, is_complete = run_states(self.arrays, self.memory, *inputs)
            if is_complete:
                break
            self._make_room(levels, 2 * len(self.memory.pool))
        satisfied, at_top = self.memory.found[:count], self.memory.own[:top_count]
        return np.concatenate([self.anywhere.of_states(satisfied), self.at_top.of_states(at_top)])

    def _make_room(self, levels: int, pool: int) -> None:
        levels = max(levels, self.memory.heads.shape[1])
        if levels > self.memory.heads.shape[1] or pool > len(self.memory.pool):
            self.memory = _memory_of(levels, self.states, pool)

    def inputs(self, document: Document) -> tuple[NDArray[np.generic], ...]:
        """Per node: label, level, code of its text, its numeric value."""
        numbers = np.full(len(document), np.nan)
        for label in self.number_labels & document.by_label.keys():
            nodes = document.by_label[label]
            numbers[nodes] = [number_of(document.value(node)) for node in nodes]
        names, codes = document.label_codes
        known = np.array([self.labels.get(name, -1) for name in names], np.int32)
        return known[codes], document.level_array, self._text_codes(document), numbers

    def _text_codes(self, document: Document) -> NDArray[np.int32]:
        """The code of each node's text, if a predicate may test it.

        A text longer than every constant is not sliced: for inner elements it may be most of the
        document.
        """
        found = [_NO_CODE] * len(document)
        code_of, longest = self.codes.get, self.longest
        spans, text, attributes = document.spans, document.text, document.attributes
        for label in self.text_labels & document.by_label.keys():
            if label[0] == ATTRIBUTE:
                for node in document.by_label[label]:
                    found[node] = code_of(attributes[spans[node][0]], _NO_CODE)
                continue
            for node in document.by_label[label]:
                start, stop = spans[node]
                if stop - start <= longest:
                    found[node] = code_of(text[start:stop], _NO_CODE)
        return np.array(found, np.int32)


class _Hits(NamedTuple):
    """The patterns of each state, concatenated."""

    starts: NDArray[np.int64]
    patterns: NDArray[np.int64]

    @classmethod
    def of(cls, by_state: dict[int, list[int]], states: int) -> _Hits:
        counts = np.zeros(states + 1, np.int64)
        for state, patterns in by_state.items():
            counts[state + 1] = len(patterns)
        flat = [pattern for state in sorted(by_state) for pattern in by_state[state]]
        return cls(np.cumsum(counts), np.array(flat, np.int64))

    def of_states(self, states: NDArray[np.int32]) -> NDArray[np.int64]:
        first, last = self.starts[states], self.starts[states + 1]
        counts = last - first
        total = int(counts.sum())
        shift = np.repeat(first - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        found: NDArray[np.int64] = self.patterns[np.arange(total) + shift]
        return found


def _memory_of(levels: int, states: int, pool: int) -> Memory:
    words = (states + 63) // 64
    return Memory(
        words,
        np.zeros(levels * words, np.uint64),
        np.zeros(levels * words, np.uint64),
        np.zeros(words, np.uint64),
        np.full((2, levels), -1, np.int32),
        np.empty(pool, np.int32),
        np.empty(pool, np.int32),
        np.zeros(2, np.int32),
        np.empty(states, np.int32),
        np.empty(states, np.int32),
    )


def _clustered(shared: PatternStates) -> PatternStates:
    """The same states, renumbered so that states tested in sequence are adjacent."""
    states = shared.states

    def place_of(number: int) -> tuple[bool, int, str, int]:
        trigger = _trigger(shared, number)
        return (*(trigger or (False, -1)), states[number].label, number)

    order = sorted(range(len(states)), key=place_of)
    new = {old: place for place, old in enumerate(order)}
    return PatternStates(
        [
            replace(states[old], below=tuple((deep, new[one]) for deep, one in states[old].below))
            for old in order
        ],
        {new[state]: patterns for state, patterns in shared.anywhere.items()},
        {new[state]: patterns for state, patterns in shared.at_top.items()},
    )


def _trigger(shared: PatternStates, number: int) -> tuple[bool, int] | None:
    """The rarest of the states below a state; the state is tested only where this one was
    satisfied."""
    below = shared.states[number].below
    if not below:
        return None
    return max(below, key=lambda pair: (shared.states[pair[1]].size, not pair[0]))


def _compared_labels(shared: PatternStates, kind: type) -> frozenset[str]:
    """Labels whose values are compared with constants of a kind."""
    return frozenset(
        state.label
        for state in shared.states
        if state.predicate is not None and isinstance(state.predicate.constant, kind)
    )


def _text_codes(shared: PatternStates) -> dict[str, int]:
    texts = {
        state.predicate.constant
        for state in shared.states
        if state.predicate is not None and isinstance(state.predicate.constant, str)
    }
    return {text: code for code, text in enumerate(sorted(texts))}


_NUMBER_OPERATORS = {operator: place for place, operator in enumerate(Operator)}


def _state_arrays(
    shared: PatternStates, labels: dict[str, int], codes: dict[str, int]
) -> StateArrays:
    states = shared.states
    label = np.array([labels[state.label] for state in states], np.int32)
    test = np.full(len(states), TEST_NONE, np.int8)
    code = np.full(len(states), _NO_CODE, np.int32)
    number = np.full(len(states), np.nan)
    for place, state in enumerate(states):
        predicate = state.predicate
        if predicate is None:
            continue
        if isinstance(predicate.constant, str):
            is_equal = predicate.operator is Operator.EQ
            test[place] = TEST_TEXT_EQUAL if is_equal else TEST_TEXT_OTHER
            code[place] = codes[predicate.constant]
        else:
            test[place] = TEST_NUMBER + _NUMBER_OPERATORS[predicate.operator]
            number[place] = predicate.constant
    is_wanted = np.zeros((3, len(states)), np.bool_)
    is_wanted[2, list(shared.anywhere)] = True
    others: list[tuple[bool, int]] = []
    below_start = np.zeros(len(states) + 1, np.int64)
    for place, state in enumerate(states):
        trigger = _trigger(shared, place)
        others.extend(pair for pair in state.below if pair != trigger)
        below_start[place + 1] = len(others)
        for deep, one in state.below:
            is_wanted[int(deep), one] = True
    below = np.array([number for _, number in others], np.int32)
    is_deep = np.array([deep for deep, _ in others], np.bool_)
    return StateArrays(
        *(label, test, code, number, below_start, below, is_deep, is_wanted),
        *_leaf_lists(shared, label, test, code, len(labels)),
        *_trigger_lists(shared, label, is_deep=False),
        *_trigger_lists(shared, label, is_deep=True),
    )


def _leaf_lists(
    shared: PatternStates,
    label: NDArray[np.int32],
    test: NDArray[np.int8],
    code: NDArray[np.int32],
    labels: int,
) -> tuple[NDArray[np.generic], ...]:
    """States with nothing below, by label; those that test for an equal text by (label, code)."""
    leaves = [place for place, state in enumerate(shared.states) if not state.below]
    others = sorted((int(label[p]), p) for p in leaves if test[p] != TEST_TEXT_EQUAL)
    equal = sorted(
        ((int(label[p]) << 32) | int(code[p]), p) for p in leaves if test[p] == TEST_TEXT_EQUAL
    )
    starts = np.searchsorted(np.array([one for one, _ in others], np.int64), np.arange(labels + 1))
    return (
        starts.astype(np.int64),
        np.array([place for _, place in others], np.int32),
        np.array([key for key, _ in equal], np.int64),
        np.array([place for _, place in equal], np.int32),
    )


def _trigger_lists(
    shared: PatternStates, label: NDArray[np.int32], *, is_deep: bool
) -> tuple[NDArray[np.generic], ...]:
    """For each state, the states whose trigger it is, by their label."""
    triggers_of = [(place, _trigger(shared, place)) for place in range(len(shared.states))]
    found = sorted(
        (trigger[1], int(label[place]), place)
        for place, trigger in triggers_of
        if trigger is not None and trigger[0] == is_deep
    )
    entries = np.array([place for _, _, place in found], np.int32)
    groups = sorted({(trigger, where) for trigger, where, _ in found})
    keys = np.array([(trigger << 32) | where for trigger, where, _ in found], np.int64)
    group_keys = np.array([(trigger << 32) | where for trigger, where in groups], np.int64)
    group_start = np.append(np.searchsorted(keys, group_keys), len(found)).astype(np.int64)
    triggers = np.array([trigger for trigger, _ in groups], np.int64)
    state_start = np.searchsorted(triggers, np.arange(len(shared.states) + 1)).astype(np.int64)
    group_label = np.array([where for _, where in groups], np.int32)
    return state_start, group_label, group_start, entries
