"""A clairvoyant lower bound: what must be evaluated for an event even if all truths are known.

All predicates of matching branches, and for every other branch one that is false: a set cover. Its
linear relaxation is bounded from below by Lagrangian multipliers, one price per branch: the sum of
the prices, less what predicates are overpaid. Every choice of prices gives a bound, so early stops
cannot make it wrong; subgradient steps make it tight (within 0.1 % of the
relaxation after 200 of them, in seconds for 80,000 branches, where a solver of linear programs
takes minutes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.operators.schedules.packed import Packed, pack
from penstock.operators.schedules.schedule import Chain, Estimates, Truths

Floats = npt.NDArray[np.float64]

STEPS = 200
MOMENTUM = 0.7
PATIENCE_STEPS = 12
"""Without an improvement of a relative 0.0005: then steps get shorter, by SHRINKING."""
SHRINKING = 0.7


@dataclass(frozen=True, slots=True)
class Bound:
    lower: float
    """No schedule can decide the event for less."""
    upper: float
    """The cost of a greedy clairvoyant schedule."""


class ClairvoyantBound:
    """Bounds for events over the same branches."""

    def __init__(self, branches: Mapping[int, Chain], estimates: Estimates) -> None:
        self._packed = pack(list(branches.items()))
        names = self._packed.predicate_names.tolist()
        self._costs = np.array([estimates.cost(name) for name in names], np.float64)
        truth = np.array([estimates.probability(name) for name in names], np.float64)
        self._costs_until_false = self._costs / (1.0 - truth)

    def of(self, truths: Truths, steps: int = STEPS) -> Bound:
        packed, costs = self._packed, self._costs
        cover = _Cover.of(packed, truths[packed.predicate_names], costs)
        upper = cover.greedy_cost()
        return Bound(cover.fixed + cover.relaxed_cost(upper, steps), cover.fixed + upper)

    def of_any_schedule(self, truths: Truths, steps: int = STEPS) -> float:
        """A bound on the mean over events for every schedule that learns a truth only by
        evaluating. Predicates are independent.

        Whether a schedule evaluates a predicate does not depend on its truth. So of its evaluations
        a share of 1 - p finds it false: each that does stands for 1 / (1 - p) evaluations. Those
        that find predicates false cover all branches that do not match; the cheapest cover at these
        prices is the bound.
        """
        packed, costs = self._packed, self._costs_until_false
        cover = _Cover.of(packed, truths[packed.predicate_names], costs)
        return cover.relaxed_cost(cover.greedy_cost(), steps)


@dataclass(frozen=True, slots=True)
class _Cover:
    """The set cover of one event: pairs of an open branch and a false predicate of it."""

    branches: npt.NDArray[np.int64]
    predicates: npt.NDArray[np.int64]
    costs: Floats
    fixed: float
    """The cost of the predicates of matching branches."""

    @classmethod
    def of(cls, packed: Packed, truths: Truths, costs: Floats) -> _Cover:
        owners = np.repeat(np.arange(len(packed.starts) - 1), np.diff(packed.starts))
        is_false = ~truths[packed.predicates]
        is_open = np.bincount(owners[is_false], minlength=len(packed.starts) - 1) > 0
        needed = np.unique(packed.predicates[~is_open[owners]])
        branches = np.unique(owners[is_false], return_inverse=True)[1]
        predicates = packed.predicates[is_false].astype(np.int64)
        return cls(branches, predicates, costs, float(costs[needed].sum()))

    def relaxed_cost(self, upper: float, steps: int) -> float:
        if not len(self.branches):
            return 0.0
        prices, most = self._first_prices(), self._most_prices()
        direction = np.zeros_like(prices)
        best, scale, stalled = 0.0, 1.0, 0
        for _ in range(steps):
            load = self._per_predicate(prices[self.branches])
            value = float(prices.sum() + np.minimum(0.0, self.costs - load).sum())
            stalled = 0 if value > best * 1.0005 else stalled + 1
            best = max(best, value)
            if stalled == PATIENCE_STEPS:
                scale, stalled = scale * SHRINKING, 0
            covered = np.bincount(
                self.branches, (load > self.costs)[self.predicates], minlength=len(prices)
            )
            gradient = np.where((prices <= 0) & (covered > 1), 0.0, 1.0 - covered)
            direction = MOMENTUM * direction + gradient
            length = float(direction @ direction)
            if not length or upper <= value:
                break
            step = scale * (upper - value) / length
            prices = np.clip(prices + step * direction, 0.0, most)
        return best

    def greedy_cost(self) -> float:
        """The cost of a greedy cover: first the predicates in the most open branches for their
        cost."""
        count = int(self.branches.max(initial=-1)) + 1
        order = np.argsort(self.predicates, kind="stable")
        firsts = np.searchsorted(self.predicates[order], np.arange(len(self.costs) + 1))
        members = self.branches[order]
        is_open, left, cost = np.ones(count, np.bool_), count, 0.0
        rates = np.diff(firsts) / self.costs
        while left:
            # Candidates from the last sort, as long as they are still the best.
            for t in np.argsort(-rates, kind="stable")[: max(1, left // 64)].tolist():
                mine = members[firsts[t] : firsts[t + 1]]
                still = int(is_open[mine].sum())
                was, rates[t] = rates[t], still / self.costs[t]
                if still and rates[t] == was:
                    is_open[mine] = False
                    left -= still
                    cost += float(self.costs[t])
                    rates[t] = 0.0
        return cost

    def _first_prices(self) -> Floats:
        """The cost of the best predicate of each branch, shared among all branches that have it."""
        rates = self._per_predicate(np.ones(len(self.predicates))) / self.costs
        best = np.zeros(int(self.branches.max()) + 1)
        np.maximum.at(best, self.branches, rates[self.predicates])
        return 1.0 / best

    def _most_prices(self) -> Floats:
        """The cost of the cheapest predicate of each branch. No larger price is optimal, and sums
        of huge prices would have rounding errors above the bound."""
        most = np.full(int(self.branches.max()) + 1, np.inf)
        np.minimum.at(most, self.branches, self.costs[self.predicates])
        return most

    def _per_predicate(self, weights: Floats) -> Floats:
        sums = np.bincount(self.predicates, weights, minlength=len(self.costs))
        return sums.astype(np.float64)
