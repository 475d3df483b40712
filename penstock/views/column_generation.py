"""The utilisation-optimal plan of many views, by column generation, with a proven gap.

Every rewriting feeds one view, so the published program's variables for the inputs of rewritings
can be substituted exactly: one variable per rewriting and one per view for the source, one equation
per view, one limit per feeder that could be overloaded at all. Only rewritings with negative
reduced cost enter the linear program; the prices of a Lagrangian search select the first ones. The
sum of all views' cheapest choices at the dual prices is a lower bound; an integer program over the
columns gives the plan.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.errors import PlanError
from penstock.views.extras import load_highspy
from penstock.views.lagrangian import QuickPlan, quick_plan
from penstock.views.planning_kernel import price_columns
from penstock.views.planning_problem import SOURCE, Plan, PlanningProblem

LAGRANGIAN_ROUNDS = 300
"""A round takes a tenth of a second where there are millions of rewritings; good initial prices
save simplex iterations, which take hundreds of times as long."""
FIRST_COLUMNS = 4
"""Maximum number of initial rewritings per view."""
_FIRST_SLACK = 0.01
"""Maximum excess of their cost over the cheapest, as a share of the source's mean cost."""
NEW_COLUMNS = 2
"""Maximum number of rewritings per view that a round adds."""
MAX_ROUNDS = 200
_REDUCED_COST = 1e-6
"""Minimum saving for a column to enter, as a share of the mean cost of the source."""
_MEAN_SOURCE_COST = 1_000.0
"""Costs are scaled to this: the solver's tolerances are absolute, and with billions of bytes it
would chase negligible differences."""
_MIP_GAP = 1e-6
_RELAXATION_GAP = 1e-6
"""Columns are added until the relaxation is this close to its bound."""
_PROVEN_GAP = 5e-5
"""A plan with a larger gap is searched again among all columns that a better one could use."""
_MAX_EXACT_COLUMNS = 300_000
"""Unless there are more: the solver would take minutes and gigabytes."""
_SURCHARGE = 50.0
"""The cost of exceeding the source's limit, as a multiple of the most expensive view: more than any
feasible plan would save."""


def optimal_plan(problem: PlanningProblem, mip_seconds: float = 120.0) -> Plan:
    """The plan with the least utilisation, or a PlanError that names the least feasible limit."""
    if not problem.views:
        return Plan(problem, np.zeros(0, np.int64), 0.0)
    plan = master = None
    unit = float(problem.source_utilisation.mean()) / _MEAN_SOURCE_COST or 1.0
    if int((~problem.graph.is_rewritable).sum()) <= problem.source_capacity:
        scaled = replace(
            problem,
            utilisation=problem.utilisation / unit,
            source_utilisation=problem.source_utilisation / unit,
        )
        master = _Master(scaled, quick_plan(scaled, LAGRANGIAN_ROUNDS))
        master.solve_relaxation()
        plan = master.solve_integer(mip_seconds) if master.excess() < 1e-6 else None
    if plan is None:
        fewest = _fewest_from_source(problem)
        least = int(fewest.is_from_source.sum())
        if master is None or least > problem.source_capacity:
            raise _infeasible(problem, least)
        # At the limit itself, the columns that save utilisation may contain no feasible plan.
        plan = master.solve_integer(mip_seconds, fewest.chosen[~fewest.is_from_source])
        assert plan is not None
    assert master is not None
    if plan.gap() > _PROVEN_GAP:
        plan = master.solve_exactly(plan, mip_seconds)
    return Plan(problem, plan.chosen, plan.lower_bound * unit)


def smallest_source_capacity(problem: PlanningProblem) -> int:
    """The minimum number of views that the source must feed under the limits of the views."""
    return int(_fewest_from_source(problem).is_from_source.sum())


