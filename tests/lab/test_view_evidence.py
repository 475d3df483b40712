"""The claims of Karanasos et al. (2013) hold at the small size, and mutants make them fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from penstock.lab import view_networks
from penstock.lab.evidence import view_runs
from penstock.lab.evidence.model import Claim, Row, Size
from penstock.lab.evidence.papers import _karanasos2013_claims as claims
from penstock.lab.evidence.papers.karanasos2013 import DENSE
from penstock.lab.evidence.registry import find_paper
from penstock.lab.evidence.running import run_item
from penstock.lab.evidence.view_runs import (
    DeploymentSetting,
    PlanSetting,
    combine_seeds,
    estimate_rows,
    measured_rows,
    small_problems,
    solver_rows,
    tie_rows,
)
from penstock.lab.view_deployment import Network, simulate
from penstock.views.column_generation import optimal_plan
from penstock.views.embedding_graph import EmbeddingGraph, tree_embedding_graph
from penstock.views.language import Volume
from penstock.views.latency import (
    Annealing,
    LatencyResult,
    anneal_latency,
    optimise_latency,
)
from penstock.views.packed_patterns import PackedPatterns
from penstock.views.planning_problem import SOURCE, UNLIMITED, Plan, PlanningProblem
from penstock.views.rewritings import published_limits
from penstock.views.statistics import DocumentStatistics

PLANS = PlanSetting(1_500, (10, 20, 0), 1, 0, DENSE)
FAST_PLANS = replace(PLANS, bounds=(10, 20), annealing_steps=200_000)
DEPLOYMENT = DeploymentSetting(1_000, 5, 72, (5, 10, 0), 1)


def quiet(_: str) -> None: ...


# In one process, which measures each setting once without a mutant.
pytestmark = pytest.mark.xdist_group("views as published")


@pytest.mark.slow
def test_no_claim_of_karanasos2013_fails() -> None:
    verdicts = [
        judgement
        for item in find_paper("karanasos2013").items
        for _, judgement in run_item(item, Size.SMALL, quiet).judgements
    ]
    assert not [one.text for one in verdicts if one.verdict == "fails"]
    assert sum(one.verdict == "holds" for one in verdicts) >= 18


Measure = Callable[[], Sequence[Row]]


def plans(item: str) -> Measure:
    return lambda: measured_rows(PLANS, item, quiet)


def fast_plans(item: str) -> Measure:
    return lambda: measured_rows(FAST_PLANS, item, quiet)


def deployed(item: str) -> Measure:
    return lambda: measured_rows(DEPLOYMENT, item, quiet)


def solved() -> Sequence[Row]:
    return solver_rows(small_problems(2, 300))


def estimated() -> Sequence[Row]:
    return estimate_rows(200, 8, 1)


def _loga_does_nothing(patch: pytest.MonkeyPatch) -> None:
    """Mutant: plans keep their latency."""

    def keep(plan: Plan) -> LatencyResult:
        before = float(plan.latencies().sum())
        return LatencyResult(plan, [(0.0, before), (0.1, before)])

    patch.setattr(view_networks, "optimise_latency", keep)


def _loga_stops_early(patch: pytest.MonkeyPatch) -> None:
    """Mutant: LOGA gives up while it still gains."""

    def hasty(plan: Plan) -> LatencyResult:
        found = optimise_latency(plan)
        return LatencyResult(found.plan, found.history[:2])

    patch.setattr(view_networks, "optimise_latency", hasty)


def _bounds_are_ignored(patch: pytest.MonkeyPatch) -> None:
    """Mutant: views feed as many others as suits them."""

    def greedy(problem: PlanningProblem) -> Plan:
        return optimal_plan(problem.with_capacity(UNLIMITED))

    patch.setattr(view_networks, "optimal_plan", greedy)


def _source_feeds_all(patch: pytest.MonkeyPatch) -> None:
    """Mutant: nothing is rewritten but one view."""

    def lazy(problem: PlanningProblem) -> Plan:
        chosen = optimal_plan(problem).chosen.copy()
        chosen[np.flatnonzero(chosen != SOURCE)[1:]] = SOURCE
        return Plan(problem, chosen, 1.0)

    patch.setattr(view_networks, "optimal_plan", lazy)


def _costs_are_blurred(patch: pytest.MonkeyPatch) -> None:
    """Mutant: the plan is the best for costs that are half wrong."""

    def blurred(problem: PlanningProblem) -> Plan:
        noise = np.random.default_rng(1).uniform(0.5, 1.5, problem.graph.rewritings)
        found = optimal_plan(replace(problem, utilisation=problem.utilisation * noise))
        return Plan(problem, found.chosen, optimal_plan(problem).lower_bound)

    patch.setattr(view_networks, "optimal_plan", blurred)
    patch.setattr(view_runs, "optimal_plan", blurred)


def _annealing_is_reckless(patch: pytest.MonkeyPatch) -> None:
    """Mutant: utilisation does not count."""

    def reckless(plan: Plan, given: Annealing) -> LatencyResult:
        return anneal_latency(plan, replace(given, utilisation_weight=0.0))

    patch.setattr(view_networks, "anneal_latency", reckless)


def _annealing_is_miserly(patch: pytest.MonkeyPatch) -> None:
    """Mutant: latency hardly counts."""

    def miserly(plan: Plan, given: Annealing) -> LatencyResult:
        return anneal_latency(plan, replace(given, utilisation_weight=1e6))

    patch.setattr(view_networks, "anneal_latency", miserly)


def _contents_are_opaque(patch: pytest.MonkeyPatch) -> None:
    """Mutant: a content tells nothing of what is below it."""

    def opaque(packed: PackedPatterns, *, navigation: bool) -> EmbeddingGraph:
        return tree_embedding_graph(packed, navigation=False)

    patch.setattr(view_networks, "tree_embedding_graph", opaque)


def _sending_is_free(patch: pytest.MonkeyPatch) -> None:
    """Mutant: nobody is overloaded."""
    free = Network(1e18, 0.0)
    patch.setattr(
        view_runs,
        "simulate",
        lambda plan, measured, sites, _: simulate(plan, measured, sites, free),
    )


def _the_clock_stands(patch: pytest.MonkeyPatch) -> None:
    """Mutant: everybody has everything at once."""
    patch.setattr(view_runs, "simulate", lambda _, measured, *__: np.ones_like(measured.rows))


def _statistics_are_invented(patch: pytest.MonkeyPatch) -> None:
    """Mutant: every view has ten rows."""
    patch.setattr(DocumentStatistics, "volume", lambda *_: Volume(10.0, 500.0))


def _nothing_is_shuffled(patch: pytest.MonkeyPatch) -> None:
    """Mutant: spreading breaks ties as published."""
    patch.setattr(view_runs, "spreading_limits", published_limits)


def tied() -> Sequence[Row]:
    return tie_rows(1_000, 3)


MUTANTS = [
    pytest.param(_nothing_is_shuffled, claims.SPREADING_RELIEVES, tied, id="ties"),
    pytest.param(_source_feeds_all, claims.OFFLOADS, plans("table 3"), id="off-loading"),
    pytest.param(_bounds_are_ignored, claims.TIGHTER_COSTS_MORE, plans("table 3"), id="cost"),
    pytest.param(_bounds_are_ignored, claims.FEWER_VIEWS, plans("table 3"), id="views"),
    pytest.param(_costs_are_blurred, claims.GAP, plans("table 3"), id="gap"),
    pytest.param(_costs_are_blurred, claims.SOLVERS_AGREE, solved, id="solvers"),
    pytest.param(_loga_does_nothing, claims.LOGA_SAVES, fast_plans("section 5.4"), id="LOGA"),
    pytest.param(_loga_stops_early, claims.STABILISES, fast_plans("figure 5"), id="stable"),
    pytest.param(
        _annealing_is_miserly, claims.ANNEALED_SAVES, fast_plans("section 5.4"), id="annealed"
    ),
    pytest.param(
        _annealing_is_reckless, claims.ANNEALED_IS_CHEAP, fast_plans("section 5.4"), id="cheap"
    ),
    pytest.param(_loga_does_nothing, claims.FEWER_LEVELS, fast_plans("figure 6"), id="levels"),
    pytest.param(_loga_does_nothing, claims.MOST_ARE_NEAR, fast_plans("figure 6"), id="near"),
    pytest.param(
        _contents_are_opaque, claims.SOURCE_KEEPS_BOUND, deployed("source bound"), id="source"
    ),
    pytest.param(_loga_does_nothing, claims.HALF_THE_LEVELS, deployed("figure 7"), id="half"),
    pytest.param(_loga_does_nothing, claims.LOGA_HELPS_AT_FIVE, deployed("figure 8"), id="five"),
    pytest.param(_sending_is_free, claims.OVERLOADED, deployed("figure 8"), id="overload"),
    pytest.param(_the_clock_stands, claims.NEAR_AND_FAR, deployed("figure 8"), id="near and far"),
    pytest.param(_statistics_are_invented, claims.ESTIMATES_ARE_NEAR, estimated, id="statistics"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("mutant", "claim", "measure"), MUTANTS)
def test_mutants_make_claims_fail(
    mutant: Callable[[pytest.MonkeyPatch], None],
    claim: Claim,
    measure: Measure,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    holds, text = claim.check(measure())
    assert holds, text
    monkeypatch.setattr(view_runs, "_KNOWN", {})
    mutant(monkeypatch)
    holds, text = claim.check(measure())
    assert not holds, text


def rows_of(**series: dict[object, float]) -> list[Row]:
    return [
        {"series": name.replace("__", ", "), "x": x, "ours": ours, "paper": None}
        for name, values in series.items()
        for x, ours in values.items()
    ]


def compared(series: str, ours: float, paper: float) -> list[Row]:
    return [{"series": series, "x": "all bounds", "ours": ours, "paper": paper}]


TABLE_2 = [
    ("nodes_per_view", 6.15, 6.13, 7.0),
    ("embedded_share", 0.9995, 0.9995, 0.98),
    ("rewritable", 95_600, 94_835, 90_000),
    ("rewritings", 2.66e6, 2.69e6, 2.0e6),
    ("embedding_edges", 10.9e6, 10.6e6, 14.1e6),
    ("views_per_rewriting", 2.2, 2.15, 2.63),
    ("embedding_cpu_s", 20.0, 452.0, 500.0),
    ("rewriting_cpu_s", 3.0, 127.0, 130.0),
]


@pytest.mark.parametrize(
    ("claim", "good", "bad"),
    [
        *(
            (claim, compared(name, good, paper), compared(name, bad, paper))
            for claim, (name, good, paper, bad) in zip(claims.TABLE_2, TABLE_2, strict=True)
        ),
        (
            claims.TABLE_3[1],
            compared("rewritten_share", 0.94, 0.943),
            compared("rewritten_share", 0.9, 0.943),
        ),
        (
            claims.TABLE_3[4],
            compared("views_per_chosen_rewriting", 1.9, 1.78),
            compared("views_per_chosen_rewriting", 2.2, 1.78),
        ),
        (
            claims.TABLE_3[5],
            rows_of(plan_cpu_s={30: 45.0, "none": 18.0}),
            rows_of(plan_cpu_s={30: 18.0, "none": 45.0}),
        ),
        (
            claims.SECTION_5_4[1],
            rows_of(loga_utilisation={30: 0.06}),
            rows_of(loga_utilisation={30: 0.2}),
        ),
        (
            claims.FIGURE_5[1],
            rows_of(bound_30={0.0: 1.0, 150.0: 0.5}),
            rows_of(bound_30={0.0: 1.0, 250.0: 0.5}),
        ),
        (
            claims.SOURCE_BOUND[1],
            rows_of(unrewritable_without_navigation={"all bounds": 60}),
            rows_of(unrewritable_without_navigation={"all bounds": 180}),
        ),
        (
            claims.FIGURE_8[1],
            rows_of(optimal__mean_latency_s={"5": 1.0}, LOGA__mean_latency_s={"5": 0.9}),
            rows_of(optimal__mean_latency_s={"5": 1.0}, LOGA__mean_latency_s={"5": 1.1}),
        ),
        (
            claims.FIGURE_8[3],
            rows_of(optimal__slowest_s={"5": 3.7, "30": 2.0, "none": 4.7}),
            rows_of(optimal__slowest_s={"5": 3.7, "30": 2.0, "none": 1.9}),
        ),
        (
            claims.FIGURE_8[5],
            rows_of(optimal__mean_latency_s={"5": 1.6}),
            rows_of(optimal__mean_latency_s={"5": 0.3}),
        ),
        (
            claims.FIGURE_9[0],
            rows_of(optimal__delivery_s={"5": 2.4}),
            rows_of(optimal__delivery_s={"5": 6.0}),
        ),
        (
            claims.FIGURE_9[1],
            rows_of(optimal__delivery_s={"5": 2.4, "30": 2.0, "none": 2.5}),
            rows_of(optimal__delivery_s={"5": 2.4, "30": 2.0, "none": 1.9}),
        ),
        (
            claims.TABLE_1[1],
            [
                {"series": "published program", "x": 1, "ours": 5.0},
                {"series": "its lower bound", "x": 1, "ours": 4.9},
            ],
            [
                {"series": "published program", "x": 1, "ours": 5.0},
                {"series": "its lower bound", "x": 1, "ours": 5.1},
            ],
        ),
        (
            claims.RESOURCES[0],
            rows_of(total_cpu_s={30: 700.0}),
            rows_of(total_cpu_s={30: 800.0}),
        ),
        (
            claims.RESOURCES[1],
            rows_of(total_cpu_s={30: 76.0}),
            rows_of(total_cpu_s={30: 130.0}),
        ),
        (
            claims.RESOURCES[2],
            rows_of(peak_megabytes={30: 1_500}),
            rows_of(peak_megabytes={30: 7_000}),
        ),
    ],
)
def test_claims_can_turn_out_wrong(claim: Claim, good: list[Row], bad: list[Row]) -> None:
    assert claim.check(good)[0]
    assert not claim.check(bad)[0]


def test_seeds_are_combined() -> None:
    one = {"item": "table 2", "series": "edges", "x": 5, "ours": 1.0, "paper": 7}
    (row,) = combine_seeds([[one], [{**one, "ours": 3.0}]])
    assert (row["ours"], row["paper"]) == (2.0, 7)
    assert row["interval_95"] == pytest.approx(12.71)
    (counted,) = combine_seeds([[{**one, "ours": 4.0, "is_count": True}], []])
    assert counted["ours"] == 2.0
    (missing,) = combine_seeds([[{**one, "ours": None}]])
    assert missing["ours"] is None
