"""Plans: three solvers agree, limits are kept, and infeasible limits are named."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog import IntegerType
from penstock.catalog.relations import Column, Relation
from penstock.documents.document import parse_document
from penstock.documents.patterns import TreePattern
from penstock.errors import PlanError
from penstock.lab.workloads import xmark
from penstock.predicates import boxes
from penstock.predicates.intervals import Interval, above, below
from penstock.views.box_language import BoxLanguage, BoxView, join_views, select_events
from penstock.views.column_generation import optimal_plan, smallest_source_capacity
from penstock.views.embedding_graph import embedding_graph, remove_cycles, tree_embedding_graph
from penstock.views.ilp import published_plan
from penstock.views.lagrangian import quick_plan
from penstock.views.language import Volume
from penstock.views.latency import (
    Annealing,
    anneal_latency,
    optimise_latency,
    relaxed_capacity,
)
from penstock.views.packed_patterns import pack_patterns
from penstock.views.planning_problem import SOURCE, UNLIMITED, Plan, PlanningProblem
from penstock.views.resource_model import (
    ResourceModel,
    Sites,
    physical_plans,
    planning_problem,
    price_rewritings,
)
from penstock.views.rewritings import (
    PLAIN_NODE_BITS,
    RewritabilityGraph,
    rewritability_graph,
    spreading_limits,
)
from penstock.views.statistics import DocumentStatistics
from tests.examples import examples

Rewritings = list[list[tuple[int, ...]]]


def graph_of(rewritings: Rewritings) -> RewritabilityGraph:
    lengths = [len(one) for own in rewritings for one in own]
    return RewritabilityGraph(
        np.cumsum([0, *map(len, rewritings)]).astype(np.int64),
        np.cumsum([0, *lengths]).astype(np.int64),
        np.array([view for own in rewritings for one in own for view in one], np.int32),
    )


@st.composite
def problems(draw: st.DrawFn) -> PlanningProblem:
    """Small ones: view v may be fed by views before it."""
    views = draw(st.integers(1, 6))
    rewritings: Rewritings = []
    for view in range(views):
        sets = st.sets(st.integers(0, view - 1), min_size=1, max_size=3) if view else st.nothing()
        found = draw(st.lists(sets, max_size=3)) if view else []
        rewritings.append(sorted({tuple(sorted(one)) for one in found}))
    graph = graph_of(rewritings)
    whole = st.integers(1, 9)
    return PlanningProblem(
        graph,
        np.array([float(draw(whole)) for _ in range(graph.rewritings)]),
        np.array([float(draw(whole) + 9) for _ in range(views)]),
        np.array([float(draw(whole)) for _ in range(graph.rewritings)]),
        np.array([float(draw(whole)) for _ in range(views)]),
        np.array([draw(st.integers(0, 3)) for _ in range(views)], np.int64),
        draw(st.integers(0, views)),
    )


def best_by_brute_force(problem: PlanningProblem) -> float | None:
    graph = problem.graph
    ways = [[SOURCE, *range(graph.starts[v], graph.starts[v + 1])] for v in range(problem.views)]
    best = None
    for chosen in product(*ways):
        plan = Plan(problem, np.array(chosen, np.int64))
        try:
            plan.check()
        except PlanError:
            continue
        best = plan.utilisation() if best is None else min(best, plan.utilisation())
    return best


@settings(max_examples=examples(150))
@given(problems())
def test_solvers_agree_with_brute_force(problem: PlanningProblem) -> None:
    expected = best_by_brute_force(problem)
    published = published_plan(problem)
    quick = quick_plan(problem, 50)
    if expected is None:
        assert published is None
        assert quick.plan is None
        with pytest.raises(PlanError, match="No plan keeps within") as caught:
            optimal_plan(problem)
        least = caught.value.facts["smallest_source_capacity"]
        assert isinstance(least, int)
        assert best_by_brute_force(problem.with_capacity(problem.capacity, least)) is not None
        assert best_by_brute_force(problem.with_capacity(problem.capacity, least - 1)) is None
        return
    assert published is not None
    plan = optimal_plan(problem)
    for one in (published, plan):
        one.check()
        assert one.utilisation() == pytest.approx(expected)
    assert plan.lower_bound <= expected + 1e-6
    assert quick.prices.lower_bound <= expected + 1e-6
    if quick.plan is not None:
        quick.plan.check()
        assert quick.plan.utilisation() >= expected - 1e-6


def auction_problem(
    patterns: list[TreePattern], capacity: int, *, navigation: bool = True, rewritings: int = 10
) -> PlanningProblem:
    full = tree_embedding_graph(pack_patterns(patterns), navigation=navigation)
    found = rewritability_graph(remove_cycles(full), spreading_limits(rewritings))
    statistics = DocumentStatistics.of(map(parse_document, xmark.documents(5, seed=1)))
    volumes = [statistics.volume(pattern) for pattern in patterns]
    sites = Sites.at_random(len(patterns))
    return planning_problem(found, volumes, sites, ResourceModel(), capacity, len(patterns))


@pytest.fixture(scope="module")
def auctions() -> PlanningProblem:
    return auction_problem(xmark.unique_views(800, seed=11), 5)


def test_both_exact_solvers_agree_on_auctions(auctions: PlanningProblem) -> None:
    least = smallest_source_capacity(auctions)
    problem = auctions.with_capacity(5, least + 10)
    published, plan = published_plan(problem), optimal_plan(problem)
    assert published is not None
    plan.check()
    assert plan.utilisation() == pytest.approx(published.utilisation(), rel=1e-4)
    assert 0 <= plan.gap() < 1e-3
    quick = quick_plan(problem).plan
    assert quick is not None
    quick.check()
    assert quick.utilisation() < 1.2 * plan.utilisation()


@pytest.mark.parametrize(
    ("views", "limit"), [(800, 1), (800, 2), pytest.param(1_500, 4, marks=pytest.mark.slow)]
)
def test_the_smallest_limit_that_is_named_is_enough(views: int, limit: int) -> None:
    """Also where the columns that save utilisation hold no plan."""
    patterns = xmark.unique_views(views, 1, xmark.ViewParameters(within=("people",)))
    problem = auction_problem(patterns, limit, navigation=False, rewritings=30)
    least = smallest_source_capacity(problem)
    plan = optimal_plan(problem.with_capacity(limit, least))
    plan.check()
    assert int(plan.is_from_source.sum()) == least


@pytest.mark.slow
@pytest.mark.parametrize(("views", "seed", "limit"), [(400, 2, 1), (400, 2, 2)])
def test_both_exact_solvers_agree_at_the_very_limit(views: int, seed: int, limit: int) -> None:
    """Columns that the relaxation has no use for belong to the best plan there."""
    parameters = xmark.ViewParameters(within=("people",))
    patterns = xmark.unique_views(views, seed, parameters)
    problem = auction_problem(patterns, limit, navigation=False, rewritings=30)
    problem = problem.with_capacity(limit, smallest_source_capacity(problem))
    published, plan = published_plan(problem), optimal_plan(problem)
    assert published is not None
    plan.check()
    assert plan.utilisation() == pytest.approx(published.utilisation(), rel=1e-5)
    assert plan.gap() < 1e-4


def test_the_same_view_at_several_sites_is_several_views_that_feed_each_other() -> None:
    popular = xmark.unique_views(1, seed=3)
    problem = auction_problem(popular * 4, 1)
    chain = optimal_plan(problem.with_capacity(1, 1))
    chain.check()
    assert sorted(chain.levels().tolist()) == [1, 2, 3, 4]
    star = optimise_latency(chain, np.full(4, 3)).plan
    assert sorted(star.levels().tolist()) == [1, 2, 2, 2]
    with pytest.raises(PlanError, match="must feed 4"):
        optimal_plan(problem.with_capacity(0, 1))


def test_boxes_are_planned_like_trees() -> None:
    """Key-value events (section 4.4): views of a topic, of a place, and of both."""
    relation = Relation("news", tuple(Column(name, IntegerType()) for name in "tpv"), (0,))
    topic, place = Interval(below(1), above(1)), Interval(below(2), above(2))
    views = [
        BoxView(boxes.box({0: topic}), (2,)),
        BoxView(boxes.box({1: place}), (2,)),
        BoxView(boxes.box({0: topic, 1: place}), (2,)),
    ]
    events = {n: (n % 2, n % 3, n) for n in range(12)}
    language = BoxLanguage(relation, list(events.values()))
    found = rewritability_graph(
        remove_cycles(embedding_graph(views, language)), spreading_limits(5, PLAIN_NODE_BITS)
    )
    assert [sorted(found.inputs_of(r)) for r in range(found.rewritings)] == [[0, 1]]
    volumes = [language.cost(view) for view in views]
    problem = planning_problem(found, volumes, Sites.at_random(3), ResourceModel(), 1, 2)
    plan = optimal_plan(problem)
    assert plan.chosen.tolist() == [SOURCE, SOURCE, 0]
    inputs = [(one, select_events(one, relation, events)) for one in views[:2]]
    expected = select_events(views[2], relation, events)
    assert join_views(views[2], relation, inputs) == expected
    assert expected


def test_tighter_limits_cost_more(auctions: PlanningProblem) -> None:
    used = [
        optimal_plan(auctions.with_capacity(limit)).utilisation() for limit in (1, 5, UNLIMITED)
    ]
    assert used[0] > used[1] > used[2]


def test_a_limit_of_zero_leaves_everything_to_the_source(auctions: PlanningProblem) -> None:
    plan = optimal_plan(auctions.with_capacity(0))
    assert plan.is_from_source.all()
    with pytest.raises(PlanError, match=f"must feed {auctions.views:,}"):
        optimal_plan(auctions.with_capacity(0, auctions.views - 1))


def test_limits_are_not_negative(auctions: PlanningProblem) -> None:
    with pytest.raises(PlanError, match="negative"):
        auctions.with_capacity(-1)


def test_no_views_need_no_plan() -> None:
    none = np.zeros(0)
    problem = PlanningProblem(graph_of([]), none, none, none, none, np.zeros(0, np.int64), 0)
    assert optimal_plan(problem).utilisation() == 0
    assert published_plan(problem) is not None


def latency_by_hand(plan: Plan) -> list[float]:
    known: dict[int, float] = {}

    def latency(view: int) -> float:
        if view not in known:
            inputs = plan.inputs_of(view)
            own = plan.problem.latency[plan.chosen[view]] if inputs else 0.0
            slowest = max((latency(one) for one in inputs), default=0.0)
            known[view] = slowest + own if inputs else plan.problem.source_latency[view]
        return float(known[view])

    return [latency(view) for view in range(plan.problem.views)]


def test_latency_falls_within_relaxed_limits(auctions: PlanningProblem) -> None:
    plan = optimal_plan(auctions)
    before = plan.latencies().sum()
    loga = optimise_latency(plan)
    fast = loga.plan
    fast.check()
    assert fast.latencies().tolist() == pytest.approx(latency_by_hand(fast))
    assert loga.history[-1][1] == pytest.approx(fast.latencies().sum())
    assert fast.latencies().sum() < before
    assert fast.is_from_source.tolist() == plan.is_from_source.tolist()
    assert int(fast.loads().max()) <= 7
    cheap = anneal_latency(plan, Annealing(steps=200_000)).plan
    cheap.check()
    assert cheap.latencies().tolist() == pytest.approx(latency_by_hand(cheap))
    assert cheap.utilisation() < fast.utilisation()
    assert cheap.latencies().sum() < before
    assert cheap.is_from_source.tolist() == plan.is_from_source.tolist()


@settings(max_examples=examples(150))
@given(problems())
def test_loga_leaves_no_better_single_move(problem: PlanningProblem) -> None:
    plan = Plan(problem, np.full(problem.views, SOURCE, np.int64))
    fed = problem.graph.is_rewritable
    plan.chosen[fed] = problem.graph.starts[:-1][fed]
    roomy = problem.with_capacity(plan.loads() + 1)
    start = Plan(roomy, plan.chosen)
    found = optimise_latency(start, roomy.capacity).plan
    assert found.latencies().tolist() == pytest.approx(latency_by_hand(found))
    assert (found.loads() <= roomy.capacity).all()
    for view in np.flatnonzero(fed):
        for rewriting in range(roomy.graph.starts[view], roomy.graph.starts[view + 1]):
            chosen = found.chosen.copy()
            chosen[view] = rewriting
            other = Plan(roomy, chosen)
            if (other.loads() <= roomy.capacity).all():
                assert other.latencies().sum() >= found.latencies().sum() - 1e-9


def test_limits_of_loga() -> None:
    assert relaxed_capacity(np.array([30, 5, UNLIMITED])).tolist() == [45, 7, UNLIMITED]


def test_levels_and_cost() -> None:
    graph = graph_of([[], [(0,)], [(0, 1)]])
    problem = PlanningProblem(
        graph,
        np.array([1.0, 2.0]),
        np.array([10.0, 10.0, 10.0]),
        np.array([1.0, 1.0]),
        np.array([5.0, 5.0, 5.0]),
        np.array([2, 2, 2]),
        3,
    )
    plan = Plan(problem, np.array([SOURCE, 0, 1]))
    assert plan.levels().tolist() == [1, 2, 3]
    assert plan.latencies().tolist() == [5, 6, 7]
    assert plan.loads().tolist() == [2, 1, 0]
    assert plan.cost(2.0, 1.0) == 2 * 13 + 18


def test_circles_are_refused() -> None:
    ones = np.ones(2)
    problem = PlanningProblem(
        graph_of([[(1,)], [(0,)]]), ones, ones, ones, ones, np.array([1, 1]), 0
    )
    with pytest.raises(PlanError, match="circle"):
        Plan(problem, np.array([0, 1])).levels()


@given(st.lists(st.integers(0, 5), min_size=1, max_size=3, unique=True))
def test_the_cheapest_physical_plan_counts(inputs: list[int]) -> None:
    rng = np.random.default_rng(sum(inputs))
    volumes = [Volume(float(r), float(b)) for r, b in rng.integers(1, 100, (7, 2))]
    sites, model = Sites.at_random(7), ResourceModel()
    plans = physical_plans(model, sites, inputs, 6, volumes.__getitem__)
    best = min(plans, key=lambda plan: model.aggregate(plan.used))
    used, seconds, join_at = price_rewritings(
        np.array([0, len(inputs)]),
        np.array(inputs, np.int32),
        np.array([6]),
        np.array([one.rows for one in volumes]),
        np.array([one.bytes for one in volumes]),
        sites.x,
        sites.y,
        model.coefficients(),
    )
    assert used[0] == pytest.approx(model.aggregate(best.used))
    assert seconds[0] == pytest.approx(plans[join_at[0] + 1].seconds)
