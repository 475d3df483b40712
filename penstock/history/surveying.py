"""The steps of a survey: the history of every row, then the sizes of every join group."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter

from penstock.catalog import Catalog, Relation, Row
from penstock.catalog.derived import base_name
from penstock.catalog.payload_split import is_split
from penstock.catalog.unnested import is_unnested
from penstock.errors import ChangeError
from penstock.flow.changes import row_after
from penstock.flow.row_codec import group_place
from penstock.history.rows import EVERYWHERE, HistoryKind, HistoryRow, place_of
from penstock.history.survey import Survey
from penstock.history.survey_changes import unpack_change
from penstock.packing import pack, unpack
from penstock.spaces import Edge, join_value


def survey_rows(
    rows: Iterable[HistoryRow], catalog: Catalog, edges: Sequence[Edge]
) -> Iterator[HistoryRow]:
    """Counts of the changes of some places, whose rows come sorted; and the groups their rows are
    in."""
    survey = Survey()
    for _, history in groupby(rows, attrgetter("place")):
        current: dict[tuple[str, object], tuple[Relation, Row]] = {}
        for row in history:
            if row.kind == HistoryKind.REFUSED:
                survey.unreadable += row.step
            else:
                _carry_out(row, catalog, current, survey)
        for relation, kept in current.values():
            survey.table(relation).note_row(relation, kept)
            yield from _members(relation, kept, edges)
    yield part_row(survey)


def _carry_out(
    event: HistoryRow,
    catalog: Catalog,
    current: dict[tuple[str, object], tuple[Relation, Row]],
    survey: Survey,
) -> None:
    checked = unpack_change(event.body, catalog)
    relation, place = checked.relation, (checked.relation.name, checked.key)
    old = current[place][1] if place in current else None
    try:
        new = row_after(checked, old)
    except ChangeError:
        survey.table(relation).refused += 1
        return
    if old is None and new is None:
        return  # the row to be removed does not exist
    survey.table(relation).note_change(event.offset, old, new)
    if new is None:
        del current[place]
    else:
        current[place] = (relation, new)


def _members(relation: Relation, row: Row, edges: Sequence[Edge]) -> Iterator[HistoryRow]:
    """The groups that a row is in, as rows at the places of those groups. Only joins on declared
    columns are counted, not those on columns of XMLTABLE."""
    for number, edge in enumerate(edges):
        for side, end in enumerate(edge.sides):
            is_mine = not is_split(end.table) and base_name(end.table) == relation.name
            if is_mine and not is_unnested(end.table):
                value = join_value(relation, end.columns, row)
                if value is not None:
                    place = place_of(group_place(edge, value))
                    body = pack([number, value])
                    yield HistoryRow(place, 0, HistoryKind.SEED, side, body)


def survey_groups(rows: Iterable[HistoryRow], edges: Sequence[Edge]) -> Iterator[HistoryRow]:
    """Counts of the groups of some places, whose rows come sorted; other rows are passed on."""
    survey = Survey()
    for _, members in groupby(rows, attrgetter("place")):
        sizes: dict[bytes, Counter[int]] = {}
        for row in members:
            if row.kind == HistoryKind.SEED:
                sizes.setdefault(row.body, Counter())[row.step] += 1
            else:
                yield row
        for body, size in sizes.items():
            number, _ = unpack(body)
            survey.edge(edges[number].name).note_group((size[0], size[1]))
    yield part_row(survey)


def part_row(survey: Survey) -> HistoryRow:
    return HistoryRow(EVERYWHERE, 0, HistoryKind.TOTALS, 0, pickle.dumps(survey))


def whole(rows: Iterable[HistoryRow]) -> Survey:
    """The survey, merged from the parts of all tasks."""
    return Survey.of_parts(pickle.loads(row.body) for row in rows)
