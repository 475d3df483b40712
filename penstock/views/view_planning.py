"""From views and limits to a plan: exact if that is quick, else with a proven gap.

Three plans are compared: the one with the least utilisation, LOGA's version of it, and the annealed
one; the one with the least cost αU + βλ is used. Both terms are shares of the first plan's, so that
α and β weigh comparable quantities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from penstock.documents.patterns import TreePattern
from penstock.errors import PlanError
from penstock.views.box_language import BoxLanguage, BoxView
from penstock.views.column_generation import optimal_plan
from penstock.views.embedding_graph import (
    EmbeddingGraph,
    embedding_graph,
    remove_cycles,
    tree_embedding_graph,
)
from penstock.views.ilp import published_plan
from penstock.views.language import Volume
from penstock.views.latency import Annealing, anneal_latency, optimise_latency
from penstock.views.packed_patterns import pack_patterns
from penstock.views.plan_limits import PlanLimits
from penstock.views.planning_problem import UNLIMITED, Plan, PlanningProblem
from penstock.views.resource_model import ResourceModel, Sites, planning_problem
from penstock.views.rewritings import (
    PLAIN_NODE_BITS,
    TREE_NODE_BITS,
    rewritability_graph,
    spreading_limits,
)
from penstock.views.statistics import DocumentStatistics

EXACT_EDGES = 2_000
"""Maximum edges of the rewritability graph for solving the published program: within a second."""
SOURCE_MARGIN = 1.2
"""The source may feed the views that only it can feed, plus a fifth; as in the paper."""
ANNEALING = Annealing(steps=200_000)


@dataclass(frozen=True, slots=True)
class PlannedViews:
    """A plan, how it was found, and the limits that it keeps."""

    plan: Plan
    optimal: Plan
    """The one with the least utilisation."""
    method: str
    chosen: str
    """Which of the plans has the least cost."""
    edges: int
    """Of the embedding graph."""
    volumes: tuple[Volume, ...]

    @property
    def source_limit(self) -> int:
        return self.plan.problem.source_capacity


def plan_trees(
    patterns: Sequence[TreePattern],
    statistics: DocumentStatistics,
    limits: PlanLimits,
    document_bytes: float,
    capacity: NDArray[np.int64] | None = None,
) -> PlannedViews:
    """Plan tree patterns, priced by measured documents, whose mean size is `document_bytes`.
    `capacity`: how many others each view may feed, if they differ."""
    graph = tree_embedding_graph(pack_patterns(patterns))
    volumes = [statistics.volume(pattern) for pattern in patterns]
    model = replace(ResourceModel(), document_bytes=document_bytes)
    return _planned(graph, volumes, model, limits, TREE_NODE_BITS, capacity)


def plan_boxes(views: Sequence[BoxView], language: BoxLanguage, limits: PlanLimits) -> PlannedViews:
    """Plan selections over one table, priced by a sample of its rows."""
    graph = embedding_graph(views, language)
    volumes = [language.cost(view) for view in views]
    widths = [sum(len(str(value)) for value in row) for row in language.sample]
    mean = float(np.mean(widths)) if widths else 100.0
    model = replace(ResourceModel(), document_bytes=mean)
    return _planned(graph, volumes, model, limits, PLAIN_NODE_BITS)


def _planned(
    full: EmbeddingGraph,
    volumes: Sequence[Volume],
    model: ResourceModel,
    limits: PlanLimits,
    node_bits: int,
    capacity: NDArray[np.int64] | None = None,
) -> PlannedViews:
    limits.check()
    graph = remove_cycles(full)
    rewritable = rewritability_graph(graph, spreading_limits(limits.rewritings, node_bits))
    bare = int((~rewritable.is_rewritable).sum())
    if capacity is None:
        feeds = UNLIMITED if limits.feeds is None else limits.feeds
        capacity = np.full(len(volumes), feeds, np.int64)
    problem = planning_problem(
        rewritable,
        volumes,
        Sites.at_random(len(volumes)),
        model,
        capacity,
        int(SOURCE_MARGIN * bare) if limits.source is None else limits.source,
    )
    optimal, method = _optimal(problem, may_raise=limits.source is None)
    plans = {"least utilisation": optimal}
    if limits.beta > 0 and len(volumes):
        within = optimal.problem.capacity
        plans["LOGA"] = optimise_latency(optimal, within).plan
        plans["annealed"] = anneal_latency(optimal, ANNEALING, within).plan
    first, slowest = optimal.utilisation() or 1.0, float(optimal.latencies().sum()) or 1.0
    weights = (limits.alpha / first, limits.beta / slowest)
    chosen = min(plans, key=lambda name: plans[name].cost(*weights))
    return PlannedViews(plans[chosen], optimal, method, chosen, graph.edges, tuple(volumes))


def _optimal(problem: PlanningProblem, *, may_raise: bool) -> tuple[Plan, str]:
    """The plan with the least utilisation; with `may_raise` the source's limit is raised if no plan
    is feasible."""
    graph = problem.graph
    is_small = graph.rewritings + len(graph.inputs) + 2 * problem.views <= EXACT_EDGES
    found = published_plan(problem) if is_small else None
    if found is not None:
        return found, "exact (the published program)"
    try:
        return optimal_plan(problem), "column generation"
    except PlanError as error:
        least = error.facts.get("smallest_source_capacity")
        if not may_raise or not isinstance(least, int):
            raise
    return _optimal(replace(problem, source_capacity=least), may_raise=False)
