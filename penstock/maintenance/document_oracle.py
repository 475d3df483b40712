"""XMLTABLE for the oracle: extracts tables with lxml's trees, for DuckDB to join.

Shares nothing with the production code for finding rows: no node numbers, no patterns, no matching.
Paths are walked step by step from every node, one view and one document at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple, TypeAlias

from sqlglot import exp, parse_one

from penstock.catalog import Column, Relation, Row, Stored, StringType, ValueType
from penstock.catalog.coercions import store_lossless
from penstock.documents.paths import Step, parse_path
from penstock.documents.patterns import Axis
from penstock.errors import ChangeError
from penstock.sql.column_types import value_type_of
from penstock.sql.dialect import DIALECT
from penstock.sql.reference import xml_table_spans
from penstock.xml_text import ATTRIBUTE, canonical_bytes, parse_canonical


class Attribute(NamedTuple):
    """An attribute of an element, as a node."""

    element: Any
    name: str


_DOCUMENT, _CELL = "xmltable_document", "xmltable_cell_"
_Node: TypeAlias = Any
"""An element of lxml, or an `Attribute`."""
_Paths: TypeAlias = Sequence[tuple[int, tuple[Step, ...]]]
"""Columns, and the steps to them."""


class CalledTable(NamedTuple):
    """An XMLTABLE in the text of a query."""

    start: int
    end: int
    row_path: str
    passing: str
    columns: tuple[tuple[str, ValueType, str], ...]
    """Name, type and path of each."""

    def relation(self, name: str) -> Relation:
        """A table for documents and their rows."""
        columns = [Column(f"{_CELL}{i}", kind) for i, (_, kind, _) in enumerate(self.columns)]
        return Relation(name, (Column(_DOCUMENT, StringType()), *columns), ())

    def read_from(self, name: str) -> str:
        """SQL that replaces it, reading such a table."""
        names = (one[0].replace('"', '""') for one in self.columns)
        cells = ", ".join(f'{_CELL}{i} AS "{one}"' for i, one in enumerate(names))
        return f"LATERAL (SELECT {cells} FROM {name} WHERE {_DOCUMENT} = {self.passing})"

    def rows(self, text: str) -> Iterator[Row]:
        """The rows for a document, in stored form."""
        root = parse_canonical(text)
        known = {element: number for number, element in enumerate(root.iter())}
        paths = [(i, parse_path(one[2]).steps) for i, one in enumerate(self.columns)]
        found: dict[tuple[object, ...], dict[int, _Node]] = {}
        for node in _follow([root], parse_path(self.row_path).steps, is_document=True):
            for row in _rows(node, paths):
                cells = [row[i] for i in range(len(paths))]
                found.setdefault(tuple(_identity(one, known) for one in cells), row)
        for row in found.values():
            yield tuple(_cell(row[i], one[1]) for i, one in enumerate(self.columns))


@lru_cache(maxsize=1_000)
def called_tables(sql: str) -> tuple[CalledTable, ...]:
    """The XMLTABLEs of a query, in the order of its text."""
    found = []
    for start, end in xml_table_spans(sql):
        select = parse_one(f"SELECT 1 FROM {sql[start:end]}", dialect=DIALECT)
        xml = select.find(exp.XMLTable)
        assert xml is not None
        columns = tuple(
            (one.name, value_type_of(one.args["kind"]), str(one.find(exp.Literal).this))
            for one in xml.args["columns"]
        )
        passing = xml.args["passing"][0].sql(dialect=DIALECT)
        found.append(CalledTable(start, end, str(xml.this.this), passing, columns))
    return tuple(found)


def _rows(node: _Node, paths: _Paths) -> list[dict[int, _Node]]:
    """The nodes of each column, for all matches; paths with a common prefix share its nodes."""
    here = {column: node for column, steps in paths if not steps}
    branches: dict[Step, list[tuple[int, tuple[Step, ...]]]] = {}
    for column, steps in paths:
        if steps:
            branches.setdefault(steps[0], []).append((column, steps[1:]))
    parts = [
        [row for one in _follow([node], (step,)) for row in _rows(one, rest)]
        for step, rest in branches.items()
    ]
    return [
        {**here, **{column: one for row in some for column, one in row.items()}}
        for some in product(*parts)
    ]


def _follow(
    nodes: Iterable[_Node], steps: Iterable[Step], *, is_document: bool = False
) -> list[_Node]:
    """The distinct nodes that steps lead to."""
    found = list(nodes)
    for step in steps:
        reached = (one for node in found for one in _candidates(node, step, is_document))
        found = _distinct(one for one in reached if _accepts(one, step))
        is_document = False
    return found


def _candidates(node: _Node, step: Step, is_document: bool) -> list[_Node]:
    if isinstance(node, Attribute):
        return []
    is_deep = step.axis is Axis.DESCENDANT
    if step.label.startswith(ATTRIBUTE):
        name = step.label[1:]
        owners = node.iter() if is_deep else [] if is_document else [node]
        return [Attribute(one, name) for one in owners if name in one.attrib]
    if is_document:
        here = [node] if node.tag == step.label else []
        return list(node.iter(step.label)) if is_deep else here
    return list(node.iterdescendants(step.label) if is_deep else node.iterchildren(step.label))


def _accepts(node: _Node, step: Step) -> bool:
    if step.predicate is not None and not step.predicate.accepts(_text(node)):
        return False
    return all(_follow([node], branch) for branch in step.branches)


def _distinct(nodes: Iterable[_Node]) -> list[_Node]:
    return list(dict.fromkeys(nodes))


def _text(node: _Node) -> str:
    if isinstance(node, Attribute):
        return str(node.element.attrib[node.name])
    return "".join(node.itertext())


def _identity(node: _Node, known: dict[Any, int]) -> object:
    if isinstance(node, Attribute):
        return known[node.element], node.name
    return known[node]


def _cell(node: _Node, value_type: ValueType) -> Stored:
    if value_type.is_opaque:
        return canonical_bytes(node).decode()
    try:
        return store_lossless(value_type, _text(node))
    except ChangeError:
        return None
