"""Many events at once: those that are plain, by relation, and the others as they are."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np

from penstock.catalog import Catalog
from penstock.engine.columnar.columns import PlainColumns
from penstock.engine.columnar.forms import Ints, form_of, names_of
from penstock.engine.columnar.reading import Fields, Sheet, Texts, read_events, tables_of
from penstock.engine.strict_json import MAX_EVENT_BYTES

MAX_FORMS = 500
"""Names of tables are compared one by one."""

_readers: WeakKeyDictionary[Catalog, tuple[int, ColumnReader]] = WeakKeyDictionary()


def column_reader(catalog: Catalog) -> ColumnReader:
    """The reader of the relations that a catalog has now."""
    size, reader = _readers.get(catalog, (-1, None))
    if reader is None or size != len(catalog):
        reader = ColumnReader(catalog)
        _readers[catalog] = len(catalog), reader
    return reader


class ColumnReader:
    """Reads the events of the relations that a catalog had when it was made."""

    def __init__(self, catalog: Catalog) -> None:
        forms = [(relation, form_of(relation)) for relation in list(catalog)[:MAX_FORMS]]
        self._forms = [(relation, form) for relation, form in forms if form is not None]
        self._since = [catalog.since(relation.name) for relation, _ in self._forms]
        self._names = names_of([relation.name for relation, _ in self._forms])

    def read(
        self, offsets: Sequence[int], bodies: Sequence[bytes]
    ) -> tuple[list[PlainColumns], list[int]]:
        """The plain events by relation, and the numbers of those that are not plain."""
        texts, at = _joined(bodies), np.array(offsets, np.int64)
        tables = tables_of(texts, self._names)
        lengths = np.diff(texts.ends, prepend=0)
        tables[lengths > MAX_EVENT_BYTES] = -1
        others, found = [np.flatnonzero(tables < 0)], []
        for number, since in enumerate(self._since):
            which = np.flatnonzero(tables == number)
            if not len(which):
                continue
            sheet = self._sheet(texts, number, which, at[which])
            is_plain = (sheet.ops >= 0) & (sheet.offsets > since)
            others.append(which[~is_plain])
            if is_plain.any():
                found.append(PlainColumns(self._forms[number][0], _chosen(sheet, is_plain)))
        return found, np.sort(np.concatenate(others)).tolist()

    def _sheet(self, texts: Texts, number: int, which: Ints, offsets: Ints) -> Sheet:
        form = self._forms[number][1]
        shape = (len(which), len(form.kinds))
        values, ops = np.empty(shape, np.int64), np.empty(len(which), np.int8)
        lengths, states = np.empty(shape, np.int32), np.empty(shape, np.uint8)
        fields = Fields(values, values.view(np.float64), lengths, states)
        read_events(texts, which, form, fields, ops)
        return Sheet(texts.data, form, offsets, ops, fields)


def _joined(bodies: Sequence[bytes]) -> Texts:
    joined = b"".join(bodies)
    ends = np.cumsum(np.fromiter(map(len, bodies), np.int64, len(bodies)))
    try:
        # No letter goes from one event into the next: a plain event begins and ends with a brace.
        joined.decode()
        only_ascii = False
    except UnicodeDecodeError:
        only_ascii = True
    return Texts(np.frombuffer(joined, np.uint8), ends, only_ascii)


def _chosen(sheet: Sheet, is_chosen: np.ndarray) -> Sheet:
    if is_chosen.all():
        return sheet
    fields = sheet.fields
    values = fields.values[is_chosen]
    kept = Fields(
        values, values.view(np.float64), fields.lengths[is_chosen], fields.states[is_chosen]
    )
    return Sheet(sheet.data, sheet.form, sheet.offsets[is_chosen], sheet.ops[is_chosen], kept)
