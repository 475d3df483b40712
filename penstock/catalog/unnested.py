"""Tables unnested by XMLTABLE: one row for each row extracted from a document.

A query with XMLTABLE reads an *unnested* relation: the columns of a table and, for each XMLTABLE
over its documents, a column with the nodes of the document that the row is about, and the columns
of the XMLTABLE. Like extended relations, it is neither declared nor stored: its name holds the
definition.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from penstock.catalog.derived import SEPARATOR
from penstock.catalog.plain import plain_type, type_from_plain
from penstock.catalog.relations import Column, Relation
from penstock.catalog.text_types import StringType
from penstock.catalog.types import ValueType

_UNNESTED = "unnested"
NODES = SEPARATOR + "nodes"
"""Prefix of the names of node columns; queries cannot name them."""
MAX_XML_TABLES = 8
"""Maximum over one table in one query. Their rows multiply."""


@dataclass(frozen=True, slots=True)
class XmlColumn:
    """A column of an XMLTABLE."""

    name: str
    type: ValueType
    path: str


@dataclass(frozen=True, slots=True)
class XmlTable:
    """An XMLTABLE over the documents of one column."""

    document: int
    """The position of the column: one of the table, or of an XMLTABLE before this one."""
    rows: str
    """The path of the row's node."""
    columns: tuple[XmlColumn, ...]


class UnnestedRelation(Relation):
    """A relation with one row for each combination of XMLTABLE rows of a row of its table."""

    base: Relation
    tables: tuple[XmlTable, ...]
    omitted: tuple[int, ...]
    """Document columns that no condition or output reads: they are NULL, so a row does not change
    as long as what was extracted from its document does not."""

    @property
    def declared(self) -> Relation:
        return self.base.declared

    @property
    def shown_name(self) -> str:
        paths = " and ".join(f"XMLTABLE('{one.rows}')" for one in self.tables)
        return f"{self.base.shown_name} with {paths}"

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The column names in queries, which need not be unique."""
        of_tables = ((NODES, *(one.name for one in table.columns)) for table in self.tables)
        return (
            *(one.name for one in self.base.columns),
            *(n for names in of_tables for n in names),
        )

    @cached_property
    def document_columns(self) -> tuple[int, ...]:
        return tuple(i for i, one in enumerate(self.columns) if one.type.is_opaque)


@lru_cache(maxsize=100_000)
def unnest(
    base: Relation, tables: tuple[XmlTable, ...], omitted: tuple[int, ...] = ()
) -> UnnestedRelation:
    """A table and XMLTABLEs over its documents. Rows are identified by the key of their table and
    by nodes; those of a stream without a key by nodes alone, which then begin with the offset."""
    columns = list(base.columns)
    key = list(base.key)
    taken = {one.name.lower() for one in columns}
    for number, table in enumerate(tables, 1):
        key.append(len(columns))
        columns.append(Column(_unique(NODES, number, taken), StringType(), nullable=False))
        columns += [Column(_unique(one.name, number, taken), one.type) for one in table.columns]
    name = SEPARATOR.join((base.name, _UNNESTED, _as_json(tables, omitted)))
    relation = UnnestedRelation(name, tuple(columns), tuple(key), base.is_stream)
    object.__setattr__(relation, "base", base)
    object.__setattr__(relation, "tables", tables)
    object.__setattr__(relation, "omitted", omitted)
    return relation


def _unique(name: str, number: int, taken: set[str]) -> str:
    """Expressions and operators find columns by name, so names must be unique."""
    while name.lower() in taken:
        name = f"{name}.{number}"
    taken.add(name.lower())
    return name


def is_unnested(name: str) -> bool:
    """Whether rows of a relation, or of one that extends it, are extracted from documents."""
    parts = name.split(SEPARATOR, 2)
    return len(parts) > 2 and parts[1] == _UNNESTED


def mentions_unnested(data: bytes) -> bool:
    """Whether bytes may contain the name of an unnested relation."""
    return f"{SEPARATOR}{_UNNESTED}{SEPARATOR}".encode() in data


def unnested_named(name: str, base: Relation) -> UnnestedRelation:
    """The unnested relation of this name. Raises TypeError, ValueError or LookupError if it is
    invalid."""
    return unnest(base, *_from_json(name.split(SEPARATOR, 2)[2]))


def _as_json(tables: tuple[XmlTable, ...], omitted: tuple[int, ...]) -> str:
    plain = [
        [one.document, one.rows, [[c.name, plain_type(c.type), c.path] for c in one.columns]]
        for one in tables
    ]
    return json.dumps([plain, omitted], ensure_ascii=False, separators=(",", ":"))


def _from_json(text: str) -> tuple[tuple[XmlTable, ...], tuple[int, ...]]:
    plain: list[Any] = json.loads(text)
    tables, omitted = plain
    return tuple(_table(*one) for one in tables), tuple(omitted)


def _table(document: int, rows: str, columns: list[tuple[str, Any, str]]) -> XmlTable:
    found = (XmlColumn(name, type_from_plain(kind), path) for name, kind, path in columns)
    return XmlTable(document, rows, tuple(found))
