"""The cost of a semijoin by formula (Chandramouli and Yang, 2008, appendix D).

A semijoin R^S is charged for two things: rows of R that are sent when R changes, and rows of R that
are sent because a change of S shows or hides them. Change rates and the number of rows per join
value come from statistics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from penstock.predicates.boxes import Box
from penstock.query import Query
from penstock.spaces import Choice, Side, Space, space_of

SEARCH_BYTES = 1.0
"""Cost of testing one point of a space with several filter columns per joining row, relative to
sending a byte: 3 to 8 ns (docs/notes/joins.md); a gigabit link takes 8 ns for a byte."""


@dataclass(frozen=True, slots=True)
class Semijoin:
    """One way to split off one node of a query; the input of a cost model."""

    space: Space
    base: Box
    filter: Box


def semijoin(query: Query, branch: int, node: int, choice: Choice) -> Semijoin:
    boxes = query.branches[branch]
    bounds = tuple(pair for pair in boxes[choice.neighbour] if pair[0] in choice.columns)
    return Semijoin(space_of(query, node, choice), boxes[node], bounds)


class Knowledge(Protocol):
    """What the formulas need to know of tables; `Statistics` implements it."""

    def rate(self, table: str) -> float:
        """The share of this table in all changes."""

    def partners(self, base: Side, other: Side) -> float:
        """How many rows of the other side a row of the base side joins, on average."""

    def selectivity(self, table: str, box: Box) -> float:
        """The share of a table's rows that a box contains."""

    def row_bytes(self, table: str) -> float:
        """The mean size of a row in a message."""


class CostModel(Protocol):
    """Costs are comparable within one model only."""

    @property
    def name(self) -> str: ...

    def cost(self, one: Semijoin) -> float: ...


class UniformCost:
    """The formula as published: filters and values are assumed to be uniform, so that only change
    rates and numbers of joining rows count. A semijoin without a filter is affected by every row
    that joins at all."""

    name = "uniform"

    def __init__(self, known: Knowledge) -> None:
        self._known = known

    def cost(self, one: Semijoin) -> float:
        rates, joining = self._rates(one.space), self._joining(one.space)
        base, other = joining
        if one.filter:
            seen = other / (other + 2)
            exposed = 2 / ((other + 2) * (other + 3))
        else:
            seen, exposed = min(1.0, other), max(0.0, 1.0 - other)
        return (rates[0] * seen + rates[1] * base * exposed) / 3

    def _rates(self, space: Space) -> tuple[float, float]:
        rate = self._known.rate
        return rate(space.table), rate(space.filter_side.table)

    def _joining(self, space: Space) -> tuple[float, float]:
        """The base rows per filter row, and the filter rows per base row."""
        base, other = space.base_side, space.filter_side
        partners = self._known.partners
        return partners(other, base), partners(base, other)


class SelectiveCost(UniformCost):
    """The same sum with the selectivities of the conditions: the bytes that one subscription is
    sent per change. With s the share of filter rows in the filter, a base row that joins n of them
    is affected with probability 1 - (1 - s)^n; a filter row matters if no other is in it."""

    name = "selective"

    def cost(self, one: Semijoin) -> float:
        (base_rate, filter_rate), (base, other) = self._rates(one.space), self._joining(one.space)
        known, space = self._known, one.space
        wanted = known.selectivity(space.table, one.base)
        share = known.selectivity(space.filter_side.table, one.filter)
        seen = 1 - (1 - share) ** other if one.filter else min(1.0, other)
        exposed = share * (1 - share) ** other if one.filter else max(0.0, 1.0 - other)
        rows = wanted * (base_rate * seen + filter_rate * base * exposed)
        sent = rows * known.row_bytes(space.table)
        return sent + search_cost(known, space)


def search_cost(known: Knowledge, space: Space) -> float:
    """The cost, per semijoin, of finding the affected points: next to nothing with one filter
    column, which is indexed; with several, every point is tested."""
    if not space.more:
        return 0.0
    base, other = space.base_side, space.filter_side
    rate = known.rate(base.table) + known.rate(other.table)
    return SEARCH_BYTES * rate * (1 + known.partners(base, other))
