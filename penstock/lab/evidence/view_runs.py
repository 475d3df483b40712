"""View networks for the items of Karanasos et al. (2013): planned once per setting, and shared by
items. A row has a series (what is measured) and an x (mostly the bound)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice

import numpy as np

from penstock.documents.document import parse_document
from penstock.documents.evaluation import matches
from penstock.lab.benchmarks._measuring import peak_megabytes
from penstock.lab.evidence.model import Report, Row
from penstock.lab.evidence.summaries import interval_95, mean
from penstock.lab.experiments.views_deployment import delivery_times
from penstock.lab.experiments.views_plans import figures_5_and_6, table_2, table_3
from penstock.lab.view_deployment import VIEWS, Deployment, Network, measure_results, simulate
from penstock.lab.view_networks import PlanRun, ViewNetwork, plan_network, warm_up
from penstock.lab.workloads import xmark
from penstock.views.column_generation import optimal_plan, smallest_source_capacity
from penstock.views.ilp import published_plan
from penstock.views.lagrangian import quick_plan
from penstock.views.latency import Annealing
from penstock.views.planning_problem import UNLIMITED, Plan, PlanningProblem
from penstock.views.resource_model import Sites
from penstock.views.rewritings import published_limits, spreading_limits
from penstock.views.statistics import DocumentStatistics

NONE = "none"
"""The bound for views that may feed any number of others."""
PUBLISHED = xmark.ViewParameters()
OPTIMAL, LOGA, ANNEALED = "optimal", "LOGA", "LOGA and annealing"


@dataclass(frozen=True, slots=True)
class PlanSetting:
    """Unique views, planned under several bounds (0: none)."""

    views: int
    bounds: tuple[int, ...]
    seeds: int
    annealing_steps: int
    parameters: xmark.ViewParameters = PUBLISHED
    is_published: bool = False
    """Whether the paper's absolute numbers are for this setting."""


@dataclass(frozen=True, slots=True)
class DeploymentSetting:
    """Views as they are drawn, deployed and fed with documents."""

    views: int
    documents: int
    source_bound: int
    bounds: tuple[int, ...]
    seeds: int
    parameters: xmark.ViewParameters = VIEWS


_KNOWN: dict[PlanSetting | DeploymentSetting, dict[str, list[Row]]] = {}


def measured_rows(setting: PlanSetting | DeploymentSetting, item: str, report: Report) -> list[Row]:
    """Rows of one item, with mean and interval over seeds; measured on first use."""
    if setting not in _KNOWN:
        prepare_kernels()
        by_seed = []
        for seed in range(1, setting.seeds + 1):
            report(f"{setting.views:,} views, seed {seed} of {setting.seeds}")
            if isinstance(setting, PlanSetting):
                by_seed.append(list(_plan_rows(setting, seed, report)))
            else:
                by_seed.append(list(_deployment_rows(setting, seed, report)))
        found: dict[str, list[Row]] = {}
        for row in combine_seeds(by_seed):
            found.setdefault(str(row.pop("item")), []).append(row)
        _KNOWN[setting] = found
    return _KNOWN[setting].get(item, [])


@cache
def prepare_kernels() -> None:
    """Compile or load kernels, so that this is not timed."""
    warm_up()


KEY = ("item", "series", "x")


def combine_seeds(by_seed: Sequence[Sequence[Row]]) -> list[Row]:
    """Merges rows of the same meaning, with the mean of their values and its interval."""
    values: dict[tuple[object, ...], list[float]] = {}
    rows: dict[tuple[object, ...], Row] = {}
    for row in (row for seed in by_seed for row in seed):
        key = tuple(row[name] for name in KEY)
        rows.setdefault(key, row)
        if row["ours"] is not None:
            values.setdefault(key, []).append(float(str(row["ours"])))
    for key, row in rows.items():
        if row.get("is_count"):  # a seed without it counts as 0
            values[key] += [0.0] * (len(by_seed) - len(values[key]))
    return [
        {
            **{name: row[name] for name in KEY},
            "ours": mean(values[key]) if key in values else None,
            "interval_95": interval_95(values.get(key, ())),
            "paper": row.get("paper"),
        }
        for key, row in rows.items()
    ]


