"""How a query is split into semijoins, as text with estimated costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.joins.decomposition.costs import CostModel, semijoin
from penstock.predicates.boxes import describe_box
from penstock.query import Join, Query
from penstock.spaces import Choice, Decomposition, candidates, decomposition_of


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another way to filter a table."""

    by: str
    conditions: tuple[str, ...]
    cost: float


@dataclass(frozen=True, slots=True)
class Filtering:
    """The filter that decides which rows of one table a subscription is sent: a joining row of
    another table that satisfies some of its conditions. Costs are estimates of bytes per change of
    any table."""

    branch: int
    table: str
    by: str
    on: str
    conditions: tuple[str, ...]
    cost: float
    alternatives: tuple[Alternative, ...]


def filterings(query: Query, chosen: Decomposition | None, model: CostModel) -> Iterator[Filtering]:
    """The decomposition of a query; nothing for a query over one table."""
    for branch, choices in enumerate(decomposition_of(query, chosen)):
        for node, choice in enumerate(choices):
            others = [one for one in candidates(query, branch, node) if one != choice]
            weighed = (_alternative(query, branch, node, one, model) for one in others)
            mine = _alternative(query, branch, node, choice, model)
            yield Filtering(
                branch,
                query.nodes[node].alias,
                mine.by,
                join_text(query, _join(query, node, choice.neighbour)),
                mine.conditions,
                mine.cost,
                tuple(sorted(weighed, key=lambda one: one.cost)),
            )


def _alternative(
    query: Query, branch: int, node: int, choice: Choice, model: CostModel
) -> Alternative:
    there = query.nodes[choice.neighbour]
    one = semijoin(query, branch, node, choice)
    return Alternative(
        there.alias, tuple(describe_box(one.filter, there.relation)), round(model.cost(one), 3)
    )


def _join(query: Query, node: int, neighbour: int) -> Join:
    return next(j for j in query.joins if {j.left, j.right} == {node, neighbour})


def join_text(query: Query, join: Join) -> str:
    """The condition of a join as SQL."""
    left, right = query.nodes[join.left], query.nodes[join.right]
    pairs = (
        f"{left.alias}.{left.relation.columns[a].name} = "
        f"{right.alias}.{right.relation.columns[b].name}"
        for a, b in join.columns
    )
    return " AND ".join(pairs)


def filtering_text(one: Filtering) -> str:
    """One line of text."""
    wanted = f" with {' and '.join(one.conditions)}" if one.conditions else ""
    text = f"{one.table} is sent if it joins {one.by}{wanted} ({one.on}), cost {one.cost:g}"
    if one.alternatives:
        best = one.alternatives[0]
        bounds = f" with {' and '.join(best.conditions)}" if best.conditions else ""
        text += f"; next best: {best.by}{bounds}, cost {best.cost:g}"
    return text
