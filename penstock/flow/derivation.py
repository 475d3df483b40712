"""What rows and changes of tables are to relations with derived columns, in one batch.

Expressions are computed for every row. Operators are asked about rows that somebody may select; a
row is then one of the relations that have a branch which matches it, before or after. A relation
that takes part in joins has all rows: they are in groups, whoever selects them.
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
    """What changes of tables are to relations with derived columns."""

    deltas: list[Delta]
    failures: dict[int, OperatorFailure]
    """By offset, why a change must be refused: an operator cannot evaluate its row."""
    keeping: list[Callable[[], None]]
    """Keep what operators said; to be done once no change is refused."""

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
        """`silent`: what is derived was told before; nothing can be refused any more."""
        self._source = source
        self._span = span
        self._silent = silent

    @property
    def _index(self) -> Index:
        return self._source.index_at(self._span)

    def derive(self, run: Sequence[Delta], store: RowStore | None) -> Derived:
        """What changes of tables are to the relations that extend them, table by table. Without a
        store nothing is kept of what operators say."""
        derived = Derived.of([])
        for mine in by_table(run) if self._index.derived else ():
            derived.extend(self._extend(mine, store))
            derived.extend(self._unnest(mine, store))
        return self._kept(derived)

    def derive_apart(
        self, asked: Sequence[Delta], run: Sequence[Delta], store: RowStore | None
    ) -> Derived:
        """What changes of one table are to relations whose rows are always objects: those that need
        operators, for the changes that they must be asked about; and those made of documents."""
        derived = self._derive_lazily(asked, store)
        derived.extend(self._unnest(run, store))
        return self._kept(derived)

    def _kept(self, derived: Derived) -> Derived:
        """Keep what operators said, if no change is refused: else all are derived again."""
        if not derived.failures:
            for keep in derived.keeping:
                keep()
        return derived

    def _unnest(self, run: Sequence[Delta], store: RowStore | None) -> Derived:
        """What changes of one table are to the relations that XMLTABLE makes of it, and to those
        that extend these."""
        derived = Derived.of(unnested_deltas(self._index, run))
        for mine in by_table(derived.deltas):
            derived.extend(self._extend(mine, store))
        return derived

    def _extend(self, run: Sequence[Delta], store: RowStore | None) -> Derived:
        """What changes of one relation are to those that extend it."""
        extended = extended_deltas(self._index.derived.always_extended(run[0].relation), run)
        derived = Derived.of(extended + halved_deltas(self._index, [*run, *extended]))
        derived.extend(self._derive_lazily(run, store))
        return derived

    def _derive_lazily(self, run: Sequence[Delta], store: RowStore | None) -> Derived:
        """What changes of one relation are to those that extend it and need operators."""
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
        """Who computes what operators say of rows in a store."""

        def of_table(table: Relation) -> Callable[[KeyedRows], Sequence[LazyValues]] | None:
            columns = self._columns(table, store)
            return None if columns is None else columns.rows

        return of_table

    def ask_about_rows(self, store: RowStore) -> list[Delta]:
        """Ask operators about the rows of a store, for new points; what the rows become by that to
        relations that take part in joins. Nobody is told: no point but the new ones can need it."""
        found: list[Delta] = []
        index, new = self._index, self._source.new_points(self._span)
        for table, points in new.asking_by_table:
            columns = self._columns(table, store)
            if columns is None:
                continue
            joined: list[ExtendedRelation] = [
                one for one in index.derived.lazily_extended(table) if self._is_joined(one)
            ]
            rows = iter(list(rows_of(store, table)))  # what operators say is put into the store
            for part in in_parts(rows):
                run = [Delta(self._span.start, table, key, row, row) for key, row in part]
                before, after = columns.ask(part, points, self._span.start)
                found += extended_deltas(joined, run, before, after)
        found = [one for one in found if one.old != one.new]
        return found + halved_deltas(index, found)

    def _columns(self, table: Relation, store: RowStore | None) -> OperatorColumns | None:
        """Who evaluates operators for the rows of a table; None, if no subscription asks for any.
        OperatorError if an operator that subscriptions call is not there."""
        candidates = self._index.derived.candidates(table)
        if not candidates:
            return None
        runtime = self._source.operators()
        if runtime is None:
            raise OperatorError("nobody evaluates operators in this process")
        return OperatorColumns(runtime, candidates, store)
