"""The published schedules over packed branches, for events with all truths given.

They evaluate the same predicates as the runs of `naive`, `sequential` and `sub-order`; a test
compares them. Arrays have one entry per branch or per predicate, so no index is out of bounds.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.compiled import njit_when_large
from penstock.operators.schedules.packed import Packed
from penstock.operators.schedules.schedule import Evaluated, Truths


def replay_naive(packed: Packed, truths: Truths) -> Evaluated:
    return _named(packed, _naive(packed, truths[packed.predicate_names]))


def replay_chains(packed: Packed, truths: Truths) -> Evaluated:
    """Chain by chain, skipping those that a false predicate has decided."""
    return _named(packed, _chains(packed, truths[packed.predicate_names]))


def replay_sequential(packed: Packed, truths: Truths) -> Evaluated:
    return _named(packed, _sequential(packed, truths[packed.predicate_names]))


def _named(packed: Packed, is_evaluated: Truths) -> Evaluated:
    return packed.predicate_names[is_evaluated]


@njit_when_large
def _naive(packed: Packed, truths: Truths) -> Truths:
    is_evaluated = np.zeros(truths.shape[0], np.bool_)
    for branch in range(packed.starts.shape[0] - 1):
        for node in range(packed.starts[branch], packed.starts[branch + 1]):
            predicate = packed.predicates[node]
            is_evaluated[predicate] = True
            if not truths[predicate]:
                break
    return is_evaluated


@njit_when_large
def _chains(packed: Packed, truths: Truths) -> Truths:
    is_evaluated = np.zeros(truths.shape[0], np.bool_)
    is_decided = np.zeros(packed.starts.shape[0] - 1, np.bool_)
    for branch in range(packed.starts.shape[0] - 1):
        if is_decided[branch]:
            continue
        for node in range(packed.starts[branch], packed.starts[branch + 1]):
            predicate = packed.predicates[node]
            if is_evaluated[predicate]:
                continue
            is_evaluated[predicate] = True
            if not truths[predicate]:
                for i in range(packed.firsts[predicate], packed.firsts[predicate + 1]):
                    is_decided[packed.branches[i]] = True
                break
    return is_evaluated


@njit_when_large
def _sequential(packed: Packed, truths: Truths) -> Truths:
    is_evaluated = np.zeros(truths.shape[0], np.bool_)
    is_decided = np.zeros(packed.starts.shape[0] - 1, np.bool_)
    left = packed.starts[1:] - packed.starts[:-1]
    wanting = packed.firsts[1:] - packed.firsts[:-1]
    for branch in range(packed.starts.shape[0] - 1):
        if is_decided[branch]:
            continue
        for node in range(packed.starts[branch], packed.starts[branch + 1]):
            predicate = packed.predicates[node]
            if is_evaluated[predicate] or wanting[predicate] == 0:
                continue
            is_evaluated[predicate] = True
            for i in range(packed.firsts[predicate], packed.firsts[predicate + 1]):
                other = packed.branches[i]
                if is_decided[other]:
                    continue
                left[other] -= 1
                if left[other] == 0 or not truths[predicate]:
                    is_decided[other] = True
                    for j in range(packed.starts[other], packed.starts[other + 1]):
                        wanting[packed.predicates[j]] -= 1
    return is_evaluated
