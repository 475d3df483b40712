"""Parses batches of events: plain ones by relation; the others are left to the plain gear."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from penstock.catalog import Catalog
from penstock.flow.columnar.columns import PlainColumns
from penstock.flow.columnar.json_kernels import (
    ParsedEvents,
    Texts,
    empty_cells,
    read_events,
    tables_of,
)
from penstock.flow.columnar.layout import form_of, names_of
from penstock.flow.per_catalog import per_catalog
from penstock.flow.strict_json import MAX_EVENT_BYTES
from penstock.kernels.arrays import Ints

MAX_FORMS = 500
"""Maximum relations read by kernels, because table names are compared one by one."""

VALUES_AT_ONCE = 1 << 22
"""Maximum cells per parsed sheet: 55 MB."""


@per_catalog
def column_reader(catalog: Catalog) -> ColumnReader:
    """The reader for the relations of a catalog."""
    return ColumnReader(catalog)


class ColumnReader:
    """Parses events of the relations that the catalog has at construction."""

    def __init__(self, catalog: Catalog) -> None:
        self._forms = [(relation, form_of(relation)) for relation in list(catalog)[:MAX_FORMS]]
        self._since = [catalog.since(relation.name) for relation, _ in self._forms]
        self._names = names_of([relation.name for relation, _ in self._forms])

    def read(
        self, offsets: Sequence[int], bodies: Sequence[bytes]
    ) -> tuple[list[PlainColumns], list[int]]:
        """The plain events by relation, and the numbers of those that are not plain."""
        texts, at = _concat(bodies), np.array(offsets, np.int64)
        tables = tables_of(texts, self._names)
        tables[np.diff(texts.ends, prepend=0) > MAX_EVENT_BYTES] = -1
        others, found = [np.flatnonzero(tables < 0)], []
        for number in np.unique(tables[tables >= 0]).tolist():
            relation, _ = self._forms[number]
            for which in _parts(np.flatnonzero(tables == number), len(relation.columns)):
                sheet = self._sheet(texts, number, which, at[which])
                is_plain = (sheet.ops >= 0) & (sheet.offsets > self._since[number])
                others.append(which[~is_plain])
                if is_plain.any():
                    found.append(PlainColumns(relation, _chosen(sheet, is_plain)))
        return found, np.sort(np.concatenate(others)).tolist()

    def _sheet(self, texts: Texts, number: int, which: Ints, offsets: Ints) -> ParsedEvents:
        form = self._forms[number][1]
        fields, ops = empty_cells(len(which), form), np.empty(len(which), np.int8)
        read_events(texts, which, form, fields, ops)
        return ParsedEvents(texts.data, form, offsets, ops, fields)


def _parts(which: Ints, width: int) -> Iterator[Ints]:
    """Events in parts of at most VALUES_AT_ONCE cells."""
    most = max(1, VALUES_AT_ONCE // width)
    for first in range(0, len(which), most):
        yield which[first : first + most]


def _concat(bodies: Sequence[bytes]) -> Texts:
    joined = b"".join(bodies)
    ends = np.cumsum(np.fromiter(map(len, bodies), np.int64, len(bodies)))
    try:
        # No multi-byte character can span two plain events: they begin and end with a brace.
        joined.decode()
        only_ascii = False
    except UnicodeDecodeError:
        only_ascii = True
    return Texts(np.frombuffer(joined, np.uint8), ends, only_ascii)


def _chosen(sheet: ParsedEvents, is_chosen: np.ndarray) -> ParsedEvents:
    if is_chosen.all():
        return sheet
    kept = sheet.fields.take(is_chosen)
    return ParsedEvents(
        sheet.data, sheet.form, sheet.offsets[is_chosen], sheet.ops[is_chosen], kept
    )
