"""Kernels over plans: loads, latencies, prices, repair."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.compiled import njit

UNPLACED = -2
"""In a plan under repair: no choice has capacity for this view."""


class ProblemArrays(NamedTuple):
    """The arrays of a planning problem."""

    starts: NDArray[np.int64]
    input_starts: NDArray[np.int64]
    inputs: NDArray[np.int32]
    cost: NDArray[np.float64]
    source_cost: NDArray[np.float64]
    capacity: NDArray[np.int64]


@njit
def count_loads(input_starts: Any, inputs: Any, chosen: Any, loads: Any) -> None:
    for view in range(len(chosen)):
        if chosen[view] >= 0:
            for at in range(input_starts[chosen[view]], input_starts[chosen[view] + 1]):
                loads[inputs[at]] += 1


@njit
def topological_order(starts: Any, input_starts: Any, inputs: Any) -> Any:
    """Views in topological order; fewer than all if there is a cycle."""
    views = len(starts) - 1
    waiting = np.zeros(views, np.int64)
    first = np.zeros(views + 1, np.int64)
    for view in range(views):
        for at in range(input_starts[starts[view]], input_starts[starts[view + 1]]):
            first[inputs[at] + 1] += 1
            waiting[view] += 1
    for view in range(views):
        first[view + 1] += first[view]
    fed = np.empty(first[views], np.int32)
    place = first[:-1].copy()
    for view in range(views):
        for at in range(input_starts[starts[view]], input_starts[starts[view + 1]]):
            fed[place[inputs[at]]] = view
            place[inputs[at]] += 1
    order = np.empty(views, np.int64)
    count = 0
    for view in range(views):
        if waiting[view] == 0:
            order[count] = view
            count += 1
    done = 0
    while done < count:
        for at in range(first[order[done]], first[order[done] + 1]):
            waiting[fed[at]] -= 1
            if waiting[fed[at]] == 0:
                order[count] = fed[at]
                count += 1
        done += 1
    return order[:count].copy()


@njit
def find_latencies(
    order: Any, chosen: Any, input_starts: Any, inputs: Any, latency: Any, source_latency: Any
) -> Any:
    found = np.zeros(len(chosen))
    for view in order:
        rewriting = chosen[view]
        if rewriting < 0:
            found[view] = source_latency[view]
            continue
        slowest = 0.0
        for at in range(input_starts[rewriting], input_starts[rewriting + 1]):
            slowest = max(slowest, found[inputs[at]])
        found[view] = slowest + latency[rewriting]
    return found


@njit
def find_levels(order: Any, chosen: Any, input_starts: Any, inputs: Any) -> Any:
    found = np.ones(len(chosen), np.int64)
    for view in order:
        if chosen[view] >= 0:
            for at in range(input_starts[chosen[view]], input_starts[chosen[view] + 1]):
                found[view] = max(found[view], 1 + found[inputs[at]])
    return found


@njit
def choose_by_prices(problem: Any, prices: Any, source_price: Any, chosen: Any, loads: Any) -> Any:
    """The cheapest choice of every view at these prices; returns the sum, and the source's load."""
    total = 0.0
    from_source = 0
    loads[:] = 0
    for view in range(len(chosen)):
        best = problem.source_cost[view] + source_price
        choice = -1
        for rewriting in range(problem.starts[view], problem.starts[view + 1]):
            cost = problem.cost[rewriting]
            if cost >= best:
                continue  # prices are not negative
            for at in range(problem.input_starts[rewriting], problem.input_starts[rewriting + 1]):
                cost += prices[problem.inputs[at]]
            if cost < best:
                best, choice = cost, rewriting
        chosen[view] = choice
        total += best
        if choice < 0:
            from_source += 1
        else:
            for at in range(problem.input_starts[choice], problem.input_starts[choice + 1]):
                loads[problem.inputs[at]] += 1
    return total, from_source


@njit
def _cheapest_free(
    problem: Any, view: Any, prices: Any, source_price: Any, loads: Any, source_free: Any
) -> Any:
    """The cheapest choice that overloads no feeder, or UNPLACED."""
    best = np.inf
    choice = -2
    if source_free:
        best, choice = problem.source_cost[view] + source_price, -1
    for rewriting in range(problem.starts[view], problem.starts[view + 1]):
        cost = problem.cost[rewriting]
        if cost >= best:
            continue
        is_free = True
        for at in range(problem.input_starts[rewriting], problem.input_starts[rewriting + 1]):
            feeder = problem.inputs[at]
            cost += prices[feeder]
            if loads[feeder] >= problem.capacity[feeder]:
                is_free = False
                break
        if is_free and cost < best:
            best, choice = cost, rewriting
    return choice


