"""Planning many views: Tables 2 and 3, Figures 5 and 6 of Karanasos et al. (2013).

Views are generated, embedded, rewritten and planned under several limits; figures are shown beside
the paper's. Time is CPU time of all threads; the paper's is of eight cores and a commercial solver.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import numpy as np
import typer

from penstock.lab.benchmarks._measuring import Result, peak_megabytes, progress, show
from penstock.lab.view_networks import (
    PlanRun,
    ViewNetwork,
    plan_network,
    view_statistics,
    warm_up,
)
from penstock.lab.workloads import xmark
from penstock.views.latency import Annealing
from penstock.views.planning_problem import UNLIMITED
from penstock.views.rewritings import published_limits, spreading_limits

EXAMPLES = """
  penstock lab run views-plans
  penstock lab run views-plans --views 100000 --json
"""
COLUMNS = (
    "item",
    "bound",
    "measure",
    "ours",
    "paper",
)
PAPER_TABLE_2 = {
    "views": 100_000,
    "nodes_per_view": 6.13,
    "returned_per_view": 2.52,
    "predicates_per_view": 0.72,
    "embedding_edges": 10_592_053,
    "edges_deleted": 18_665,
    "embedded_share": 0.9995,
    "embedding_cpu_s": 452,
    "rewritings": 2_692_139,
    "rewriting_edges": 8_589_822,
    "rewriting_cpu_s": 127,
    "rewritable": 94_835,
    "views_per_rewriting": 2.15,
    "mean_fan_out": 57.9,
}
PAPER_TABLE_3 = {
    "rewritten_share": {30: 0.943, 50: 0.947, 100: 0.947, 0: 0.947},
    "utilisation_of_unlimited": {30: 3.49 / 3.13, 50: 3.32 / 3.13, 100: 3.31 / 3.13, 0: 1.0},
    "views_per_chosen_rewriting": {30: 1.77, 50: 1.78, 100: 1.79, 0: 1.8},
}
PAPER_LATENCY_CHANGE = -0.43
PAPER_UTILISATION_CHANGE = 0.07
"""At most; 5 to 7 %."""


def views_plans(
    views: Annotated[int, typer.Option(help="Unique views.", min=100)] = 10_000,
    rewritings: Annotated[int, typer.Option(help="Rewritings per view, at most.", min=1)] = 30,
    bound: Annotated[
        list[int] | None, typer.Option(help="Views that a view may feed; 0: any number.", min=0)
    ] = None,
    published_ties: Annotated[
        bool, typer.Option("--published-ties", help="Break ties between views as published.")
    ] = False,
    annealing_steps: Annotated[int, typer.Option(help="Of annealing.", min=0)] = 5_000_000,
    seed: Annotated[int, typer.Option(help="Chooses views and sites.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Plan generated views under capacity limits, beside the paper's figures.

    The paper's are of 100,000 views; fewer views rewrite each other far less.
    """
    limits = (published_limits if published_ties else spreading_limits)(rewritings)
    with progress("compiling"):
        warm_up()
    with progress("generating views"):
        patterns = xmark.unique_views(views, seed)
    with progress("embedding and rewriting"):
        network = ViewNetwork.of(patterns, limits, seed=seed)
    results = table_2(network)
    runs = []
    for one in bound or [30, 50, 100, 0]:
        with progress(f"planning with a bound of {one or 'none'}"):
            annealing = Annealing(steps=annealing_steps, seed=seed)
            runs.append(plan_network(network, one or UNLIMITED, annealing=annealing))
    results += table_3(runs) + figures_5_and_6(network, runs)
    show(results, json, COLUMNS, peak_megabytes=peak_megabytes())


