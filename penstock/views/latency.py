"""Lower latency from a utilisation-optimal plan: LOGA as published (Algorithm 2), and annealing.

LOGA replaces the rewritings of views one by one, those with the largest impact first, while that
lowers the latency of the whole plan; never back to the source, and within limits 1.5 times those of
the plan, because the optimal plan uses up almost all of its own. It ignores the utilisation of a
replacement; *annealing* continues from there by random replacements that minimise Σλ + μU.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.views.latency_kernel import (
    Choices,
    Feeding,
    anneal,
    count_behind,
    link_all,
    loga_pass,
)
from penstock.views.planning_problem import SOURCE, UNLIMITED, Plan
from penstock.views.rewriting_kernel import MAX_COVER

RELAXATION = 1.5
MAX_PASSES = 60


@dataclass(frozen=True, slots=True)
class Annealing:
    """Number of steps, temperatures, and the weight of utilisation."""

    steps: int = 5_000_000
    hot: float = 0.3
    cold: float = 0.005
    """Temperatures, as multiples of the mean latency that a rewriting adds."""
    utilisation_weight: float = 1.0
    """μ: 1 weighs the plan's whole utilisation as much as its whole latency."""
    seed: int = 1


def relaxed_capacity(capacity: NDArray[np.int64]) -> NDArray[np.int64]:
    """The limits of LOGA."""
    relaxed = np.floor(capacity * RELAXATION).astype(np.int64)
    return np.where(capacity >= UNLIMITED, capacity, relaxed)


def optimise_latency(plan: Plan, capacity: NDArray[np.int64] | None = None) -> LatencyResult:
    """LOGA. Default limits: those of the plan times 1.5."""
    search = _Search(plan, capacity)
    search.loga()
    return search.result()


def anneal_latency(
    plan: Plan, annealing: Annealing | None = None, capacity: NDArray[np.int64] | None = None
) -> LatencyResult:
    """LOGA, then annealing."""
    search = _Search(plan, capacity)
    search.loga()
    search.anneal(annealing or Annealing())
    return search.result()


@dataclass(frozen=True, slots=True)
class LatencyResult:
    plan: Plan
    history: Sequence[tuple[float, float]]
    """CPU seconds, and the latency of the whole plan at that time: Figure 5."""


class _Search:
    def __init__(self, plan: Plan, capacity: NDArray[np.int64] | None) -> None:
        problem, graph = plan.problem, plan.problem.graph
        if capacity is None:
            capacity = relaxed_capacity(problem.capacity)
        self.problem = problem.with_capacity(capacity)
        self.began = time.process_time()
        self.total = plan.utilisation()
        self.choices = Choices(
            *(graph.starts, graph.input_starts, graph.inputs),
            *(problem.latency, problem.utilisation, self.problem.capacity),
        )
        self.feeding = _feeding(plan)
        link_all(self.choices, self.feeding)
        self.history = [(0.0, float(self.feeding.latency.sum()))]

    def loga(self) -> None:
        feeding = self.feeding
        for _ in range(MAX_PASSES):
            impact = feeding.latency * count_behind(feeding.head, feeding.after)
            order = np.argsort(-impact, kind="stable")
            moves, change = loga_pass(self.choices, feeding, order)
            self._note()
            if not moves or -change < 1e-9:
                return

    def anneal(self, given: Annealing) -> None:
        graph = self.problem.graph
        views = np.flatnonzero((self.feeding.chosen != SOURCE) & (np.diff(graph.starts) > 1))
        if not len(views):
            return
        unit = float(self.problem.latency.mean())
        weight = given.utilisation_weight * float(self.feeding.latency.sum()) / self.total
        slices = 10
        ratio = given.cold / given.hot
        for number in range(slices):  # one cooling in slices, for the history
            hot = given.hot * ratio ** (number / slices)
            cold = given.hot * ratio ** ((number + 1) / slices)
            anneal(
                *(self.choices, self.feeding, views, given.steps // slices),
                *(hot * unit, cold * unit, weight, given.seed + number),
            )
            self._note()

    def result(self) -> LatencyResult:
        return LatencyResult(Plan(self.problem, self.feeding.chosen.copy()), self.history)

    def _note(self) -> None:
        spent = time.process_time() - self.began
        total = math.fsum(self.feeding.latency)
        self.history.append((spent, total))


def _feeding(plan: Plan) -> Feeding:
    views = plan.problem.views
    order = plan.order()
    rank = np.empty(views, np.int64)
    rank[order] = np.arange(views)
    return Feeding(
        chosen=plan.chosen.copy(),
        latency=plan.latencies(),
        loads=np.zeros(views, np.int64),
        head=np.full(views, -1, np.int64),
        after=np.full(views * MAX_COVER, -1, np.int64),
        before=np.full(views * MAX_COVER, -1, np.int64),
        rank=rank,
        order=order,
        heap=np.empty(views + 1, np.int64),
        is_waiting=np.zeros(views, np.bool_),
        changed=np.empty(views + 1, np.int64),
        previous=np.empty(views + 1),
    )
