"""Optimal costs of tiny instances: the optimum for an event, and the best expected cost.

Both enumerate all possibilities: for tests and comparison only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import chain

from penstock.errors import PenstockError
from penstock.operators.schedules.schedule import Estimates

MOST_PREDICATES = 14
"""There are 3^n states of n predicates (unknown, true, false): 4.8 million for 14."""

Branches = Mapping[int, Collection[int]]


def optimum(branches: Branches, truths: Sequence[bool], estimates: Estimates) -> float:
    """The least cost that decides all branches of an event whose truths are known: predicates of
    matching branches, and the cheapest set with a false one of every other branch."""
    _check(branches)
    matching = [b for b in branches.values() if all(truths[t] for t in b)]
    given = frozenset(chain.from_iterable(matching))
    others = [{t for t in b if not truths[t]} for b in branches.values()]
    return sum(map(estimates.cost, given)) + _cheapest(
        tuple(frozenset(false) for false in others if false), estimates
    )


def _cheapest(open_sets: tuple[frozenset[int], ...], estimates: Estimates) -> float:
    if not open_sets:
        return 0.0
    smallest = min(open_sets, key=len)
    return min(
        estimates.cost(t) + _cheapest(tuple(s for s in open_sets if t not in s), estimates)
        for t in smallest
    )


def expected_optimum(branches: Branches, estimates: Estimates) -> float:
    """The expected cost of the best schedule that knows probabilities but no truth."""
    _check(branches)
    everything = frozenset(frozenset(b) for b in branches.values())

    @cache
    def least(undecided: frozenset[frozenset[int]]) -> float:
        """`undecided`: by branch, its predicates that are not evaluated yet."""
        left = undecided - {frozenset()}
        if not left:
            return 0.0
        costs = []
        for t in frozenset().union(*left):
            p = estimates.probability(t)
            if_true = least(frozenset(b - {t} for b in left))
            if_false = least(frozenset(b for b in left if t not in b))
            costs.append(estimates.cost(t) + p * if_true + (1 - p) * if_false)
        return min(costs)

    return least(everything)


def _check(branches: Branches) -> None:
    count = len(set(chain.from_iterable(branches.values())))
    if count > MOST_PREDICATES:
        raise PenstockError(
            f"{count} predicates are too many to look through all schedules",
            hint=f"At most {MOST_PREDICATES}; for more there is a lower bound.",
        )
