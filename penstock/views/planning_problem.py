"""The input and the output of a planner.

A *plan* (the paper's configuration) chooses for every view one rewriting, or the source. A view
feeds at most as many others as its capacity allows; so does the source. Utilisation is the sum over
the chosen rewritings; the latency of a view is that of its slowest input plus what its own
rewriting adds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from penstock.errors import PlanError
from penstock.views.planning_kernel import (
    ProblemArrays,
    count_loads,
    find_latencies,
    find_levels,
    topological_order,
)
from penstock.views.rewritings import RewritabilityGraph

SOURCE = -1
"""In a plan: fed by the source."""
UNLIMITED = 1 << 40
"""A capacity that is never reached."""


@dataclass(frozen=True, slots=True)
class PlanningProblem:
    graph: RewritabilityGraph
    utilisation: NDArray[np.float64]
    """Of each rewriting, by its cheapest physical plan."""
    source_utilisation: NDArray[np.float64]
    """Of feeding each view from the source."""
    latency: NDArray[np.float64]
    """What each rewriting adds to the latency of its inputs."""
    source_latency: NDArray[np.float64]
    capacity: NDArray[np.int64]
    """How many views each view may feed."""
    source_capacity: int

    def __post_init__(self) -> None:
        graph = self.graph
        assert len(self.utilisation) == len(self.latency) == graph.rewritings
        assert len(self.source_utilisation) == len(self.source_latency) == graph.views
        assert len(self.capacity) == graph.views
        if (self.capacity < 0).any() or self.source_capacity < 0:
            raise PlanError("A capacity is negative", hint="0 means that a view feeds nobody")

    @property
    def views(self) -> int:
        return self.graph.views

    def arrays(self) -> ProblemArrays:
        """For kernels."""
        graph = self.graph
        return ProblemArrays(
            *(graph.starts, graph.input_starts, graph.inputs, self.utilisation),
            *(self.source_utilisation, self.capacity),
        )

    def with_capacity(
        self, capacity: int | NDArray[np.int64], source_capacity: int | None = None
    ) -> PlanningProblem:
        """The same views under other limits; one number is the limit of every view."""
        return replace(
            self,
            capacity=np.broadcast_to(np.asarray(capacity, np.int64), self.views).copy(),
            source_capacity=self.source_capacity if source_capacity is None else source_capacity,
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """A choice for every view: the number of a rewriting, or SOURCE."""

    problem: PlanningProblem
    chosen: NDArray[np.int64]
    lower_bound: float = 0.0
    """A lower bound on the utilisation of every plan."""

    @property
    def is_from_source(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.chosen == SOURCE
        return found

    def utilisation(self) -> float:
        fed = self.chosen[~self.is_from_source]
        own = self.problem.source_utilisation[self.is_from_source].sum()
        return float(self.problem.utilisation[fed].sum() + own)

    def gap(self) -> float:
        """How far the plan can be from the best, as a share of the bound."""
        if self.lower_bound <= 0:
            return float("inf")
        return max(0.0, self.utilisation() / self.lower_bound - 1)

    def loads(self) -> NDArray[np.int64]:
        """How many views each view feeds."""
        graph = self.problem.graph
        loads = np.zeros(self.problem.views, np.int64)
        count_loads(graph.input_starts, graph.inputs, self.chosen, loads)
        return loads

    def order(self) -> NDArray[np.int64]:
        """Views in topological order."""
        graph = self.problem.graph
        order: NDArray[np.int64] = topological_order(graph.starts, graph.input_starts, graph.inputs)
        if len(order) < self.problem.views:
            raise PlanError("Rewritings feed each other in a circle")
        return order

    def latencies(self) -> NDArray[np.float64]:
        problem = self.problem
        return find_latencies(  # type: ignore[no-any-return]
            self.order(),
            self.chosen,
            problem.graph.input_starts,
            problem.graph.inputs,
            problem.latency,
            problem.source_latency,
        )

    def levels(self) -> NDArray[np.int64]:
        """1 for views that the source feeds, else one more than the highest input's."""
        graph = self.problem.graph
        return find_levels(  # type: ignore[no-any-return]
            self.order(), self.chosen, graph.input_starts, graph.inputs
        )

    def cost(self, alpha: float, beta: float) -> float:
        """Utilisation and latency together: αU + βλ."""
        return alpha * self.utilisation() + beta * float(self.latencies().sum())

    def inputs_of(self, view: int) -> tuple[int, ...]:
        rewriting = int(self.chosen[view])
        return () if rewriting == SOURCE else self.problem.graph.inputs_of(rewriting)

    def check(self) -> None:
        """Raise if the plan breaks a limit, or chooses a rewriting of another view."""
        graph, view = self.problem.graph, np.arange(self.problem.views)
        fed = ~self.is_from_source
        own = (self.chosen >= graph.starts[view]) & (self.chosen < graph.starts[view + 1])
        if not own[fed].all():
            raise PlanError("A plan feeds a view by a rewriting of another one")
        if (self.loads() > self.problem.capacity).any():
            raise PlanError("A plan overloads a view")
        if int(self.is_from_source.sum()) > self.problem.source_capacity:
            raise PlanError("A plan overloads the source")
