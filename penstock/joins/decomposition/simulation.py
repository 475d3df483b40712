"""The cost of a semijoin by simulation on samples (Chandramouli and Yang, 2008, appendix D).

For each possible space, the semijoins of a sample of subscriptions are collected, and the sampled
rows of both tables are replayed against them one by one: each is removed from its join value and
inserted again. The bytes that would be sent are weighted by the change rates of the tables and
divided by the number of semijoins in the space. Nothing is assumed about the distribution or the
correlation of values and conditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from penstock.catalog import Catalog
from penstock.joins.accounting import description_bytes, message_bytes
from penstock.joins.decomposition.costs import Semijoin, search_cost, semijoin
from penstock.joins.decomposition.statistics import Statistics
from penstock.joins.group import Group, GroupStep
from penstock.joins.points import SpacePoints
from penstock.joins.scheme_registry import make_scheme
from penstock.messages import Point, PointId
from penstock.predicates.boxes import interval_of
from penstock.predicates.intervals import EVERYTHING
from penstock.query import Query
from penstock.spaces import Space, candidates

MAX_SEMIJOINS = 200
"""Maximum semijoins simulated per space: each takes some 100 microseconds."""
MAX_QUERIES = 2_000
"""Maximum subscriptions sampled."""
MAX_EVENTS = 40
"""Maximum rows replayed on each side of a join."""


class SimulatedCost:
    """Bytes sent per change and semijoin of a space, measured once for each space."""

    name = "simulation"

    def __init__(
        self, statistics: Statistics, catalog: Catalog, queries: Mapping[int, Query]
    ) -> None:
        self._statistics = statistics
        self._catalog = catalog
        every = max(1, len(queries) // MAX_QUERIES)
        self._members = _members(islice(queries.values(), 0, None, every))
        self._costs: dict[Space, float] = {}

    def cost(self, one: Semijoin) -> float:
        if one.space not in self._costs:
            members = self._members.get(one.space) or {one: None}
            self._costs[one.space] = self._simulated(one.space, list(members))
        return self._costs[one.space]

    def _simulated(self, space: Space, members: list[Semijoin]) -> float:
        points = _points(space, members, self._catalog)
        rate, total = self._statistics.rate, 0.0
        for side in (0, 1):
            table = (space.base_side if side == space.side else space.filter_side).table
            sizes = [_bytes_of(step, group, points) for step, group in self._events(space, side)]
            total += rate(table) * sum(sizes) / max(1, len(sizes))
        return total / len(members) + search_cost(self._statistics, space)

    def _events(self, space: Space, side: int) -> Iterator[tuple[GroupStep, Group]]:
        """Rows of one side, each as an insertion into the group of all others of its join value."""
        assert space.edge is not None
        mine, theirs = self._statistics.together(space.edge.sides[side], space.edge.sides[1 - side])
        rows = [(value, key, row) for value, one in mine.items() for key, row in one.rows.items()]
        for value, key, row in rows[:: max(1, len(rows) // MAX_EVENTS)]:
            mates = {k: r for k, r in mine[value].rows.items() if k != key}
            joining = dict(theirs[value].rows) if value in theirs else {}
            group = Group((mates, joining) if side == 0 else (joining, mates))
            yield GroupStep(0, 1, side, key, None, row), group


def _members(queries: Iterable[Query]) -> dict[Space, dict[Semijoin, None]]:
    """For each space, a bounded sample of the semijoins that could be in it."""
    members: dict[Space, dict[Semijoin, None]] = {}
    for query in queries:
        for branch in range(len(query.branches)):
            for node in range(len(query.nodes)) if len(query.nodes) > 1 else ():
                for choice in candidates(query, branch, node):
                    one = semijoin(query, branch, node, choice)
                    known = members.setdefault(one.space, {})
                    if len(known) < MAX_SEMIJOINS:
                        known[one] = None
    return members


def _points(space: Space, members: list[Semijoin], catalog: Catalog) -> SpacePoints:
    points = SpacePoints(space, catalog)
    for number, one in enumerate(members):
        bounds = [interval_of(one.filter, column) for column in space.attributes]
        first, *more = bounds or [EVERYTHING]
        points.add(Point(PointId(number, 0, 0), space.id, one.base, first, tuple(more)))
    return points


def _bytes_of(step: GroupStep, group: Group, points: SpacePoints) -> int:
    """The bytes of rows sent to all affected points, plus the bytes of the regions."""
    everybody = make_scheme("enum-sj").messages(group, step, [points])
    regions = make_scheme("ref-sj-opt").messages(group, step, [points])
    return sum(map(message_bytes, everybody)) + sum(map(description_bytes, regions))