def _row(item: str, series: str, x: object, ours: object, paper: object = None) -> Row:
    return {"item": item, "series": series, "x": x, "ours": ours, "paper": paper}


RATIOS = frozenset(
    f"{plan}_{measure}"
    for plan in ("loga", "annealed")
    for measure in ("latency_change", "utilisation", "levels_ratio")
)
"""Published ratios, which smaller sets are compared with as well."""
ITEMS = {"figure 5": "section 5.4", "all": "resources"}
"""The items of rows by bound, apart from the curves and levels."""


def _plan_rows(setting: PlanSetting, seed: int, report: Report) -> Iterator[Row]:
    patterns = xmark.unique_views(setting.views, seed, setting.parameters)
    network = ViewNetwork.of(patterns, seed=seed)
    runs = []
    for bound in setting.bounds:
        report(f"{setting.views:,} views, bound {bound or NONE}, seed {seed} of {setting.seeds}")
        annealing = Annealing(steps=setting.annealing_steps, seed=seed)
        runs.append(plan_network(network, bound or UNLIMITED, annealing=annealing))
    for row in table_2(network) + table_3(runs) + figures_5_and_6(network, runs):
        name, item = str(row["measure"]), str(row["item"])
        is_comparable = setting.is_published or name in RATIOS
        item = "section 5.4" if name in RATIOS else ITEMS.get(item, item)
        if item != "figure 6":
            paper = row["paper"] if is_comparable else None
            yield _row(item, name, row["bound"] or "all bounds", row["ours"], paper)
    for run in runs:
        plans = ((OPTIMAL, run.optimal), (LOGA, run.loga.plan), (ANNEALED, run.annealed.plan))
        for name, plan in plans:
            yield from _level_rows("figure 6", name, _bound(run), plan)
        if seed == 1:
            yield from _curve(run)
    yield _row("resources", "peak_megabytes", "all bounds", peak_megabytes())


def _bound(run: PlanRun) -> object:
    return NONE if run.capacity >= UNLIMITED else run.capacity


def _level_rows(item: str, name: str, bound: object, plan: Plan) -> Iterator[Row]:
    """How many views are on each level."""
    for level, views in sorted(Counter(plan.levels().tolist()).items()):
        row = _row(item, f"{name}, bound {bound}", level, views)
        yield {**row, "is_count": True}


def _curve(run: PlanRun) -> Iterator[Row]:
    """Latency by CPU seconds of LOGA, as a share of the optimal plan's; of one seed."""
    first = run.loga.history[0][1]
    for seconds, latency in run.loga.history:
        yield _row("figure 5", f"bound {_bound(run)}", round(seconds, 3), latency / first)


def _deployment_rows(setting: DeploymentSetting, seed: int, report: Report) -> Iterator[Row]:
    deployment = Deployment.of(setting.views, setting.documents, seed, setting.parameters)
    report(f"evaluating {len(deployment.unique):,} views over {setting.documents} documents")
    measured = measure_results(deployment)
    networks = {
        navigation: ViewNetwork.of(
            deployment.views,
            navigation=navigation,
            model=Network().model(measured.seconds_per_row),
            documents=deployment.documents,
            seed=seed,
        )
        for navigation in (True, False)
    }
    for name, value in _deployment_facts(deployment, networks).items():
        yield _row("source bound", name, "all bounds", value, PAPER_FACTS.get(name))
    sites = Sites.at_random(setting.views, seed)
    for bound in setting.bounds:
        report(f"deployment, bound {bound or NONE}, seed {seed} of {setting.seeds}")
        run = plan_network(
            networks[True],
            bound or UNLIMITED,
            source_capacity=setting.source_bound,
            annealing=Annealing(steps=0),
        )
        yield _row("source bound", "source_bound", _bound(run), run.source_capacity, 72)
        for name, plan in ((OPTIMAL, run.optimal), (LOGA, run.loga.plan)):
            yield from _level_rows("figure 7", name, _bound(run), plan)
            times = delivery_times(simulate(plan, measured, sites, Network()))
            for measure, value in times.items():
                item = "figure 9" if measure.startswith("delivery") else "figure 8"
                paper = PAPER_SECONDS.get((measure, name, bound))
                yield _row(item, f"{name}, {measure}", str(_bound(run)), value, paper)