@njit
def _add_load(problem: Any, rewriting: Any, loads: Any, change: Any) -> None:
    for at in range(problem.input_starts[rewriting], problem.input_starts[rewriting + 1]):
        loads[problem.inputs[at]] += change


@njit
def repair_plan(
    problem: Any,
    prices: Any,
    source_price: Any,
    source_capacity: Any,
    order: Any,
    chosen: Any,
    loads: Any,
) -> Any:
    """Keep choices while limits allow, and give the other views the cheapest free choice.

    Views that only the source can feed come first. Returns the source's load and the number of
    unplaced views.
    """
    loads[:] = 0
    from_source = unplaced = 0
    for view in range(len(chosen)):
        if problem.starts[view] == problem.starts[view + 1]:
            chosen[view] = -1
            from_source += 1
    for view in order:
        if problem.starts[view] == problem.starts[view + 1]:
            continue
        choice = chosen[view]
        is_free = choice >= 0 or from_source < source_capacity
        if choice >= 0:
            for at in range(problem.input_starts[choice], problem.input_starts[choice + 1]):
                if loads[problem.inputs[at]] >= problem.capacity[problem.inputs[at]]:
                    is_free = False
                    break
        if not is_free:
            choice = _cheapest_free(
                problem, view, prices, source_price, loads, from_source < source_capacity
            )
        chosen[view] = choice
        if choice == -2:
            unplaced += 1
        elif choice == -1:
            from_source += 1
        else:
            _add_load(problem, choice, loads, 1)
    return from_source, unplaced


@njit
def improve_plan(
    problem: Any, source_capacity: Any, from_source: Any, order: Any, chosen: Any, loads: Any
) -> Any:
    """Move each view to its cheapest free choice; returns moves, and the source's load."""
    moves = 0
    free_of_charge = np.zeros(len(chosen))
    for view in order:
        choice = chosen[view]
        if choice == -2 or problem.starts[view] == problem.starts[view + 1]:
            continue
        if choice >= 0:
            _add_load(problem, choice, loads, -1)
            cost = problem.cost[choice]
        else:
            from_source -= 1
            cost = problem.source_cost[view]
        better = _cheapest_free(
            problem, view, free_of_charge, 0.0, loads, from_source < source_capacity
        )
        if better != choice and better != -2:
            new = problem.source_cost[view] if better < 0 else problem.cost[better]
            if new < cost:
                choice = better
                moves += 1
        chosen[view] = choice
        if choice >= 0:
            _add_load(problem, choice, loads, 1)
        else:
            from_source += 1
    return moves, from_source


@njit
def price_columns(
    problem: Any,
    prices: Any,
    source_price: Any,
    worth: Any,
    is_column: Any,
    most_per_view: Any,
    tolerance: Any,
    out: Any,
) -> Any:
    """Rewritings that are not columns yet and have a negative reduced cost.

    At most `most_per_view` of each view, the cheapest; returns how many were written to `out`, and
    the sum over all views of their cheapest choice, which gives a lower bound.
    """
    count = 0
    total = 0.0
    costs = np.empty(most_per_view)
    numbers = np.empty(most_per_view, np.int64)
    for view in range(len(worth)):
        best = problem.source_cost[view] + source_price
        held = 0
        for rewriting in range(problem.starts[view], problem.starts[view + 1]):
            cost = problem.cost[rewriting]
            for at in range(problem.input_starts[rewriting], problem.input_starts[rewriting + 1]):
                cost += prices[problem.inputs[at]]
            best = min(best, cost)
            if is_column[rewriting] or cost >= worth[view] - tolerance:
                continue
            if held == most_per_view:
                if cost >= costs[held - 1]:
                    continue
                held -= 1
            place = held
            while place > 0 and costs[place - 1] > cost:
                costs[place], numbers[place] = costs[place - 1], numbers[place - 1]
                place -= 1
            costs[place], numbers[place] = cost, rewriting
            held += 1
        total += best
        for place in range(held):
            out[count] = numbers[place]
            count += 1
    return count, total
