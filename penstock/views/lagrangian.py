"""A quick plan: capacity limits as prices (Lagrangian relaxation), by a subgradient method.

With a price per feeding, each view chooses independently, and the sum of their costs is a lower
bound for every plan. Prices rise where views are overloaded. Every few rounds the choices are
repaired into a feasible plan and improved by single moves; the best plan is kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.views.planning_kernel import (
    choose_by_prices,
    improve_plan,
    repair_plan,
)
from penstock.views.planning_problem import Plan, PlanningProblem

REPAIR_EVERY = 10
_SMOOTHING = 0.3
"""Weight of the newest gradient in the search direction."""
_PATIENCE = 12
"""Rounds without a better bound before steps are shortened."""


@dataclass
class Prices:
    """The extra cost of feeding one view, and the resulting bound."""

    views: NDArray[np.float64]
    source: float
    lower_bound: float


@dataclass
class QuickPlan:
    prices: Prices
    plan: Plan | None
    """None if no feasible plan was found; one may exist all the same."""


def quick_plan(problem: PlanningProblem, rounds: int = 200, seed: int = 0) -> QuickPlan:
    """Prices, and the best plan that was found on the way."""
    search = _Search(problem, seed)
    for number in range(rounds):
        search.choose()
        if number % REPAIR_EVERY == 0 or number == rounds - 1:
            search.repair()
        if search.is_closed() or not search.step():
            break
    if search.best is None:
        search.repair()
    best, bound = search.best, search.found.lower_bound
    plan = None if best is None else Plan(problem, best, bound)
    return QuickPlan(search.found, plan)


class _Search:
    def __init__(self, problem: PlanningProblem, seed: int) -> None:
        self.problem, self.arrays = problem, problem.arrays()
        self.prices = np.zeros(problem.views)
        self.source_price = 0.0
        self.found = Prices(self.prices.copy(), 0.0, -np.inf)
        self.best: NDArray[np.int64] | None = None
        self.least = np.inf
        self.chosen = np.empty(problem.views, np.int64)
        self.loads = np.zeros(problem.views, np.int64)
        self.from_source = 0
        self.bound = -np.inf
        self.direction = np.zeros(problem.views)
        self.source_direction = 0.0
        self.scale, self.idle = 1.0, 0
        self.random = np.random.default_rng(seed)

    def choose(self) -> None:
        total, self.from_source = choose_by_prices(
            self.arrays, self.prices, self.source_price, self.chosen, self.loads
        )
        paid = float((self.prices * self.problem.capacity).sum())
        self.bound = total - paid - self.source_price * self.problem.source_capacity
        if self.bound > self.found.lower_bound:
            if self.bound - self.found.lower_bound > 1e-6 * abs(self.bound):
                self.idle = 0
            self.found = Prices(self.prices.copy(), self.source_price, self.bound)
        else:
            self.idle += 1

    def repair(self) -> None:
        chosen, loads = self.chosen.copy(), self.loads.copy()
        choices = np.diff(self.problem.graph.starts)
        # Views with few choices first, the others in random order.
        order = np.argsort(choices + 10 * self.random.random(self.problem.views), kind="stable")
        limit = self.problem.source_capacity
        from_source, unplaced = repair_plan(
            self.arrays, self.prices, self.source_price, limit, order, chosen, loads
        )
        if unplaced or from_source > limit:
            return
        for _ in range(4):
            moves, from_source = improve_plan(self.arrays, limit, from_source, order, chosen, loads)
            if not moves:
                break
        used = Plan(self.problem, chosen).utilisation()
        if used < self.least:
            self.least, self.best = used, chosen

    def is_closed(self) -> bool:
        is_found = self.best is not None
        return is_found and self.least - self.found.lower_bound <= 1e-9 * abs(self.least)

    def step(self) -> bool:
        """A subgradient step; False if nothing is overloaded."""
        if self.idle >= _PATIENCE:
            self.scale, self.idle = 0.7 * self.scale, 0
            self.prices, self.source_price = self.found.views.copy(), self.found.source
            self.direction[:] = 0
            self.source_direction = 0.0
            return True
        excess = (self.loads - self.problem.capacity).astype(np.float64)
        excess[(self.prices <= 0) & (excess < 0)] = 0
        source_excess = float(self.from_source - self.problem.source_capacity)
        if self.source_price <= 0 and source_excess < 0:
            source_excess = 0.0
        if not excess.any() and not source_excess:
            return False
        self.direction = (1 - _SMOOTHING) * self.direction + _SMOOTHING * excess
        self.source_direction = (
            1 - _SMOOTHING
        ) * self.source_direction + _SMOOTHING * source_excess
        target = max(
            self.least if self.best is not None else 1.05 * self.bound, 1.0005 * self.bound
        )
        norm = float((self.direction**2).sum()) + self.source_direction**2 + 1e-12
        length = self.scale * (target - self.bound) / norm
        self.prices = np.maximum(0, self.prices + length * self.direction)
        self.source_price = max(0.0, self.source_price + length * self.source_direction)
        return True
