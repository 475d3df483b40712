"""Rows with derived columns, computed from rows of a table.

A change of a table is also a change of every extended relation over it that has subscriptions
(`penstock.catalog.derived`). Updates may give a few columns only, so derived values are computed
where the whole row is known, after the change is resolved: for all rows of a batch at once, and
each definition once, however many relations have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from penstock.catalog import Relation, Row, RowKey
from penstock.catalog.derived import Definition, ExtendedRelation
from penstock.catalog.payload_split import HalfRelation
from penstock.catalog.unnested import UnnestedRelation
from penstock.flow.changes import Delta
from penstock.flow.payloads import half_deltas, half_rows
from penstock.flow.state import RowStore, in_parts
from penstock.flow.unnested import unnested_rows, unnested_table

if TYPE_CHECKING:
    from penstock.flow.index import Index

LazyValues: TypeAlias = Mapping[Definition, bool | None]
"""The operator columns of a row."""
KeyedRows: TypeAlias = Sequence[tuple[RowKey, Row]]
RowOperators: TypeAlias = Callable[[Relation], Callable[[KeyedRows], Sequence[LazyValues]] | None]
"""For a table: the function that gives the operator columns of its rows, None if not needed."""


def deltas_of(relation: Relation, run: Sequence[Delta]) -> list[Delta]:
    """Changes of tables, translated to one relation, without operator columns."""
    if isinstance(relation, UnnestedRelation):
        return unnested_table(relation).deltas(deltas_of(relation.base, run))
    if isinstance(relation, ExtendedRelation):
        return extended_deltas([relation], deltas_of(relation.base, run))
    if isinstance(relation, HalfRelation):
        of_both = half_deltas(relation.halves, deltas_of(relation.halves.whole, run))
        return [delta for delta in of_both if delta.relation.name == relation.name]
    return [delta for delta in run if delta.relation.name == relation.name]


def unnested_deltas(index: Index, run: Sequence[Delta]) -> list[Delta]:
    """Changes of one table, translated to its XMLTABLE relations."""
    unnested = index.derived.unnested(run[0].relation) if run else None
    return [] if unnested is None else unnested.deltas(run)


def halved_deltas(index: Index, run: Iterable[Delta]) -> list[Delta]:
    """Changes of tables, and of relations that extend them, translated to their halves."""
    found: list[Delta] = []
    for mine in by_table(run):
        for halves in index.derived.halves(mine[0].relation):
            found += half_deltas(halves, mine)
    return found


def by_table(run: Iterable[Delta]) -> list[list[Delta]]:
    of_table: dict[str, list[Delta]] = {}
    for delta in run:
        of_table.setdefault(delta.relation.name, []).append(delta)
    return list(of_table.values())


def extended_deltas(
    relations: Sequence[ExtendedRelation],
    run: Sequence[Delta],
    before: Sequence[LazyValues] = (),
    after: Sequence[LazyValues] = (),
) -> list[Delta]:
    """Changes of one table, translated to relations that extend it. `before` and `after` are the
    operator columns of the rows of each change, if any were evaluated."""
    if not relations or not run:
        return []
    rows: list[Row] = []
    results: list[LazyValues] = []
    for i, delta in enumerate(run):
        for row, of_operators in ((delta.old, before), (delta.new, after)):
            if row is not None:
                rows.append(row)
                results.append(of_operators[i] if of_operators else {})
    values = DerivedValues(relations, rows, results)
    found: list[Delta] = []
    for relation in relations:
        extended = values.rows(relation)
        for offset, _, key, old, new in run:
            was = None if old is None else next(extended)
            is_now = None if new is None else next(extended)
            found.append(Delta(offset, relation, key, was, is_now))
    return found


class DerivedValues:
    """The derived values of some rows of one table, for several relations."""

    def __init__(
        self,
        relations: Sequence[ExtendedRelation],
        rows: Sequence[Row],
        results: Sequence[LazyValues] = (),
    ) -> None:
        """`results` are the operator columns of each row; empty if there are none."""
        wanted = [one for relation in relations for one in relation.definitions]
        expressions = list(dict.fromkeys(one for one in wanted if not one.is_lazy))
        lazy = list(dict.fromkeys(one for one in wanted if one.is_lazy))
        self._numbers = {one: i for i, one in enumerate([*expressions, *lazy])}
        self._rows = rows
        from penstock.expressions import compute  # DuckDB is slow to import

        self._values = compute(expressions, relations[0].base, rows)
        if lazy:
            known: Sequence[LazyValues] = results or [{}] * len(rows)
            self._values = [
                (*values, *(mine.get(one) for one in lazy))
                for values, mine in zip(self._values, known, strict=True)
            ]

    def rows(self, relation: ExtendedRelation) -> Iterator[Row]:
        """The rows with the columns of a relation, in their order."""
        mine = [self._numbers[one] for one in relation.definitions]
        for row, values in zip(self._rows, self._values, strict=True):
            yield (*row, *(values[i] for i in mine))


def rows_of(
    store: RowStore, relation: Relation, operators: RowOperators | None = None
) -> Iterator[tuple[RowKey, Row]]:
    """The rows of a table as they are stored, or those of a relation that is derived from one."""
    if isinstance(relation, HalfRelation):
        return half_rows(relation, rows_of(store, relation.halves.whole, operators))
    if isinstance(relation, UnnestedRelation):
        return unnested_rows(relation, store.rows(relation.base))
    if not isinstance(relation, ExtendedRelation):
        return store.rows(relation)
    return _extended_rows(store, relation, operators)


def _extended_rows(
    store: RowStore, relation: ExtendedRelation, operators: RowOperators | None
) -> Iterator[tuple[RowKey, Row]]:
    ask = None if operators is None or not relation.lazy_columns else operators(relation.base)
    stored = rows_of(store, relation.base)
    if ask is not None:
        stored = iter(list(stored))  # a copy: operator results go into the store meanwhile
    for part in in_parts(stored):
        results = () if ask is None else ask(part)
        values = DerivedValues([relation], [row for _, row in part], results)
        yield from zip((key for key, _ in part), values.rows(relation), strict=True)