def _fewest_from_source(problem: PlanningProblem) -> Plan:
    """A plan in which the source feeds as few views as possible."""
    counting = replace(
        problem,
        utilisation=np.zeros(problem.graph.rewritings),
        source_utilisation=np.ones(problem.views),
        source_capacity=problem.views,
    )
    master = _Master(counting, quick_plan(counting, LAGRANGIAN_ROUNDS))
    master.solve_relaxation()
    plan = master.solve_integer(120.0)
    if plan is None:  # the columns left out were those of the source
        plan = master.solve_integer(120.0, np.zeros(0, np.int64))
    assert plan is not None  # the source can feed all views
    return plan


def _infeasible(problem: PlanningProblem, least: int) -> PlanError:
    error = PlanError(
        "No plan keeps within the capacity limits",
        detail=f"the source may feed {problem.source_capacity:,} views, and must feed {least:,}",
        hint=f"raise the source's limit to {least:,}, or let views feed more others",
    )
    error.facts["smallest_source_capacity"] = least
    return error


class _Master:
    """The linear program over the columns found so far.

    Rows: one equation per view, one limit per feeder that could be overloaded, the source's limit.
    Columns: the source for each view, the excess over the source's limit, then rewritings.
    """

    def __init__(self, problem: PlanningProblem, quick: QuickPlan) -> None:
        self.problem, self.arrays = problem, problem.arrays()
        self.highspy = load_highspy()
        self.rounds = 0
        graph = problem.graph
        self.targets = graph.targets()
        possible = np.bincount(graph.inputs, minlength=problem.views)
        limited = np.flatnonzero(possible > problem.capacity)
        self.limited = limited
        self.row_of = np.full(problem.views, -1, np.int64)
        self.row_of[limited] = problem.views + np.arange(len(limited))
        self.source_row = problem.views + len(limited)
        self.is_column = np.zeros(graph.rewritings, np.bool_)
        self.columns = np.zeros(0, np.int64)
        self.bound = quick.prices.lower_bound
        self.duals = np.zeros(self.source_row + 1)
        self.values = np.zeros(0)
        self.scale = float(problem.source_utilisation.mean()) or 1.0
        self.solver = self._solver()
        self._add_columns(self._first_columns(quick))

    def solve_relaxation(self) -> None:
        """Add columns until none improves the objective."""
        for number in range(MAX_ROUNDS):
            self.rounds = number + 1
            self._run()
            found, bound = self._price(NEW_COLUMNS, _REDUCED_COST * self.scale)
            self.bound = max(self.bound, bound)
            value = float(self.solver.getInfo().objective_function_value)
            if not len(found) or value - self.bound <= _RELAXATION_GAP * abs(value):
                return
            self._add_columns(found)
            if number == 0:
                # From the second round on the last basis is primal feasible: add columns, continue.
                self._set("simplex_strategy", 4)
                self._set("presolve", "off")

    def excess(self) -> float:
        """By how much the relaxation exceeds the source's limit."""
        return float(self.values[self.problem.views])

    def solve_integer(
        self, seconds: float, feasible: NDArray[np.int64] | None = None
    ) -> Plan | None:
        """The best plan over the columns; None if there is none within the limits.

        `feasible`: the rewritings of a feasible plan; with them, all columns may be used.
        """
        if feasible is None:
            out = (self._reduced_costs() > 0.002 * self.scale) & (self.values < 1e-9)
        else:
            self._add_columns(feasible[~self.is_column[feasible]])
            out = np.zeros(self.solver.getNumCol(), np.bool_)
        count = self.solver.getNumCol()
        out[self.problem.views] = True  # no excess
        everything = np.arange(count, dtype=np.int32)
        most = np.where(out, 0.0, self.highspy.kHighsInf)
        self._check(self.solver.changeColsBounds(count, everything, np.zeros(count), most))
        kinds = np.full(count, self.highspy.HighsVarType.kInteger.value, np.uint8)
        self._check(self.solver.changeColsIntegrality(count, everything, kinds))
        self._set("presolve", "on")
        self._set("simplex_strategy", 1)
        self._set("mip_rel_gap", _MIP_GAP)
        self._set("time_limit", float(self.solver.getRunTime()) + seconds)
        self._check(self.solver.run())
        values = np.array(self.solver.getSolution().col_value)
        if len(values) != count or not self._is_feasible():
            return None
        chosen = np.full(self.problem.views, SOURCE, np.int64)
        picked = self.columns[values[self.problem.views + 1 :] > 0.5]
        chosen[self.targets[picked]] = picked
        return Plan(self.problem, chosen, self.bound)

    def solve_exactly(self, plan: Plan, seconds: float) -> Plan:
        """The plan, proven optimal, or a better one.

        A rewriting that costs more than the view's cheapest by at least the gap between the plan
        and its lower bound cannot be in a better plan: only the others matter.
        """
        problem = self.problem
        prices, source_price = self._prices()
        costs = self._costs(np.arange(problem.graph.rewritings), prices)
        least = problem.source_utilisation + source_price
        np.minimum.at(least, self.targets, costs)
        paid = float((prices * problem.capacity).sum()) + source_price * problem.source_capacity
        slack = plan.utilisation() - (float(least.sum()) - paid)
        matter = np.flatnonzero(costs - least[self.targets] <= slack)
        if len(matter) > _MAX_EXACT_COLUMNS:
            return plan
        found = self.solve_integer(seconds, matter)
        best = min((plan, found or plan), key=Plan.utilisation)
        proven = min(float(self.solver.getInfo().mip_dual_bound), best.utilisation())
        return replace(best, lower_bound=max(self.bound, proven))

    def _is_feasible(self) -> bool:
        status = self.solver.getInfo().primal_solution_status
        return bool(status == 2)  # kSolutionStatusFeasible

    def _solver(self) -> Any:
        problem, inf = self.problem, self.highspy.kHighsInf
        self.solver = solver = self.highspy.Highs()
        self._set("output_flag", False)
        views, limited = problem.views, len(self.limited)
        low = np.concatenate([np.ones(views), np.full(limited + 1, -inf)])
        limits = problem.capacity[self.limited].astype(np.float64)
        high = np.concatenate([np.ones(views), limits, [float(problem.source_capacity)]])
        rows = len(low)
        none = np.zeros(0, np.int32)
        self._check(solver.addRows(rows, low, high, 0, np.zeros(rows, np.int32), none, np.zeros(0)))
        starts = (2 * np.arange(views)).astype(np.int32)
        entries = np.empty(2 * views, np.int32)
        entries[0::2], entries[1::2] = np.arange(views), self.source_row
        self._check(
            solver.addCols(
                views,
                problem.source_utilisation,
                np.zeros(views),
                np.full(views, inf),
                2 * views,
                starts,
                entries,
                np.ones(2 * views),
            )
        )
        surcharge = _SURCHARGE * float(problem.source_utilisation.max())
        row = np.array([self.source_row], np.int32)
        self._check(
            solver.addCols(
                1,
                np.array([surcharge]),
                np.zeros(1),
                np.array([inf]),
                1,
                np.zeros(1, np.int32),
                row,
                np.array([-1.0]),
            )
        )
        return solver

    def _first_columns(self, quick: QuickPlan) -> NDArray[np.int64]:
        prices = quick.prices
        worth = np.full(self.problem.views, np.inf)
        best, _ = self._priced(prices.views, prices.source, worth, 1, 0.0)
        worth[self.targets[best]] = self._costs(best, prices.views) + _FIRST_SLACK * self.scale
        found, _ = self._priced(prices.views, prices.source, worth, FIRST_COLUMNS, 0.0)
        if quick.plan is not None:
            chosen = quick.plan.chosen
            found = np.union1d(found, chosen[chosen != SOURCE])
        return found

    def _add_columns(self, rewritings: NDArray[np.int64]) -> None:
        graph, count = self.problem.graph, len(rewritings)
        if not count:
            return
        lengths = graph.input_starts[rewritings + 1] - graph.input_starts[rewritings]
        before = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        shift = np.repeat(graph.input_starts[rewritings] - before, lengths)
        rows = self.row_of[graph.inputs[np.arange(int(lengths.sum())) + shift]]
        owner = np.repeat(np.arange(count), lengths)
        is_row = rows >= 0
        all_rows = np.concatenate([self.targets[rewritings], rows[is_row]])
        all_owners = np.concatenate([np.arange(count), owner[is_row]])
        order = np.lexsort((all_rows, all_owners))
        starts = np.searchsorted(all_owners[order], np.arange(count)).astype(np.int32)
        self._check(
            self.solver.addCols(
                count,
                self.problem.utilisation[rewritings],
                np.zeros(count),
                np.full(count, self.highspy.kHighsInf),
                len(order),
                starts,
                all_rows[order].astype(np.int32),
                np.ones(len(order)),
            )
        )
        self.is_column[rewritings] = True
        self.columns = np.concatenate([self.columns, rewritings])

    def _run(self) -> None:
        self._check(self.solver.run())
        status = self.solver.getModelStatus()
        if status != self.highspy.HighsModelStatus.kOptimal:
            raise PlanError(f"HiGHS stopped: {self.solver.modelStatusToString(status)}")
        solution = self.solver.getSolution()
        self.duals, self.values = np.array(solution.row_dual), np.array(solution.col_value)

    def _prices(self) -> tuple[NDArray[np.float64], float]:
        prices = np.zeros(self.problem.views)
        prices[self.limited] = np.maximum(0, -self.duals[self.problem.views : self.source_row])
        return prices, max(0.0, -float(self.duals[self.source_row]))

    def _price(self, most: int, tolerance: float) -> tuple[NDArray[np.int64], float]:
        """Columns with negative reduced cost, and the lower bound that the dual prices prove."""
        prices, source_price = self._prices()
        worth = self.duals[: self.problem.views]
        found, total = self._priced(prices, source_price, worth, most, tolerance)
        paid = float((prices * self.problem.capacity).sum())
        return found, total - paid - source_price * self.problem.source_capacity

    def _priced(
        self,
        prices: NDArray[np.float64],
        source_price: float,
        worth: NDArray[np.float64],
        most: int,
        tolerance: float,
    ) -> tuple[NDArray[np.int64], float]:
        out = np.empty(most * self.problem.views, np.int64)
        count, total = price_columns(
            self.arrays, prices, source_price, worth, self.is_column, most, tolerance, out
        )
        return out[:count].copy(), float(total)

    def _reduced_costs(self) -> NDArray[np.float64]:
        """The reduced cost of each column: its cost minus the dual price of its view."""
        problem = self.problem
        prices, source_price = self._prices()
        worth = self.duals[: problem.views]
        own = problem.source_utilisation + source_price - worth
        if not len(self.columns):
            return np.concatenate([own, [np.inf]])
        costs = self._costs(self.columns, prices)
        return np.concatenate([own, [np.inf], costs - worth[self.targets[self.columns]]])

    def _costs(
        self, rewritings: NDArray[np.int64], prices: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The cost of rewritings plus the prices of their inputs."""
        graph = self.problem.graph
        paid = np.concatenate([[0.0], np.cumsum(prices[graph.inputs])])
        first, last = graph.input_starts[rewritings], graph.input_starts[rewritings + 1]
        costs: NDArray[np.float64] = self.problem.utilisation[rewritings] + paid[last] - paid[first]
        return costs

    def _set(self, option: str, value: object) -> None:
        self._check(self.solver.setOptionValue(option, value))

    def _check(self, status: Any) -> None:
        """HiGHS does not raise; it returns a status."""
        if status == self.highspy.HighsStatus.kError:
            raise PlanError("HiGHS refused a part of the program")
