"""Chooses the decomposition of a new subscription by the statistics of the home.

The rows are not available here. `penstock analyse` stores statistics of them; without those the
plain rule applies, and reoptimising looks at the rows later.
"""

from __future__ import annotations

from bisect import bisect_left

from penstock.catalog import Catalog
from penstock.joins.accounting import row_bytes
from penstock.joins.decomposition.costs import SelectiveCost
from penstock.joins.decomposition.greedy import decompose
from penstock.predicates.boxes import Box
from penstock.predicates.intervals import Cut, below
from penstock.registry.plans import decode_plan
from penstock.spaces import Decomposition, Side, compact, has_choice, plain_rule
from penstock.storage import AnyHome, Home, HomeStatistics, TableStatistics, usable_statistics


class Chooser:
    """Chooses for the subscriptions of one call, by the statistics at its beginning."""

    def __init__(self, home: AnyHome, catalog: Catalog) -> None:
        self._catalog = catalog
        found = usable_statistics(home.path) if isinstance(home, Home) else None
        self._model = None if found is None else SelectiveCost(AnalysedStatistics(found, catalog))

    def choose(self, plan: bytes) -> Decomposition | None:
        """None stands for the plain rule."""
        if self._model is None:
            return None
        query = decode_plan(plan, self._catalog)
        if not has_choice(query):
            return None
        (chosen,) = decompose({0: query}, self._model).values()
        return None if chosen == compact(plain_rule(query)) else chosen


class AnalysedStatistics:
    """Table statistics of an analysis of the history, in the form that cost models use.

    Conditions on several columns are assumed to be independent.
    """

    def __init__(self, found: HomeStatistics, catalog: Catalog) -> None:
        self._catalog = catalog
        self._tables = {table.name: table for table in found.tables}
        self._changes = sum(table.changes for table in found.tables) + len(found.tables)
        self._fan_out: dict[tuple[Side, Side], float] = {}
        for edge in found.edges:
            sides = [self._side(t, c) for t, c in zip(edge.tables, edge.columns, strict=True)]
            for i in (0, 1):
                self._fan_out[sides[i], sides[1 - i]] = edge.fan_out[i]
        self._values: dict[tuple[str, int], list[Cut]] = {}
        self._sizes: dict[str, float] = {}

    def _side(self, table: str, columns: tuple[str, ...]) -> Side:
        positions = self._catalog[table].positions
        return Side(table, tuple(positions[column.lower()] for column in columns))

    def rate(self, table: str) -> float:
        known = self._tables.get(table)
        return ((0 if known is None else known.changes) + 1) / max(1, self._changes)

    def partners(self, base: Side, other: Side) -> float:
        """For a join that no subscription has had: assumes that all values of a side are equally
        frequent."""
        known = self._fan_out.get((base, other))
        if known is None:
            table = self._tables.get(other.table)
            known = 1.0 if table is None else table.rows / max(1, _values(table, other))
        return known

    def selectivity(self, table: str, box: Box) -> float:
        share = 1.0
        for column, interval in box:
            values = self._sorted(table, column)
            inside = bisect_left(values, interval.high) - bisect_left(values, interval.low)
            share *= (max(0, inside) + 0.5) / (len(values) + 1)
        return share

    def row_bytes(self, table: str) -> float:
        if table not in self._sizes:
            known = self._tables.get(table)
            sizes = [] if known is None else [row_bytes(row) for row in known.sample]
            self._sizes[table] = sum(sizes) / len(sizes) if sizes else 16.0
        return self._sizes[table]

    def _sorted(self, table: str, column: int) -> list[Cut]:
        """The sampled values of a column, as the cuts below them."""
        if (table, column) not in self._values:
            known, kind = self._tables.get(table), self._catalog[table].columns[column].type
            rows = () if known is None else known.sample
            keys = (None if row[column] is None else kind.key(row[column]) for row in rows)
            self._values[table, column] = sorted(below(key) for key in keys)
        return self._values[table, column]


def _values(table: TableStatistics, side: Side) -> int:
    """The minimum number of join values of a side."""
    return max(table.columns[column].distinct for column in side.columns)
