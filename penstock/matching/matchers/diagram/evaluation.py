"""Evaluating diagrams: predicates first, then every node once, from the bottom to the roots.

Events are lanes of 64-bit words: one AND and one OR evaluate a node for 64 events.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from penstock.kernels.compiled import njit, trailing_zeros
from penstock.matching.matchers.diagram.nodes import FALSE, TRUE, NodeTable

Ints32 = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]


def evaluate_one(nodes: NodeTable, truth: Sequence[bool]) -> list[bool]:
    """The value of every node for one event: what `evaluate` computes for many."""
    values = [False, True]
    for place in range(TRUE + 1, len(nodes)):
        low, high = nodes.children(place)
        values.append(values[high] if truth[nodes.variables[place]] else values[low])
    return values


@njit
def evaluate(
    variables: Ints32, lows: Ints32, highs: Ints32, truth: Words, lanes: np.uint64
) -> Words:
    """The value of every node for one word of events; `lanes` has the bits that stand for events.

    `truth` is indexed by variable. Children precede their parents, so both values are known.
    """
    values = np.empty(len(variables), np.uint64)
    values[FALSE] = np.uint64(0)
    values[TRUE] = lanes
    for node in range(TRUE + 1, len(variables)):
        holds = truth[variables[node]]
        values[node] = (holds & values[highs[node]]) | (~holds & values[lows[node]])
    return values


@njit
def matched_runs(values: Words, roots: Ints32, first_event: int) -> tuple[Ints32, Ints32, Ints32]:
    """The events for which each root is true: owners, run lengths, events; sizes counted first."""
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
