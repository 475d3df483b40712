"""The effects of a change of one row on the content of a query, computed from the tables.

A row of the content combines one row of each node, and is identified by their keys. The change
concerns it if the changed row is at one of its nodes, or at several: in a self-join a row may join
itself, before the change, after it, or both. The old version never joins the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from itertools import chain
from typing import TypeAlias

from penstock.catalog import Relation, Row, RowKey, Stored
from penstock.catalog.derived import Definition, ExtendedRelation, base_name
from penstock.flow.derived import DerivedValues, KeyedRows, LazyValues, rows_of
from penstock.flow.operator_values import OperatorRuntime
from penstock.flow.state import RowStore
from penstock.joins.group import KeyedRow
from penstock.operators.failures import OperatorFailure
from penstock.predicates.boxes import Box, contains
from penstock.query import Join, Query
from penstock.spaces import JoinValue, join_value

Binding: TypeAlias = dict[int, KeyedRow]
"""The rows bound so far, by node."""
Branch: TypeAlias = tuple[Box, ...]
Failures: TypeAlias = Mapping[int, OperatorFailure]
"""By column: why an operator fails to compute it."""
Outcome: TypeAlias = tuple[LazyValues, Mapping[Definition, OperatorFailure]]


class Effect(StrEnum):
    """What happens to a row of the content, identified by its key."""

    ENTER = "enter"
    LEAVE = "leave"
    CHANGE = "change"
    """It stays, with other output values."""


class Tables:
    """The rows of all tables, found by join value, except the row that changes."""

    def __init__(
        self,
        rows: RowStore,
        relation: Relation,
        key: RowKey,
        operators: Callable[[], OperatorRuntime] | None = None,
    ) -> None:
        self._rows = rows
        self._operators = operators
        self.relation, self.key = relation, key
        self._indexes: dict[tuple[str, tuple[int, ...]], dict[JoinValue, list[KeyedRow]]] = {}

    def joining(
        self, relation: Relation, columns: tuple[int, ...], value: JoinValue
    ) -> Sequence[KeyedRow]:
        place = (relation.name, columns)
        if place not in self._indexes:
            self._indexes[place] = self._indexed(relation, columns)
        return self._indexes[place].get(value, ())

    def _indexed(
        self, relation: Relation, columns: tuple[int, ...]
    ) -> dict[JoinValue, list[KeyedRow]]:
        found: dict[JoinValue, list[KeyedRow]] = {}
        changed = self.key if base_name(relation.name) == self.relation.name else None
        stored = rows_of(self._rows, relation, lambda _: partial(self._asked, relation))
        for key, row in stored:
            value = join_value(relation, columns, row)
            if value is not None and key != changed:
                found.setdefault(value, []).append((key, row))
        return found

    def seen(self, relation: Relation, row: Row) -> tuple[Row, Failures]:
        """A row of a table as a row of the relation, which is the table or extends it; and the
        columns that operators fail to compute."""
        if not isinstance(relation, ExtendedRelation):
            return row, {}
        ((known, failed),) = self._outcomes(relation, [row])
        seen = next(DerivedValues([relation], [row], [known]).rows(relation))
        places = {one: relation.first_derived + i for i, one in enumerate(relation.definitions)}
        return seen, {places[one]: failure for one, failure in failed.items()}

    def _asked(self, relation: Relation, keyed: KeyedRows) -> Sequence[LazyValues]:
        """The operator columns of rows, evaluated unconditionally."""
        return ask_operators(self._operators, relation, keyed)

    def _outcomes(self, relation: ExtendedRelation, rows: Sequence[Row]) -> Sequence[Outcome]:
        return _outcomes(self._operators, relation, rows)


def ask_operators(
    operators: Callable[[], OperatorRuntime] | None, relation: Relation, keyed: KeyedRows
) -> Sequence[LazyValues]:
    """The operator columns of rows, evaluated unconditionally."""
    assert isinstance(relation, ExtendedRelation)
    return [known for known, _ in _outcomes(operators, relation, [row for _, row in keyed])]


def _outcomes(
    operators: Callable[[], OperatorRuntime] | None,
    relation: ExtendedRelation,
    rows: Sequence[Row],
) -> Sequence[Outcome]:
    lazy = [one for one in relation.definitions if one.is_lazy]
    if not lazy or operators is None:
        return [({}, {})] * len(rows)
    return operators().values_of(lazy, relation.base, rows)


class Version:
    """The tables before or after the change: with this version of the row, or without the row."""

    def __init__(self, query: Query, tables: Tables, row: Row | None) -> None:
        self._query = query
        self._tables = tables
        self.relation = tables.relation
        self.row = row
        self._seen: dict[str, tuple[Row, Failures]] = {}

    def reads_changed(self, node: int) -> bool:
        """Whether the table that changes feeds a node."""
        return base_name(self._query.nodes[node].relation.name) == self.relation.name

    def row_at(self, node: int) -> Row | None:
        """The changed row as a row of a node that its table feeds."""
        seen = self._seen_at(node)
        return None if seen is None else seen[0]

    def failures_at(self, node: int) -> Failures:
        """The columns of that row that operators fail to compute, by position."""
        seen = self._seen_at(node)
        return {} if seen is None else seen[1]

    def _seen_at(self, node: int) -> tuple[Row, Failures] | None:
        relation = self._query.nodes[node].relation
        if self.row is not None and relation.name not in self._seen:
            self._seen[relation.name] = self._tables.seen(relation, self.row)
        return self._seen.get(relation.name)

    def content_rows(self, branch: Branch, start: int) -> Iterator[Binding]:
        """The rows of the content that a branch selects, with the changed row at one node."""
        row = self.row_at(start) if self.reads_changed(start) else None
        if row is not None and contains(branch[start], self._query.nodes[start].relation, row):
            yield from self._completed(branch, {start: (self._tables.key, row)})

    def joining(self, join: Join, bound: Binding, other: int) -> Iterator[KeyedRow]:
        """The rows of a node that satisfy a join with a bound row."""
        here, ours, theirs = _seen_from(join, other)
        value = join_value(self._query.nodes[here].relation, ours, bound[here][1])
        if value is None:
            return
        relation = self._query.nodes[other].relation
        yield from self._tables.joining(relation, theirs, value)
        row = self.row_at(other) if self.reads_changed(other) else None
        if row is not None and join_value(relation, theirs, row) == value:
            yield self._tables.key, row

    def joining_changed(self, join: Join, other: int) -> Iterator[KeyedRow]:
        """The rows of a node that satisfy a join with the changed row."""
        here, _, _ = _seen_from(join, other)
        row = self.row_at(here)
        assert row is not None
        return self.joining(join, {here: (self._tables.key, row)}, other)

    def has(self, binding: Binding) -> bool:
        """Whether the same keys, with this version of the changed row, are a row of the content."""
        query, changed = self._query, self.nodes_changed(binding)
        rows: list[Row] = []
        for node in range(len(query.nodes)):
            row = self.row_at(node) if node in changed else binding[node][1]
            if row is None:
                return False
            rows.append(row)
        return all(_fulfils(query, j, rows[j.left], rows[j.right]) for j in query.joins) and any(
            all(map(contains, branch, (node.relation for node in query.nodes), rows))
            for branch in query.branches
        )

    def nodes_changed(self, binding: Binding) -> set[int]:
        """The nodes to which the changed row is bound."""
        key = self._tables.key
        return {n for n, (k, _) in binding.items() if k == key and self.reads_changed(n)}

    def _completed(self, branch: Branch, bound: Binding) -> Iterator[Binding]:
        """All rows of the content that extend the bound rows."""
        query = self._query
        if len(bound) == len(query.nodes):
            yield bound
            return
        join, other = next(
            (join, other)
            for join in query.joins
            for here, other in ((join.left, join.right), (join.right, join.left))
            if here in bound and other not in bound
        )
        box, relation = branch[other], query.nodes[other].relation
        for key, row in self.joining(join, bound, other):
            if contains(box, relation, row):
                more = {**bound, other: (key, row)}
                if all(_agrees(query, one, more) for one in query.joins if one is not join):
                    yield from self._completed(branch, more)


def effects(query: Query, tables: Tables, old: Row | None, new: Row | None) -> set[Effect]:
    """The effects on the content when a row of a table changes."""
    before, after = Version(query, tables, old), Version(query, tables, new)
    shown = _shown_differently(query, before, after)
    return _found(query, before, after, Effect.LEAVE, shown) | _found(
        query, after, before, Effect.ENTER, set()
    )


def _found(
    query: Query, here: Version, there: Version, gone: Effect, shown: set[int]
) -> set[Effect]:
    """Whether rows of the content are `here` and not `there` (`gone`), or in both and different at
    one of the nodes in `shown`. Stops when nothing more can be found."""
    found: set[Effect] = set()
    for branch in query.branches:
        sought = {Effect.CHANGE} if shown else set()
        # From these nodes, any row of the content that stays is one that changes.
        starts = sorted(shown)
        if not _stays(query, branch, here, there):
            sought.add(gone)
            starts += sorted(set(range(len(query.nodes))) - shown)
        for binding in chain.from_iterable(here.content_rows(branch, node) for node in starts):
            if sought <= found:
                break
            if not there.has(binding):
                found.add(gone)
            elif here.nodes_changed(binding) & shown:
                found.add(Effect.CHANGE)
    return found


def _shown_differently(query: Query, before: Version, after: Version) -> set[int]:
    """The nodes at which both versions of the changed row are visible, with different output
    values."""
    pairs = (
        (one, before.row_at(one.node), after.row_at(one.node))
        for one in query.outputs
        if before.reads_changed(one.node)
    )
    return {
        output.node
        for output, old, new in pairs
        if old is not None and new is not None
        if not _is_same(old[output.column], new[output.column])
    }


def _is_same(one: Stored, other: Stored) -> bool:
    """Equality as subscribers see it: NaN equals NaN."""
    return one == other or (one != one and other != other)


def _stays(query: Query, branch: Branch, here: Version, there: Version) -> bool:
    """Whether it is certain that all rows of the content that a branch selects `here` are `there`,
    too: the changed row has the same join values and satisfies the same conditions. Then they need
    not be enumerated."""
    if here.row is None or there.row is None:
        return here.row is None
    for number, node in enumerate(query.nodes):
        if not here.reads_changed(number):
            continue
        mine, theirs = here.row_at(number), there.row_at(number)
        assert mine is not None
        assert theirs is not None
        fulfilled = contains(branch[number], node.relation, mine)
        if fulfilled and not contains(branch[number], node.relation, theirs):
            return False
        for columns in _join_columns(query, number):
            one, other = (join_value(node.relation, columns, row) for row in (mine, theirs))
            if one != other:
                return False
    return True


def _join_columns(query: Query, node: int) -> Iterator[tuple[int, ...]]:
    """The columns of a node in each of its joins."""
    return (_seen_from(j, node)[2] for j in query.joins if node in (j.left, j.right))


def _seen_from(join: Join, other: int) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """The node that a join connects with another one, its columns and those of the other one."""
    side = 0 if other == join.right else 1
    ours = tuple(pair[side] for pair in join.columns)
    theirs = tuple(pair[1 - side] for pair in join.columns)
    return (join.left if side == 0 else join.right), ours, theirs


def _agrees(query: Query, join: Join, bound: Binding) -> bool:
    """Whether bound rows satisfy a join; True if one of its nodes is not bound."""
    if join.left not in bound or join.right not in bound:
        return True
    return _fulfils(query, join, bound[join.left][1], bound[join.right][1])


def _fulfils(query: Query, join: Join, left: Row, right: Row) -> bool:
    _, ours, theirs = _seen_from(join, join.right)
    value = join_value(query.nodes[join.left].relation, ours, left)
    return value is not None and value == join_value(
        query.nodes[join.right].relation, theirs, right
    )