PAPER_FACTS = {"views": 10_000, "unique_views": 3_000}
PAPER_SECONDS = {
    ("fastest_s", OPTIMAL, 5): 0.03,
    ("slowest_s", OPTIMAL, 5): 3.7,
    ("slowest_s", OPTIMAL, 0): 4.7,
    ("delivery_slowest_s", OPTIMAL, 5): 3.7,
    ("delivery_slowest_s", OPTIMAL, 0): 4.7,
}


def _deployment_facts(
    deployment: Deployment, networks: Mapping[bool, ViewNetwork]
) -> dict[str, float]:
    bare = {
        navigation: int((~network.rewritable.is_rewritable).sum())
        for navigation, network in networks.items()
    }
    return {
        "views": len(deployment.views),
        "unique_views": len(deployment.unique),
        "match_share": deployment.match_share,
        "unrewritable": bare[True],
        "unrewritable_without_navigation": bare[False],
    }


def solver_rows(problems: Sequence[PlanningProblem]) -> list[Row]:
    """The published program, column generation and the quick plan on the same small instances."""
    rows: list[Row] = []
    for number, problem in enumerate(problems, start=1):
        published, found, quick = (
            published_plan(problem),
            optimal_plan(problem),
            quick_plan(problem),
        )
        assert published is not None
        values = {
            "published program": published.utilisation(),
            "column generation": found.utilisation(),
            "its lower bound": found.lower_bound,
            "quick plan": None if quick.plan is None else quick.plan.utilisation(),
        }
        rows += [_row("", name, number, value) for name, value in values.items()]
    return [{name: row[name] for name in ("series", "x", "ours")} for row in rows]


def small_problems(count: int, views: int) -> list[PlanningProblem]:
    """Instances that the published program solves, each under a binding bound."""
    problems = []
    for seed in range(1, count + 1):
        parameters = xmark.ViewParameters(within=("people",))
        network = ViewNetwork.of(xmark.unique_views(views, seed, parameters), seed=seed)
        bare = int((~network.rewritable.is_rewritable).sum())
        problems.append(network.problem.with_capacity(3, bare + (views - bare) // 2))
    return problems


TIE_BOUND = 10
PUBLISHED_TIES, SPREADING = TIES = ("as published", "spreading")


def tie_rows(views: int, seeds: int) -> list[Row]:
    """The results of the two ways to break ties between views, under one bound; of views as drawn,
    since equal ones tie."""
    by_seed: list[list[Row]] = []
    for seed in range(1, seeds + 1):
        patterns = list(islice(xmark.drawn_views(seed, VIEWS), views))
        rows: list[Row] = []
        for name, limits in zip(TIES, (published_limits(), spreading_limits()), strict=True):
            network = ViewNetwork.of(patterns, limits, navigation=True, seed=seed)
            problem = network.problem.with_capacity(TIE_BOUND, views)
            used = len(np.unique(network.rewritable.inputs))
            rows.append(_row("", name, "views that feed", used))
            rows.append(_row("", name, "views at the source", smallest_source_capacity(problem)))
        by_seed.append(rows)
    return combine_seeds(by_seed)


def estimate_rows(views: int, documents: int, seeds: int) -> list[Row]:
    """Estimated rows per document, from statistics of a sample, divided by the actual ones of other
    documents: quantiles over views with at least one row per document."""
    by_seed: list[list[Row]] = []
    for seed in range(1, seeds + 1):
        texts = xmark.documents(2 * documents, seed)
        parsed = [parse_document(text) for text in texts]
        statistics = DocumentStatistics.of(parsed[:documents])
        ratios = []
        for view in xmark.unique_views(views, seed):
            actual = mean(len(matches(view, one)) for one in parsed[documents:])
            if actual >= 1:
                ratios.append(statistics.volume(view).rows / actual)
        points = np.quantile(ratios, (0.1, 0.5, 0.9)).tolist()
        names = ("first decile", "median", "last decile")
        by_seed.append([_row("", name, "", at) for name, at in zip(names, points, strict=True)])
    return combine_seeds(by_seed)
