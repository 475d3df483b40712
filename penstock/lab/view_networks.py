"""Networks of views for experiments: from generated views to plans, with the time of every step."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from penstock.documents.document import Document, parse_document
from penstock.documents.patterns import TreePattern
from penstock.errors import PlanError
from penstock.lab.workloads import xmark
from penstock.views.column_generation import optimal_plan
from penstock.views.embedding_graph import EmbeddingGraph, remove_cycles, tree_embedding_graph
from penstock.views.latency import Annealing, LatencyResult, anneal_latency, optimise_latency
from penstock.views.packed_patterns import pack_patterns
from penstock.views.planning_problem import Plan, PlanningProblem
from penstock.views.resource_model import ResourceModel, Sites, planning_problem
from penstock.views.rewriting_kernel import CoverLimits
from penstock.views.rewritings import (
    RewritabilityGraph,
    rewritability_graph,
    spreading_limits,
)
from penstock.views.statistics import DocumentStatistics

SAMPLE_DOCUMENTS = 20
"""Documents sampled to estimate the sizes of results."""
SOURCE_MARGIN = 1.2
"""The source may feed the views that only it can feed, plus a fifth; as in the paper."""


@dataclass
class Stopwatch:
    """CPU seconds of the steps of a run."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        began = time.process_time()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - began


@dataclass
class ViewNetwork:
    """Views, and everything that does not depend on limits."""

    patterns: Sequence[TreePattern]
    graph: EmbeddingGraph
    deleted_edges: int
    rewritable: RewritabilityGraph
    problem: PlanningProblem
    watch: Stopwatch

    @classmethod
    def of(
        cls,
        patterns: Sequence[TreePattern],
        limits: CoverLimits | None = None,
        *,
        navigation: bool = False,
        model: ResourceModel | None = None,
        documents: Sequence[Document] = (),
        seed: int = 1,
    ) -> ViewNetwork:
        """Build the graphs and price all rewritings. By default as published: attributes count
        separately, contents are not navigated. Sizes are measured on a sample of the documents, or
        on generated ones."""
        watch = Stopwatch()
        with watch.step("pack"):
            packed = pack_patterns(patterns)
        with watch.step("embedding graph"):
            full = tree_embedding_graph(packed, navigation=navigation)
        with watch.step("cycle removal"):
            graph = remove_cycles(full)
        with watch.step("rewritability graph"):
            rewritable = rewritability_graph(graph, limits or spreading_limits())
        sample = documents[:SAMPLE_DOCUMENTS] or [
            parse_document(text) for text in xmark.documents(SAMPLE_DOCUMENTS, seed)
        ]
        with watch.step("prices"):
            statistics = DocumentStatistics.of(sample)
            volumes = [statistics.volume(pattern) for pattern in patterns]
            mean_bytes = float(np.mean([len(document.canonical) for document in sample]))
            model = replace(model or ResourceModel(), document_bytes=mean_bytes)
            sites = Sites.at_random(len(patterns), seed)
            bare = int((~rewritable.is_rewritable).sum())
            problem = planning_problem(
                rewritable, volumes, sites, model, 0, int(SOURCE_MARGIN * bare)
            )
        return cls(patterns, graph, full.edges - graph.edges, rewritable, problem, watch)


@dataclass
class PlanRun:
    """Plans under one limit: with the least utilisation, and with less latency in two ways."""

    capacity: int
    source_capacity: int
    is_raised: bool
    """Whether the source's limit had to be raised for any plan to exist."""
    optimal: Plan
    loga: LatencyResult
    annealed: LatencyResult
    watch: Stopwatch


def plan_network(
    network: ViewNetwork,
    capacity: int,
    *,
    source_capacity: int | None = None,
    annealing: Annealing | None = None,
) -> PlanRun:
    """The three plans under one limit; the source's is raised if necessary."""
    watch = Stopwatch()
    problem = network.problem.with_capacity(capacity, source_capacity)
    with watch.step("plan"):
        try:
            optimal, is_raised = optimal_plan(problem), False
        except PlanError as error:
            least = int(str(error.facts["smallest_source_capacity"]))
            problem = problem.with_capacity(capacity, least)
            optimal, is_raised = optimal_plan(problem), True
    with watch.step("latency"):
        loga = optimise_latency(optimal)
    with watch.step("annealing"):
        annealed = anneal_latency(optimal, annealing)
    return PlanRun(capacity, problem.source_capacity, is_raised, optimal, loga, annealed, watch)


def view_statistics(patterns: Sequence[TreePattern]) -> dict[str, float]:
    """The first block of Table 2."""
    nodes = [node for pattern in patterns for node in pattern.nodes]
    count = len(patterns)
    return {
        "views": count,
        "nodes_per_view": len(nodes) / count,
        "returned_per_view": sum(node.is_returned for node in nodes) / count,
        "predicates_per_view": sum(node.predicate is not None for node in nodes) / count,
    }


def warm_up() -> None:
    """Compile (or load) all kernels, so that they are not timed."""
    network = ViewNetwork.of(xmark.unique_views(60, seed=2))
    plan_network(network, 3, source_capacity=60, annealing=Annealing(steps=100))
