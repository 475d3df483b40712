"""Choosing decompositions: the greedy algorithm (Chandramouli and Yang, 2008, section 4).

Costs are additive over semijoins. So choosing the cheapest semijoin first, for all nodes of all
queries that admit it and have none yet, gives the least total cost (appendix E there).
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.joins.decomposition.costs import CostModel, semijoin
from penstock.query import Query
from penstock.spaces import (
    Choice,
    Decomposition,
    candidates,
    compact,
    decomposition_of,
    has_choice,
)

MIN_GAIN = 0.2
"""Minimum estimated saving, as a share of the cost, to change a decomposition: points that move are
sent their rows again, and estimates are noisy."""


def decompose(queries: Mapping[int, Query], model: CostModel) -> dict[int, Decomposition]:
    """The cheapest decomposition of each query."""
    options = sorted(
        (model.cost(one), one.space.name, choice, (number, branch, node))
        for number, query in queries.items()
        for branch in range(len(query.branches))
        for node in range(len(query.nodes))
        if len(query.nodes) > 1
        for choice in candidates(query, branch, node)
        for one in (semijoin(query, branch, node, choice),)
    )
    chosen: dict[tuple[int, int, int], Choice] = {}
    for _, _, choice, place in options:
        chosen.setdefault(place, choice)
    return {number: compact(_assembled(number, query, chosen)) for number, query in queries.items()}


def _assembled(
    number: int, query: Query, chosen: Mapping[tuple[int, int, int], Choice]
) -> Decomposition:
    if len(query.nodes) == 1:
        return ()
    return tuple(
        tuple(chosen[number, branch, node] for node in range(len(query.nodes)))
        for branch in range(len(query.branches))
    )


def total_cost(query: Query, chosen: Decomposition | None, model: CostModel) -> float:
    """The cost of a decomposition of a query."""
    return sum(
        model.cost(semijoin(query, branch, node, choice))
        for branch, choices in enumerate(decomposition_of(query, chosen))
        for node, choice in enumerate(choices)
    )


def improvements(
    queries: Mapping[int, Query],
    current: Mapping[int, Decomposition | None],
    model: CostModel,
) -> dict[int, Decomposition]:
    """The queries for which another decomposition is worth the change, and that decomposition."""
    with_choice = {number: query for number, query in queries.items() if has_choice(query)}
    better: dict[int, Decomposition] = {}
    for number, chosen in decompose(with_choice, model).items():
        query = queries[number]
        now = total_cost(query, current.get(number), model)
        if total_cost(query, chosen, model) < (1 - MIN_GAIN) * now:
            better[number] = chosen
    return better
