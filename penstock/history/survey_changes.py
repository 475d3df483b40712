"""The changes of some tables, each at the place of its row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.catalog import Catalog
from penstock.errors import ChangeError
from penstock.flow.changes import Checked
from penstock.flow.kinds import Kind
from penstock.flow.row_codec import change_row, decode_rows, pack_rows, row_place
from penstock.history.rows import HistoryKind, HistoryRow, place_of, refused


def change_rows(
    changes: Iterable[tuple[int, Checked | ChangeError]], tables: frozenset[str]
) -> Iterator[HistoryRow]:
    """The changes of the surveyed tables; all others are skipped."""
    bad = 0
    for offset, change in changes:
        if isinstance(change, ChangeError):
            bad += 1
        elif change.relation.name in tables:
            place = place_of(row_place(change.relation.name, change.key))
            body = pack_rows(Kind.CHANGE, [change_row(offset, change)])
            yield HistoryRow(place, offset, HistoryKind.CHANGE, 0, body)
    yield refused(bad)


def unpack_change(body: bytes, catalog: Catalog) -> Checked:
    ((_, name, op, key, row, given),) = decode_rows(Kind.CHANGE, body)
    return Checked(catalog[name], op, key, row, given)
