"""Rows and changes of tables, translated to relations with derived columns, in one batch.

Expressions are computed for every row. Operators are evaluated only for rows that some subscription
may select; a row then belongs to the relations with a branch that matches it, before or after the
change. A relation that takes part in joins has all rows: groups contain them regardless of which
subscriptions select them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from penstock.catalog import Relation
from penstock.catalog.derived import ExtendedRelation
from penstock.errors import OperatorError
from penstock.flow.changes import Delta
from penstock.flow.derived import (
    KeyedRows,
    LazyValues,
    RowOperators,
    by_table,
    extended_deltas,
    halved_deltas,
    rows_of,
    unnested_deltas,
)
from penstock.flow.index import Index
from penstock.flow.index_source import IndexSource
from penstock.flow.kinds import Span
from penstock.flow.operator_columns import OperatorColumns, Settled
from penstock.flow.state import RowStore, in_parts
from penstock.operators.failures import OperatorFailure


class Derived(NamedTuple):
    """Changes of tables, translated to relations with derived columns."""

    deltas: list[Delta]
    failures: dict[int, OperatorFailure]
    """By offset, why a change must be refused: an operator failed on its row."""
    keeping: list[Callable[[], None]]
    """Callbacks that store operator results; to be called once no change is refused."""

    @classmethod
    def of(cls, deltas: list[Delta]) -> Derived:
        return cls(deltas, {}, [])

    def extend(self, more: Derived) -> None:
        self.deltas.extend(more.deltas)
        for offset, failure in more.failures.items():
            self.failures.setdefault(offset, failure)
        self.keeping.extend(more.keeping)


class Derivation:
    def __init__(self, source: IndexSource, span: Span, *, silent: bool) -> None:
        """`silent`: the messages of these changes were emitted before; none can be refused now."""
        self._source = source
        self._span = span
        self._silent = silent

    @property
    def _index(self) -> Index:
        return self._source.index_at(self._span)

    def derive(self, run: Sequence[Delta], store: RowStore | None) -> Derived:
        """Changes of tables, translated to the relations that extend them, table by table. Without
        a store, operator results are not kept."""
        derived = Derived.of([])
        for mine in by_table(run) if self._index.derived else ():
            derived.extend(self._extend(mine, store))
            derived.extend(self._unnest(mine, store))
        return self._kept(derived)

    def derive_apart(
        self, asked: Sequence[Delta], run: Sequence[Delta], store: RowStore | None
    ) -> Derived:
        """Changes of one table, translated to relations whose rows are always objects: relations
        with operators, for the changes in `asked`; and relations over documents."""
        derived = self._derive_lazily(asked, store)
        derived.extend(self._unnest(run, store))
        return self._kept(derived)

    def _kept(self, derived: Derived) -> Derived:
        """Store operator results if no change is refused; otherwise all are derived again."""
        if not derived.failures:
            for keep in derived.keeping:
                keep()
        return derived

    def _unnest(self, run: Sequence[Delta], store: RowStore | None) -> Derived:
        """Changes of one table, translated to its XMLTABLE relations and to those that extend
        them."""
        derived = Derived.of(unnested_deltas(self._index, run))
        for mine in by_table(derived.deltas):
            derived.extend(self._extend(mine, store))
        return derived

    def _extend(self, run: Sequence[Delta], store: RowStore | None) -> Derived:
        """Changes of one relation, translated to those that extend it."""
        extended = extended_deltas(self._index.derived.always_extended(run[0].relation), run)
        derived = Derived.of(extended + halved_deltas(self._index, [*run, *extended]))
        derived.extend(self._derive_lazily(run, store))
        return derived

    def _derive_lazily(self, run: Sequence[Delta], store: RowStore | None) -> Derived:
        """Changes of one relation, translated to those that extend it and need operators."""
        columns = self._columns(run[0].relation, store) if run else None
        if columns is None:
            return Derived.of([])
        settled = columns.settle(run)
        failures = {} if self._silent else settled.failures
        keep = partial(columns.keep, settled, silent=self._silent)
        return Derived(self._lazy_deltas(run, settled), failures, [keep])

    def _lazy_deltas(self, run: Sequence[Delta], settled: Settled) -> list[Delta]:
        deltas: list[Delta] = []
        every = range(len(run))
        for relation in self._index.derived.lazily_extended(run[0].relation):
            which = every if self._is_joined(relation) else settled.rows_of(relation)
            if which:
                deltas += extended_deltas(
                    [relation],
                    [run[i] for i in which],
                    [settled.before[i] for i in which],
                    [settled.after[i] for i in which],
                )
        return deltas + halved_deltas(self._index, deltas)

    def _is_joined(self, relation: Relation) -> bool:
        """Whether a relation takes part in joins, or its halves do."""
        return bool(self._index.edges_of(relation) or self._index.derived.halves(relation))

    def needs_all_rows(self, table: Relation) -> bool:
        """Whether a relation that needs operators takes part in joins."""
        return any(map(self._is_joined, self._index.derived.lazily_extended(table)))

    def row_operators(self, store: RowStore) -> RowOperators:
        """By table, the function that gives operator results for rows in a store."""

        def of_table(table: Relation) -> Callable[[KeyedRows], Sequence[LazyValues]] | None:
            columns = self._columns(table, store)
            return None if columns is None else columns.rows

        return of_table

    def ask_about_rows(self, store: RowStore) -> list[Delta]:
        """Evaluate operators on the rows of a store, for new points; returns the resulting changes
        of relations that take part in joins. These emit no messages: only the new points can need
        them."""
        found: list[Delta] = []
        index, new = self._index, self._source.new_points(self._span)
        for table, points in new.asking_by_table:
            columns = self._columns(table, store)
            if columns is None:
                continue
            joined: list[ExtendedRelation] = [
                one for one in index.derived.lazily_extended(table) if self._is_joined(one)
            ]
            rows = iter(list(rows_of(store, table)))  # a copy: operator results go into the store
            for part in in_parts(rows):
                run = [Delta(self._span.start, table, key, row, row) for key, row in part]
                before, after = columns.ask(part, points, self._span.start)
                found += extended_deltas(joined, run, before, after)
        found = [one for one in found if one.old != one.new]
        return found + halved_deltas(index, found)

    def _columns(self, table: Relation, store: RowStore | None) -> OperatorColumns | None:
        """The evaluator of operator columns for a table; None if no subscription uses any.
        OperatorError if an operator that subscriptions call is missing."""
        candidates = self._index.derived.candidates(table)
        if not candidates:
            return None
        runtime = self._source.operators()
        if runtime is None:
            raise OperatorError("nobody evaluates operators in this process")
        return OperatorColumns(runtime, candidates, store)
