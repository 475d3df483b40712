"""Adding a column type touches the files that docs/notes/column-types.md lists, and no other."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest
from sqlglot import exp

import penstock
from penstock import Hub, catalog
from penstock.catalog import Column, Key, Outside, Relation, Stored, StringType, ValueType
from penstock.catalog.arrow_types import ARROW_RULES
from penstock.catalog.catalog import Catalog
from penstock.errors import ChangeError, SqlError
from penstock.flow.columnar import column_reader
from penstock.flow.columnar.layout import KERNEL_COLUMNS, TEXT, KernelColumn
from penstock.flow.events import read_change
from penstock.matching import EventBatch
from penstock.packing import unpack
from penstock.sql.column_types import SQL_NAMES
from penstock.sql.literal_rules import LITERAL_RULES

PACKAGE = Path(penstock.__file__).parent
NOTE = PACKAGE.parent / "docs" / "notes" / "column-types.md"

CLASS_FILES = {
    "catalog/number_types.py",
    "catalog/text_types.py",
    "catalog/time_types.py",
    "catalog/xml_type.py",
}
TABLE_FILES = {
    "catalog/__init__.py",
    "sql/column_types.py",
    "sql/literal_rules.py",
    "catalog/arrow_types.py",
    "flow/columnar/layout.py",
}
MAKERS = {
    "catalog/payload_split.py",  # the column of digests
    "delivery/marks.py",  # a column of marks
    "flow/operator_columns.py",  # the column of results
    "sql/expressions.py",  # whether a constant can be computed
    "sql/operators.py",  # whether a group of predicates holds
    "catalog/unnested.py",  # the column of nodes
    "maintenance/document_oracle.py",  # the column of documents
    "lab/benchmarks/_network_tables.py",
    "lab/workloads/matching.py",
    "lab/workloads/topics.py",
    "lab/experiments/diagram_order.py",
    "operators/value_types.py",  # what operators take and bind
}
"""Modules that make columns of a certain type, and ask nobody for his."""

EXPORTS = [getattr(catalog, name) for name in catalog.__all__]
CLASSES = {
    one
    for one in EXPORTS
    if isinstance(one, type) and issubclass(one, ValueType) and one is not ValueType
}
NAMES = {one.__name__ for one in CLASSES}


SOURCES = {
    str(path.relative_to(PACKAGE)): path.read_text(encoding="utf-8")
    for path in sorted(PACKAGE.rglob("*.py"))
}
MENTION = re.compile(rf"\b({'|'.join(NAMES)})\b")
KIND_TEST = re.compile(r"\b(value_)?type\.kind\b *(==|!=|in\b|not in\b)|== *\w*type\.kind\b")


def names_types_of_the_catalog(source: str) -> bool:
    """Spark has types of the same names, so imports are looked at."""
    return bool(MENTION.search(source)) and any(
        isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("penstock.catalog")
        and any(alias.name in NAMES for alias in node.names)
        for node in ast.walk(ast.parse(source))
    )


def test_only_these_files_name_a_value_type() -> None:
    naming = {path for path, source in SOURCES.items() if names_types_of_the_catalog(source)}
    assert naming <= CLASS_FILES | TABLE_FILES | MAKERS
    assert naming >= TABLE_FILES


def test_makers_of_columns_do_not_ask_for_a_type() -> None:
    for path in MAKERS:
        assert not re.search(rf"isinstance\([^()]*({'|'.join(NAMES)})", SOURCES[path]), path


def test_nobody_asks_for_the_kind_of_a_type() -> None:
    """`kind` says what joins with what; comparing it with a word would be `isinstance` again."""
    assert KIND_TEST.search('if column.type.kind in ("date", "timestamp")')
    assert not [path for path, source in SOURCES.items() if KIND_TEST.search(source)]


def test_the_note_lists_the_six_files() -> None:
    text = NOTE.read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `penstock/")]
    assert len(rows) == 6
    for path in TABLE_FILES | {"catalog/number_types.py"}:
        assert any(f"`penstock/{path}`" in row for row in rows), path


def test_every_type_has_an_entry_in_every_table() -> None:
    assert len(CLASSES) == 8
    assert set(LITERAL_RULES) == set(ARROW_RULES) == set(KERNEL_COLUMNS) == CLASSES


# A type of its own: texts that begin with a bracket, under a name that SQL has.


@dataclass(frozen=True, slots=True)
class DocumentType(ValueType):
    kind: ClassVar[str] = "document"
    discrete: ClassVar[bool] = False
    stored_as: ClassVar[type] = str

    def __str__(self) -> str:
        return "JSON"

    def store(self, value: Outside) -> Stored:
        if not isinstance(value, str) or not value.startswith("<"):
            raise self.misfit(value)
        return value

    def key(self, stored: Stored) -> Key:
        assert isinstance(stored, str)
        return stored

    @property
    def key_range(self) -> tuple[Key | None, Key | None]:
        return "", None


@pytest.fixture
def _with_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    text = LITERAL_RULES[StringType]
    monkeypatch.setitem(SQL_NAMES, exp.DType.JSON, DocumentType())
    monkeypatch.setitem(LITERAL_RULES, DocumentType, text._replace(family="document"))
    monkeypatch.setitem(ARROW_RULES, DocumentType, ARROW_RULES[StringType])
    monkeypatch.setitem(KERNEL_COLUMNS, DocumentType, lambda _: KernelColumn(TEXT))


@pytest.mark.usefixtures("_with_documents")
def test_a_type_that_is_added_there_passes_through_a_hub() -> None:
    with Hub() as hub:
        hub.execute("CREATE TABLE docs (id INTEGER PRIMARY KEY, doc JSON)")
        mine = hub.subscribe("SELECT id, doc FROM docs WHERE doc >= '<b'")
        hub.insert("docs", {"id": 1, "doc": "<a/>"})
        hub.insert("docs", {"id": 2, "doc": "<b/>"})
        with pytest.raises(ChangeError, match="is not a JSON"):
            hub.insert("docs", {"id": 3, "doc": "b"})
        with pytest.raises(SqlError, match="cannot be compared with the integer 5"):
            hub.subscribe("SELECT id FROM docs WHERE doc = 5")
        assert list(mine.content()) == [{"id": 2, "doc": "<b/>"}]


@pytest.mark.usefixtures("_with_documents")
def test_and_through_parsers_kernels_and_arrow() -> None:
    columns = Column("id", SQL_NAMES[exp.DType.BIGINT], False), Column("doc", DocumentType())
    relation = Relation("docs", columns, (0,))
    known = Catalog()
    known.add(relation, 0)
    raw = json.dumps({"table": "docs", "row": {"id": 1, "doc": "<b/>"}}).encode()
    assert read_change(raw, known, 1).row == (1, "<b/>")
    (events,), others = column_reader(known).read([1], [raw])
    assert not others
    assert unpack(events.packed_events().data.tobytes()) == [1, [1, "<b/>"]]
    assert events.batch([1]).keys(0)[1] == "<b/>"
    batch = pa.record_batch({"id": [1], "doc": ["<b/>"]})
    assert EventBatch.of_arrow(relation, batch).row(0) == (1, "<b/>")
