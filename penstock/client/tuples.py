"""The tuples a client holds for one branch of its query, and their join.

One pool of rows per node, indexed by row key and by the values of join columns. When a row is added
or removed, the join rows it takes part in are enumerated from that row outward, in an order of
nodes in which each node is joined with one already bound; nothing else is recomputed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from penstock.catalog import Row, RowKey
from penstock.query import Query
from penstock.spaces import JoinValue, join_value

JoinKey: TypeAlias = tuple[RowKey, ...]
JoinRow: TypeAlias = tuple[Row, ...]

_NONE: dict[RowKey, Row] = {}


@dataclass(frozen=True, slots=True)
class _Visit:
    """How to bind the next node: its join columns, and where their values come from."""

    node: int
    columns: tuple[int, ...]
    sources: tuple[tuple[int, int], ...]


class JoinPlan:
    """For each node, the order in which the others are bound when a row of it changes."""

    def __init__(self, query: Query) -> None:
        self.relations = [node.relation for node in query.nodes]
        self.key_nodes = query.key_nodes
        self.visits = [_visits(query, start) for start in range(len(query.nodes))]
        self.indexed: list[set[tuple[int, ...]]] = [set() for _ in query.nodes]
        for visits in self.visits:
            for visit in visits:
                self.indexed[visit.node].add(visit.columns)


def _visits(query: Query, start: int) -> list[_Visit]:
    bound = [start]
    visits: list[_Visit] = []
    while len(bound) < len(query.nodes):
        links: dict[int, list[tuple[int, tuple[int, int]]]] = {}
        for join in query.joins:
            for here, there, flip in ((join.left, join.right, 0), (join.right, join.left, 1)):
                if here in bound and there not in bound:
                    for pair in join.columns:
                        source = (here, pair[flip])
                        links.setdefault(there, []).append((pair[1 - flip], source))
        node, pairs = min(links.items())  # never empty: binding checked that joins connect all
        visits.append(_Visit(node, tuple(c for c, _ in pairs), tuple(s for _, s in pairs)))
        bound.append(node)
    return visits


class BranchTuples:
    """The rows one branch holds, per node."""

    def __init__(self, plan: JoinPlan) -> None:
        self._plan = plan
        self._rows: list[dict[RowKey, Row]] = [{} for _ in plan.relations]
        self._by_value: list[dict[tuple[int, ...], dict[JoinValue, dict[RowKey, Row]]]] = [
            {columns: {} for columns in indexed} for indexed in plan.indexed
        ]

    def held(self, node: int, key: RowKey) -> Row | None:
        return self._rows[node].get(key)

    def keys(self, node: int) -> list[RowKey]:
        return list(self._rows[node])

    def items(self, node: int) -> list[tuple[RowKey, Row]]:
        return list(self._rows[node].items())

    def put(self, node: int, key: RowKey, row: Row) -> None:
        """Add a row whose key is not held."""
        self._rows[node][key] = row
        for columns, values in self._by_value[node].items():
            value = join_value(self._plan.relations[node], columns, row)
            if value is not None:
                values.setdefault(value, {})[key] = row

    def pop(self, node: int, key: RowKey) -> None:
        """Remove a row that is held."""
        row = self._rows[node].pop(key)
        for columns, values in self._by_value[node].items():
            value = join_value(self._plan.relations[node], columns, row)
            if value is not None:
                del values[value][key]
                if not values[value]:
                    del values[value]

    def join_rows(self, node: int, key: RowKey, row: Row) -> list[tuple[JoinKey, JoinRow]]:
        """All join rows with this row at this node."""
        width, key_nodes = len(self._plan.relations), self._plan.key_nodes
        keys: list[RowKey] = [()] * width
        rows: list[Row] = [()] * width
        keys[node], rows[node] = key, row
        bound = [(keys, rows)]
        for visit in self._plan.visits[node]:
            bound = self._bind_next(visit, bound)
        return [(tuple([keys[one] for one in key_nodes]), tuple(rows)) for keys, rows in bound]

    def _bind_next(
        self, visit: _Visit, bound: list[tuple[list[RowKey], list[Row]]]
    ) -> list[tuple[list[RowKey], list[Row]]]:
        """Partial join rows, extended by one more node."""
        found = []
        pool, node = self._by_value[visit.node][visit.columns], visit.node
        for keys, rows in bound:
            value = self._value_of(visit, rows)
            for key, row in pool.get(value, _NONE).items() if value is not None else ():
                more_keys, more_rows = keys.copy(), rows.copy()
                more_keys[node], more_rows[node] = key, row
                found.append((more_keys, more_rows))
        return found

    def _value_of(self, visit: _Visit, rows: list[Row]) -> JoinValue | None:
        keys = []
        for node, column in visit.sources:
            value = rows[node][column]
            if value is None:
                return None
            keys.append(self._plan.relations[node].columns[column].type.join_key(value))
        return tuple(keys)
