"""The utilisation-optimal plan as the published integer program (Table 1), solved by HiGHS.

One variable per edge of the rewritability graph: from a rewriting to its view, and from each input
(or the source) to the rewriting. Exactly as published, so only for small instances: larger ones use
`column_generation`, which gives the same plans.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.errors import PlanError
from penstock.views.extras import load_highspy
from penstock.views.planning_problem import SOURCE, Plan, PlanningProblem

MAX_EDGES = 200_000
"""Above this the published program takes minutes and gigabytes."""


def published_plan(problem: PlanningProblem) -> Plan | None:
    """The best plan, or None if no plan is feasible."""
    graph = problem.graph
    if graph.rewritings + len(graph.inputs) + 2 * problem.views > MAX_EDGES:
        raise PlanError(
            "There are too many rewritings for the published program",
            hint="use column generation, which gives the same plans",
        )
    if not problem.views:
        return Plan(problem, np.zeros(0, np.int64), 0.0)
    solver = _Program(problem).solve()
    highspy = load_highspy()
    status = solver.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        return None
    if status != highspy.HighsModelStatus.kOptimal:
        raise PlanError(f"HiGHS stopped: {solver.modelStatusToString(status)}")
    values = np.array(solver.getSolution().col_value)
    chosen = np.full(problem.views, SOURCE, np.int64)
    picked = np.flatnonzero(values[: graph.rewritings] > 0.5)
    chosen[graph.targets()[picked]] = picked
    return Plan(problem, chosen, float(solver.getInfo().mip_dual_bound))


class _Program:
    """Variables: x of rewriting → view; x of source → view; then the same for edges into them."""

    def __init__(self, problem: PlanningProblem) -> None:
        self.problem = problem
        self.rows: list[tuple[float, float, list[int], list[float]]] = []
        graph = problem.graph
        self.of_source = graph.rewritings
        self.of_input = graph.rewritings + problem.views
        self.of_source_input = self.of_input + len(graph.inputs)
        self.count = self.of_source_input + problem.views

    def solve(self) -> Any:
        highspy = load_highspy()
        self._feed_every_view_once()
        self._select_all_inputs()
        self._keep_capacities()
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("mip_rel_gap", 0.0)
        costs = np.zeros(self.count)
        costs[: self.of_source] = self.problem.utilisation
        costs[self.of_source : self.of_input] = self.problem.source_utilisation
        _check(highspy, solver.addVars(self.count, np.zeros(self.count), np.ones(self.count)))
        numbers = np.arange(self.count, dtype=np.int32)
        _check(highspy, solver.changeColsCost(self.count, numbers, costs))
        kinds = np.full(self.count, highspy.HighsVarType.kInteger.value, np.uint8)
        _check(highspy, solver.changeColsIntegrality(self.count, numbers, kinds))
        for low, high, columns, values in self.rows:
            _check(
                highspy,
                solver.addRow(
                    low, high, len(columns), np.array(columns, np.int32), np.array(values)
                ),
            )
        _check(highspy, solver.run())
        return solver

    def _feed_every_view_once(self) -> None:
        graph = self.problem.graph
        for view in range(self.problem.views):
            own = list(range(graph.starts[view], graph.starts[view + 1]))
            columns = [*own, self.of_source + view]
            self.rows.append((1.0, 1.0, columns, [1.0] * len(columns)))

    def _select_all_inputs(self) -> None:
        graph = self.problem.graph
        for rewriting in range(graph.rewritings):
            first, last = graph.input_starts[rewriting], graph.input_starts[rewriting + 1]
            columns = [self.of_input + at for at in range(first, last)]
            values = [1.0] * len(columns)
            self.rows.append((0.0, 0.0, [*columns, rewriting], [*values, -float(len(columns))]))
        for view in range(self.problem.views):
            columns = [self.of_source_input + view, self.of_source + view]
            self.rows.append((0.0, 0.0, columns, [1.0, -1.0]))

    def _keep_capacities(self) -> None:
        graph = self.problem.graph
        by_feeder: dict[int, list[int]] = {}
        for at, feeder in enumerate(graph.inputs.tolist()):
            by_feeder.setdefault(feeder, []).append(self.of_input + at)
        for feeder, columns in by_feeder.items():
            limit = float(self.problem.capacity[feeder])
            self.rows.append((-np.inf, limit, columns, [1.0] * len(columns)))
        columns = list(range(self.of_source_input, self.count))
        limit = float(self.problem.source_capacity)
        self.rows.append((-np.inf, limit, columns, [1.0] * len(columns)))


def _check(highspy: Any, status: Any) -> None:
    if status == highspy.HighsStatus.kError:
        raise PlanError("HiGHS refused the program")
