"""The rounds of `benefit`: many candidates, scheduled in arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.kernels.compiled import njit_when_large
from penstock.operators.schedules.packed import Names, Numbers, Packed
from penstock.operators.schedules.schedule import (
    Evaluated,
    Truths,
    contradiction,
    unknown_branch,
)

Floats = npt.NDArray[np.float64]
Weights = npt.NDArray[np.int32]
"""Half as wide as they could be, so that what a round goes through fits into a core's cache."""

SHARES = (0.5, 0.6, 0.7, 0.8)
"""Of the weight that waits for a predicate, by round (the last for
all further ones): if for so much of it no other predicate is better, it is asked for. With (1.0,),
rounds ask for what the heap asks for. At 80,000 branches these need 8 rounds instead of 31 and a
sixth of the time, for 1 % more evaluations. The first rounds are the long ones; falling shares, or
0.5 in all rounds, need 2 to 3 % more evaluations for the same time (docs/notes/schedules.md)."""
KNOWN = -np.inf
"""The rate of a predicate that was evaluated: no branch votes for it again."""
HEAVIEST_TOTAL = 2**30
"""Of the weights of all branches, so that no sum leaves 32 bits; they are scaled down to it."""


class Prepared(NamedTuple):
    """What all events have in common: by predicate (1 - p) / cost, by branch its weight; and, for
    events with all branches as candidates, the weight that waits for each predicate, and round
    1."""

    packed: Packed
    rates: Floats
    weights: Weights
    values: Weights
    first: Numbers
    shares: tuple[float, ...]


class State(NamedTuple):
    """Where one event stands."""

    values: Weights
    """By predicate: the weight of the branches in `undecided` that have it."""
    left: Numbers
    """By branch: its predicates that are not known to be true."""
    is_decided: Truths
    is_matched: Truths
    is_evaluated: Truths
    undecided: Numbers
    """Branches, the first `size[0]` of which were undecided when the last round was chosen;
    `size[1]` rounds were chosen so far."""
    size: Numbers
    rates: Floats
    """By predicate: (1 - p) / cost; KNOWN if it was evaluated."""
    votes: Weights
    tops: Numbers


