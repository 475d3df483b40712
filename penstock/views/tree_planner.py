"""Full plans of tree patterns: graphs, prices, the optimal plan, lower latency. For live plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from penstock.documents.patterns import TreePattern
from penstock.views.column_generation import optimal_plan
from penstock.views.embedding_graph import remove_cycles, tree_embedding_graph
from penstock.views.language import Volume
from penstock.views.latency import optimise_latency
from penstock.views.live_plan import Feeding, Inputs, LivePolicy, ViewId
from penstock.views.packed_patterns import pack_patterns
from penstock.views.planning_problem import Plan
from penstock.views.resource_model import ResourceModel, Sites, physical_plans, planning_problem
from penstock.views.rewritings import rewritability_graph
from penstock.views.statistics import DocumentStatistics


class TreePlanner:
    """Prices and plans views by measured statistics. Sites are placed by the view's number."""

    def __init__(
        self,
        statistics: DocumentStatistics,
        model: ResourceModel | None = None,
        *,
        most_views: int = 1 << 16,
    ) -> None:
        self.statistics = statistics
        self.model = model or ResourceModel()
        self.sites = Sites.at_random(most_views)
        self.patterns: dict[ViewId, TreePattern] = {}

    def volume(self, number: ViewId) -> Volume:
        return self.statistics.volume(self.patterns[number])

    def price(self, number: ViewId, inputs: Inputs) -> float:
        """The utilisation of the cheapest physical plan; as in a full plan, the source must read
        the document."""
        if not inputs:
            own = self.volume(number)
            shipped = (2 * self.model.bandwidth_weight + self.model.io_weight) * own.bytes
            read = self.model.io_weight * self.model.document_bytes
            return shipped + read + self.model.cpu_weight * own.rows
        ways = physical_plans(self.model, self.sites, inputs, number, self.volume)
        return min(self.model.aggregate(way.used) for way in ways)

    def plan(self, views: Mapping[ViewId, TreePattern], policy: LivePolicy) -> Feeding:
        """Implements `Planner`: the optimal plan under the limits, followed by LOGA under the same
        limits."""
        numbers = list(views)
        problem_plan = self.plan_patterns(list(views.values()), numbers, policy)
        return {
            number: tuple(numbers[one] for one in problem_plan.inputs_of(place))
            for place, number in enumerate(numbers)
        }

    def plan_patterns(
        self, patterns: Sequence[TreePattern], numbers: Sequence[ViewId], policy: LivePolicy
    ) -> Plan:
        graph = remove_cycles(tree_embedding_graph(pack_patterns(patterns)))
        rewritable = rewritability_graph(graph, policy.covers)
        places = np.array(numbers, np.int64)
        sites = Sites(self.sites.x[places], self.sites.y[places])
        problem = planning_problem(
            rewritable,
            [self.statistics.volume(pattern) for pattern in patterns],
            sites,
            self.model,
            policy.capacity,
            policy.source_capacity,
        )
        return optimise_latency(optimal_plan(problem), problem.capacity).plan
