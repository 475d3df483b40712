"""The subscriptions of a home as views that could feed each other.

Subscriptions with one XMLTABLE and no further condition are tree patterns over the documents of a
column; those over one table with one box are selections. They are only read here: processing in the
home does not change.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from penstock.catalog import Relation, Row, RowKey, Stored, ValueType
from penstock.catalog.coercions import store_lossless
from penstock.catalog.derived import ExtendedRelation
from penstock.catalog.payload_split import is_payload
from penstock.catalog.plain import plain_type, type_from_plain
from penstock.catalog.types import Outside
from penstock.catalog.unnested import UnnestedRelation, XmlTable
from penstock.client import Initial
from penstock.documents.evaluation import ResultRow
from penstock.documents.patterns import TreePattern
from penstock.documents.unnesting import view_of
from penstock.errors import ChangeError, PenstockError, SqlError
from penstock.messages import Point
from penstock.query import Query
from penstock.spaces import place
from penstock.storage import Home
from penstock.views.box_language import BoxView

SAMPLE_DOCUMENTS = 50
"""Documents sampled to estimate the sizes of results."""
SAMPLE_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column visible to the subscriber: of the document's key, or of a node of the pattern."""

    label: str
    key_place: int
    """-1 if it is not part of the key."""
    node: int
    is_content: bool
    type: ValueType

    def plain(self) -> tuple[str, int, int, bool, Any]:
        return (self.label, self.key_place, self.node, self.is_content, plain_type(self.type))

    @classmethod
    def of_plain(
        cls, label: str, key_place: int, node: int, is_content: bool, plain: Any
    ) -> ShownColumn:
        return cls(label, key_place, node, is_content, type_from_plain(plain))

    def value(self, key: tuple[Stored, ...], row: ResultRow) -> Outside:
        """The visible value of a row of a document."""
        if self.key_place >= 0:
            return self.type.show(key[self.key_place])
        cell = row[self.node]
        if self.is_content:
            return (cell.cont or b"").decode()
        try:
            return self.type.show(store_lossless(self.type, cell.val or ""))
        except ChangeError:
            return None  # as in a row of the home


@dataclass(frozen=True, slots=True)
class TreeView:
    """A subscription with XMLTABLE."""

    id: int
    sql: str
    pattern: TreePattern
    relation: UnnestedRelation
    table: XmlTable
    point: Point
    columns: tuple[ShownColumn, ...]


@dataclass(frozen=True, slots=True)
class Selection:
    """A subscription over one table with one condition."""

    id: int
    sql: str
    relation: Relation
    point: Point
    view: BoxView


@dataclass(frozen=True, slots=True)
class HomeViews:
    documents: dict[str, list[TreeView]] = field(default_factory=dict)
    """By TABLE.COLUMN."""
    tables: dict[str, list[Selection]] = field(default_factory=dict)
    left_out: dict[int, str] = field(default_factory=dict)
    """Subscriptions that are not views, and why."""


def read_home_views(home: Home) -> HomeViews:
    """All current subscriptions of the home."""
    from penstock.registry import Registry

    found = HomeViews()
    with Registry(home) as registry:
        catalog = registry.catalog()
        for stored in registry.subscriptions():
            try:
                if stored.initial is Initial.NONE:
                    raise SqlError("it wants changes only")
                _add(found, stored.id, stored.query(catalog))
            except PenstockError as error:
                found.left_out[stored.id] = error.primary
    return found


def _add(found: HomeViews, number: int, query: Query) -> None:
    reason = _reason_against(query)
    if reason:
        found.left_out[number] = reason
        return
    relation, ((box,),) = query.nodes[0].relation, query.branches
    (placed,) = place(query, number, None)
    if isinstance(relation, UnnestedRelation):
        table = _xml_table(relation)
        name = f"{relation.base.name}.{relation.base.columns[table.document].name}"
        view = TreeView(
            *(number, query.sql, view_of(table).pattern, relation, table, placed.point),
            _shown_columns(query, relation, table),
        )
        found.documents.setdefault(name, []).append(view)
        return
    columns = tuple(dict.fromkeys(output.column for output in query.outputs))
    selection = Selection(number, query.sql, relation, placed.point, BoxView(box, columns))
    found.tables.setdefault(relation.name, []).append(selection)


def _reason_against(query: Query) -> str:
    if len(query.nodes) > 1:
        return "it joins tables"
    if len(query.branches) != 1:
        return "its condition has alternatives" if query.branches else "it can never match"
    relation = query.nodes[0].relation
    if isinstance(relation, ExtendedRelation) or is_payload(relation.name):
        return "its condition computes something"
    if isinstance(relation, UnnestedRelation) and query.branches[0][0]:
        return "it has a condition beside XMLTABLE"
    return ""


def _xml_table(relation: UnnestedRelation) -> XmlTable:
    if len(relation.tables) > 1:
        raise SqlError("it has several XMLTABLEs")
    return relation.tables[0]


def _shown_columns(
    query: Query, relation: UnnestedRelation, table: XmlTable
) -> tuple[ShownColumn, ...]:
    outputs = view_of(table).columns
    first_output = len(relation.base.columns) + 1  # the node columns come before it
    shown = []
    for one in query.outputs:
        kind = relation.columns[one.column].type
        if one.column >= first_output:
            output = outputs[one.column - first_output]
            shown.append(ShownColumn(one.label, -1, output.node, output.is_content, kind))
        elif one.column in relation.base.key:
            place_ = relation.base.key.index(one.column)
            shown.append(ShownColumn(one.label, place_, -1, False, kind))
        else:
            raise SqlError(f"it shows {one.label}, which is neither of XMLTABLE nor of the key")
    return tuple(shown)


def sample_rows(home: Home, table: str, most: int = SAMPLE_ROWS) -> list[Row]:
    """The most recently changed rows of a table, as far as batches have processed the log."""
    frontier = home.messages.frontier
    found: dict[RowKey, Row] = {}

    def take(relation: Relation, key: RowKey, _old: Row | None, new: Row | None) -> None:
        if relation.name == table:
            found.pop(key, None)
            if new is not None:
                found[key] = new
                if len(found) > most:
                    del found[next(iter(found))]

    if frontier is not None:
        from penstock.storage import replay_tables  # lazy: loads an engine

        replay_tables(home, frontier.end, on_change=take)
    return list(found.values())


def sample_documents(home: Home, view: TreeView, most: int = SAMPLE_DOCUMENTS) -> list[str]:
    """Sample documents of a view."""
    rows = sample_rows(home, view.relation.base.name, most)
    texts = (row[view.table.document] for row in rows)
    return [text for text in texts if isinstance(text, str)]
