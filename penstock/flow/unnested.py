"""Unnested rows: the rows that XMLTABLE extracts from the documents of a table's row.

A change of a row changes each row of an XMLTABLE that differs, so one record may change many rows
of an unnested relation (`penstock.catalog.unnested`). All views of a column are matched in one pass
over a document, and evaluated together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from penstock.catalog import Relation, Row, RowKey, Stored
from penstock.catalog.unnested import UnnestedRelation, XmlTable
from penstock.documents.evaluation import MAX_RESULT_ROWS
from penstock.documents.extraction import Extraction
from penstock.documents.unnesting import DocumentViews, Extracted, View, parse_stored
from penstock.flow.changes import Delta, is_same_row
from penstock.matching.tiers import TierPolicy, Tiers

POLICY = TierPolicy(delta_items=32, smallest=32, ratio_bits=2, fanout=4)
"""New views are matched separately until there are enough of them to be merged: adding a view does
not recompile all of them."""

_Found: TypeAlias = dict[XmlTable, Extracted]


class ColumnViews:
    """All views over the documents of one column of a table."""

    def __init__(self) -> None:
        self._known: set[XmlTable] = set()
        self._tiers: Tiers[XmlTable, XmlTable, DocumentViews] = Tiers(POLICY, _merged)
        self._newest: DocumentViews | None = None

    def add(self, table: XmlTable) -> None:
        if table not in self._known:
            self._known.add(table)
            self._tiers.add(table, table)
            self._newest = None

    def rows(self, text: str) -> _Found:
        """The rows that the views extract from a document, for views that extract any."""
        if self._newest is None:
            self._newest = DocumentViews(list(self._tiers.delta))
        extraction = Extraction(parse_stored(text))
        parts = [*self._tiers.segments, self._newest]
        return {table: rows for part in parts if len(part) for table, rows in part.rows(extraction)}


def _merged(new: Sequence[XmlTable], old: Sequence[DocumentViews]) -> DocumentViews:
    return DocumentViews([*(table for part in old for table in part.tables), *new])


class UnnestedTable:
    """The unnested relations over one table that some point was ever over."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._by_first: dict[XmlTable, list[UnnestedRelation]] = {}
        """Relations by their first XMLTABLE; they have rows only if it has."""
        self._columns: dict[int, ColumnViews] = {}

    def __iter__(self) -> Iterator[UnnestedRelation]:
        return (one for relations in self._by_first.values() for one in relations)

    def add(self, relation: UnnestedRelation) -> None:
        if relation.name in self._names:
            return
        self._names.add(relation.name)
        self._by_first.setdefault(relation.tables[0], []).append(relation)
        for table in relation.tables:
            if table.document < len(relation.base.columns):
                self._columns.setdefault(table.document, ColumnViews()).add(table)

    def deltas(self, run: Sequence[Delta]) -> list[Delta]:
        """Changes of the table, translated to its unnested relations, each by ascending offset."""
        found: dict[str, list[Delta]] = {}
        for offset, _, key, old, new in run:
            was = {} if old is None else self._views_of(old, {}, None)
            is_now = {} if new is None else self._views_of(new, was, old)
            for table in dict.fromkeys((*was, *is_now)):
                for relation in self._by_first.get(table, ()):
                    before = {} if old is None else _rows(relation, old, key, was)
                    after = {} if new is None else _rows(relation, new, key, is_now)
                    mine = found.setdefault(relation.name, [])
                    for one in _differences(relation, before, after):
                        mine.append(Delta(offset, relation, *one))
        return [delta for deltas in found.values() for delta in deltas]

    def rows(
        self, relation: UnnestedRelation, key: RowKey, row: Row
    ) -> Iterable[tuple[RowKey, Row]]:
        """The rows of one of the relations that a row of the table gives."""
        return _rows(relation, row, key, self._views_of(row, {}, None)).items()

    def _views_of(self, row: Row, known: _Found, known_of: Row | None) -> _Found:
        """The rows that all views extract from the documents of a row; documents of columns that
        have not changed since `known_of` are taken from `known`."""
        found: _Found = {}
        for column, views in self._columns.items():
            text = row[column]
            if text is not None and known_of is not None and known_of[column] == text:
                found |= {table: rows for table, rows in known.items() if table.document == column}
            elif text is not None:
                assert isinstance(text, str)
                found |= views.rows(text)
        return found


def _differences(
    relation: Relation, before: dict[RowKey, Row], after: dict[RowKey, Row]
) -> Iterator[tuple[RowKey, Row | None, Row | None]]:
    for key in dict.fromkeys((*before, *after)):
        old, new = before.get(key), after.get(key)
        if not is_same_row(relation, old, new):
            yield key, old, new


def _rows(
    relation: UnnestedRelation, row: Row, key: RowKey, found: Mapping[XmlTable, Extracted]
) -> dict[RowKey, Row]:
    """The rows of an unnested relation that a row of the table gives, from the rows that views
    extracted: all combinations of them, or none if these are too many."""
    combined: list[tuple[tuple[str, ...], Row]] = [((), row)]
    width = len(relation.base.columns)
    for table in relation.tables:
        more: list[tuple[tuple[str, ...], Row]] = []
        for places, wide in combined:
            if table.document < width:
                extracted: Extracted = found.get(table, [])
            else:
                extracted = _rows_of_part(table, wide[table.document])
            if len(more) + len(extracted) > MAX_RESULT_ROWS:
                return {}
            more += [((*places, p), (*wide, p, *cells)) for p, cells in extracted]
        combined = more
    if not relation.base.key:  # identified by the first node column, which begins with the offset
        return dict(_without_key(relation, key, combined))
    return {(*key, *places): _omitting(relation, wide) for places, wide in combined}


def _without_key(
    relation: UnnestedRelation, key: RowKey, rows: Iterable[tuple[tuple[str, ...], Row]]
) -> Iterator[tuple[RowKey, Row]]:
    first = relation.key[0]
    for (nodes, *others), row in rows:
        place = f"{key[0]}/{nodes}"
        wide = (*row[:first], place, *row[first + 1 :])
        yield (place, *others), _omitting(relation, wide)


def _omitting(relation: UnnestedRelation, row: Row) -> Row:
    if not relation.omitted:
        return row
    cells = list(row)
    for column in relation.omitted:
        cells[column] = None
    return tuple(cells)


@lru_cache(maxsize=10_000)
def _view(table: XmlTable) -> View:
    return View(table)


def _rows_of_part(table: XmlTable, text: Stored) -> Extracted:
    """The rows that an XMLTABLE extracts from a part that another one extracted."""
    if text is None:
        return []
    assert isinstance(text, str)
    return _view(table).rows(Extraction(parse_stored(text)))


@lru_cache(maxsize=1_000)
def unnested_table(relation: UnnestedRelation) -> UnnestedTable:
    """An `UnnestedTable` with this relation only."""
    only = UnnestedTable()
    only.add(relation)
    return only


def unnested_rows(
    relation: UnnestedRelation, rows: Iterator[tuple[RowKey, Row]]
) -> Iterator[tuple[RowKey, Row]]:
    """The rows of one unnested relation, given those of its table."""
    only = unnested_table(relation)
    for key, row in rows:
        yield from only.rows(relation, key, row)