def table_2(network: ViewNetwork) -> list[Result]:
    """Views, embedding graph and rewritability graph."""
    graph, found, spent = network.graph, network.rewritable, network.watch.seconds
    lengths = np.diff(found.input_starts)
    loads = np.bincount(found.inputs, minlength=found.views)
    ours = {
        **view_statistics(network.patterns),
        "embedding_edges": graph.edges + network.deleted_edges,
        "edges_deleted": network.deleted_edges,
        "embedded_share": float((np.diff(graph.starts) > 0).mean()),
        "embedding_cpu_s": spent["embedding graph"] + spent["cycle removal"],
        "rewritings": found.rewritings,
        "rewriting_edges": len(found.inputs) + found.rewritings + found.views,
        "rewriting_cpu_s": spent["rewritability graph"],
        "rewritable": int(found.is_rewritable.sum()),
        "views_per_rewriting": float(lengths.mean()) if len(lengths) else 0.0,
        "mean_fan_out": float(loads.mean()),
    }
    return [_row("table 2", None, name, ours[name], paper) for name, paper in PAPER_TABLE_2.items()]


def table_3(runs: list[PlanRun]) -> list[Result]:
    """Utilisation-optimal plans by bound."""
    results = []
    unlimited = [run.optimal.utilisation() for run in runs if run.capacity >= UNLIMITED]
    for run in runs:
        plan, bound = run.optimal, _bound(run)
        lengths = np.diff(plan.problem.graph.input_starts)
        ours: dict[str, float | None] = {
            "rewritten_share": float((~plan.is_from_source).mean()),
            "utilisation_of_unlimited": (plan.utilisation() / unlimited[0] if unlimited else None),
            "views_per_chosen_rewriting": float(lengths[plan.chosen[~plan.is_from_source]].mean()),
        }
        for name, paper in PAPER_TABLE_3.items():
            results.append(_row("table 3", bound, name, ours[name], paper.get(bound)))
        results += [
            _row("table 3", bound, "gap", plan.gap(), None),
            _row("table 3", bound, "plan_cpu_s", run.watch.seconds["plan"], 240),
            _row("table 3", bound, "source_bound", run.source_capacity, 6_198),
            _row("table 3", bound, "source_bound_raised", int(run.is_raised), 0),
        ]
    return results


def figures_5_and_6(network: ViewNetwork, runs: list[PlanRun]) -> list[Result]:
    """Latency by time, and views by level, before and after latency optimisation."""
    results = []
    for run in runs:
        bound, before = _bound(run), run.optimal
        latency, used = float(before.latencies().sum()), before.utilisation()
        for name, found in (("loga", run.loga), ("annealed", run.annealed)):
            plan = found.plan
            change = float(plan.latencies().sum()) / latency - 1
            more = plan.utilisation() / used - 1
            levels = int(plan.levels().max()) / int(before.levels().max())
            results += [
                _row("figure 5", bound, f"{name}_latency_change", change, PAPER_LATENCY_CHANGE),
                _row("figure 5", bound, f"{name}_utilisation", more, PAPER_UTILISATION_CHANGE),
                _row("figure 6", bound, f"{name}_levels_ratio", levels, 2 / 3),
            ]
        spent = run.watch.seconds
        results.append(_row("figure 5", bound, "loga_cpu_s", spent["latency"], 200))
        results.append(_row("figure 5", bound, "annealed_cpu_s", spent["annealing"], None))
        everything = sum(network.watch.seconds.values()) + spent["plan"] + spent["annealing"]
        results.append(_row("all", bound, "total_cpu_s", everything, 780))
        results.append(
            {
                **_row("figure 6", bound, "levels", int(before.levels().max()), None),
                "history": [list(point) for point in run.annealed.history],
                "levels_optimal": _by_level(before.levels()),
                "levels_loga": _by_level(run.loga.plan.levels()),
                "levels_annealed": _by_level(run.annealed.plan.levels()),
            }
        )
    return results


def _by_level(levels: object) -> dict[str, int]:
    return {str(k): v for k, v in sorted(Counter(np.asarray(levels).tolist()).items())}


def _bound(run: PlanRun) -> int:
    return 0 if run.capacity >= UNLIMITED else run.capacity


def _row(item: str, bound: int | None, measure: str, ours: object, paper: object) -> Result:
    shown = None if bound is None else (bound or "none")
    return {"item": item, "bound": shown, "measure": measure, "ours": ours, "paper": paper}


if __name__ == "__main__":
    typer.run(views_plans)