def prepare_rounds(
    packed: Packed, rates: Floats, weights: Weights, shares: tuple[float, ...]
) -> Prepared:
    total = int(weights.sum(dtype=np.int64))
    if total > HEAVIEST_TOTAL:
        weights = np.maximum(1, weights // (total // HEAVIEST_TOTAL + 1)).astype(np.int32)
    values = np.zeros(len(rates), np.int32)
    np.add.at(values, packed.predicates, np.repeat(weights, np.diff(packed.starts)))
    prepared = Prepared(packed, rates, weights, values, np.empty(0, np.int32), shares)
    state = make_state(prepared, None)
    return prepared._replace(first=choose_round(prepared, state))


def make_state(prepared: Prepared, candidates: Numbers | None) -> State:
    branches, predicates = len(prepared.weights), len(prepared.rates)
    if candidates is None:
        candidates, values = np.arange(branches, dtype=np.int32), prepared.values.copy()
    else:
        values = np.zeros(predicates, np.int32)
        _add_weights(prepared.packed, prepared.weights, candidates, 1, values)
        candidates = candidates.copy()  # rounds move those that are undecided to the front
    left = np.diff(prepared.packed.starts)
    return State(
        values,
        left,
        left == 0,
        left == 0,
        np.zeros(predicates, np.bool_),
        candidates,
        np.array([len(candidates), 0], np.int32),
        prepared.rates.copy(),
        np.zeros(predicates, np.int32),
        np.empty(len(candidates), np.int32),
    )


@njit_when_large
def _add_weights(
    packed: Packed, weights: Weights, branches: Numbers, sign: int, values: Weights
) -> None:
    """Add the weights of some branches to the values of their predicates, or take them away."""
    for branch in branches:
        weight = np.int32(sign * weights[branch])
        for node in range(packed.starts[branch], packed.starts[branch + 1]):
            values[packed.predicates[node]] += weight


def choose_round(prepared: Prepared, state: State) -> Numbers:
    """The predicates of the next round; none if all branches are decided."""
    share = prepared.shares[min(state.size[1], len(prepared.shares) - 1)]
    state.size[1] += 1
    _drop_decided(prepared.packed, prepared.weights, state)
    # Sorted, so that the branches of what is asked for are read from front to back.
    return np.sort(_choose(prepared.packed, prepared.weights, state, share))


def first_round(prepared: Prepared, state: State) -> Numbers:
    """What `choose_round` finds first if all branches are candidates and nothing is known."""
    state.size[1] = 1
    return prepared.first


@njit_when_large
def _drop_decided(packed: Packed, weights: Weights, state: State) -> None:
    """Branches decided since the last round wait for nothing any more.

    They are parted from the others first, without a jump that depends on the data. Then the weights
    of the smaller part are summed up: what the decided ones take away, or what the others leave. In
    the order of their numbers, which is the order of their nodes in memory: deciding them one by
    one, where a predicate decides them, takes twice the time.
    """
    count = dropped = 0
    decided = state.tops  # which nobody needs between two rounds
    for i in range(state.size[0]):
        branch = state.undecided[i]
        state.undecided[count] = branch
        decided[dropped] = branch
        is_decided = state.is_decided[branch]
        dropped += is_decided
        count += not is_decided
    state.size[0] = count
    if count < dropped:
        state.values[:] = 0
        _add_weights(packed, weights, state.undecided[:count], 1, state.values)
    else:
        _add_weights(packed, weights, decided[:dropped], -1, state.values)


@njit_when_large
def _choose(packed: Packed, weights: Weights, state: State, share: float) -> Numbers:
    """Every undecided branch votes, with its weight, for the best of its predicates; a predicate
    with a large enough share of the votes of all branches that have it is chosen. The best of all
    predicates has all votes, so at least one is chosen while a branch is undecided.

    Nothing goes through all predicates: most rounds have a few branches left."""
    count = state.size[0]
    for i in range(count):
        branch = state.undecided[i]
        top, most = np.int32(0), np.float32(-1)
        for node in range(packed.starts[branch], packed.starts[branch + 1]):
            predicate = packed.predicates[node]
            benefit = np.float32(state.rates[predicate] * state.values[predicate])
            if benefit > most:  # of equal ones the first, which has the smallest number
                top, most = predicate, benefit
        state.tops[i] = top
        state.votes[top] += weights[branch]
    chosen = np.empty(min(count, state.values.shape[0]), np.int32)
    found = 0
    for i in range(count):
        top = state.tops[i]
        if state.votes[top] > 0 and state.votes[top] >= share * state.values[top]:
            chosen[found] = top
            found += 1
        state.votes[top] = 0  # others who voted for it find no votes: it is chosen once
    return chosen[:found]


@njit_when_large
def _settle(packed: Packed, state: State, predicates: Numbers, truths: Truths) -> None:
    """Mark the branches that the truths of some predicates decide."""
    for i in range(predicates.shape[0]):
        predicate = predicates[i]
        state.is_evaluated[predicate] = True
        state.rates[predicate] = KNOWN
        for j in range(packed.firsts[predicate], packed.firsts[predicate + 1]):
            branch = packed.branches[j]
            if not truths[i]:
                state.is_decided[branch] = True
                continue
            state.left[branch] -= 1
            if state.left[branch] == 0 and not state.is_decided[branch]:
                state.is_decided[branch] = state.is_matched[branch] = True


def replay_rounds(prepared: Prepared, truths: Truths) -> Evaluated:
    """What a run over all branches evaluates, if the truths of all predicates are given."""
    state, given = make_state(prepared, None), truths[prepared.packed.predicate_names]
    asked = first_round(prepared, state)
    while len(asked):
        _settle(prepared.packed, state, asked, given[asked])
        asked = choose_round(prepared, state)
    return prepared.packed.predicate_names[state.is_evaluated]


class RoundsRun:
    """The run of an event whose predicates are asked for round by round."""

    def __init__(
        self, prepared: Prepared, candidates: list[int] | None, known: Mapping[int, bool] | None
    ) -> None:
        self._prepared = prepared
        self._candidates = _numbers_of(prepared.packed.branch_names, candidates)
        self._state = make_state(prepared, self._candidates)
        self._truths = np.zeros(len(prepared.rates), np.bool_)
        self._batch: list[int] = []
        if known:
            self._settle(*self._new_results(list(known), list(known.values())))
        is_usual = not known and candidates is None
        self._asked = (first_round if is_usual else choose_round)(prepared, self._state)

    def next(self) -> int | None:
        return int(self._names[self._asked[0]]) if len(self._asked) else None

    def batch(self) -> list[int]:
        self._batch = self._names[self._asked].tolist()
        return self._batch

    def tell(self, predicate: int, truth: bool) -> None:
        self.tell_many((predicate,), (truth,))

    def tell_many(self, predicates: Iterable[int], truths: Iterable[bool]) -> None:
        given = np.asarray(truths if isinstance(truths, np.ndarray) else list(truths), np.bool_)
        if predicates is self._batch and len(given) == len(self._asked):
            self._settle(self._asked, given)
            self._asked = self._asked[:0]
        else:
            self._settle(*self._new_results(list(predicates), given))
            self._asked = self._asked[~self._state.is_evaluated[self._asked]]
        if not len(self._asked):
            self._asked = choose_round(self._prepared, self._state)

    @property
    def matched(self) -> list[int]:
        is_matched = self._state.is_matched.copy()
        if self._candidates is not None:
            is_candidate = np.zeros(len(is_matched), np.bool_)
            is_candidate[self._candidates] = True
            is_matched &= is_candidate
        found: list[int] = self._prepared.packed.branch_names[is_matched].tolist()
        return found

    @property
    def _names(self) -> Names:
        return self._prepared.packed.predicate_names

    def _settle(self, numbers: Numbers, truths: Truths) -> None:
        self._truths[numbers] = truths
        _settle(self._prepared.packed, self._state, numbers, truths)

    def _new_results(self, predicates: list[int], truths: Iterable[bool]) -> tuple[Numbers, Truths]:
        """Of predicates that a branch has and that were not told before."""
        results = dict(zip(predicates, truths, strict=True))
        names, given = np.array(list(results), np.int64), np.array(list(results.values()), np.bool_)
        numbers = np.searchsorted(self._names, names)
        is_ours = np.append(self._names, -1)[numbers] == names
        numbers, given = numbers[is_ours].astype(np.int32), given[is_ours]
        is_old = self._state.is_evaluated[numbers]
        is_other = is_old & (self._truths[numbers] != given)
        if is_other.any():
            raise contradiction(int(self._names[numbers[is_other]][0]))
        return numbers[~is_old], given[~is_old]


def _numbers_of(names: Names, candidates: list[int] | None) -> Numbers | None:
    """The numbers of some branches, whose names stand in ascending order."""
    if candidates is None:
        return None
    wanted = np.unique(np.array(candidates, np.int64))
    numbers = np.searchsorted(names, wanted)
    missing = wanted[np.append(names, -1)[numbers] != wanted]
    if len(missing):
        raise unknown_branch(int(missing[0]))
    return numbers.astype(np.int32)
