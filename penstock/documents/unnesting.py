"""From documents to the rows of XMLTABLEs: many views are matched and evaluated together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Protocol, TypeAlias

from penstock.catalog import Row, Stored, ValueType
from penstock.catalog.coercions import store_lossless
from penstock.catalog.unnested import XmlTable
from penstock.documents.document import Document, number_nodes
from penstock.documents.extraction import Extraction, SharedSubtrees, Subtree, TooManyRowsError
from penstock.documents.patterns import TreePattern
from penstock.documents.plain_matching import PlainMatcher
from penstock.documents.xmltable import ColumnPath, TableView, table_view
from penstock.errors import ChangeError
from penstock.kernels.fast_gear import may_load_kernels
from penstock.xml_text import parse_canonical

MAX_RESULT_BYTES = 64 << 20
"""Maximum size of the texts that one view extracts from one document: 64 times the largest
event."""
MANY_PATTERNS = 64
"""From this many on, compiled kernels pay."""

Conversion: TypeAlias = Callable[[Extraction, int], Stored]
Extracted: TypeAlias = list[tuple[str, Row]]
"""The rows of an XMLTABLE: the nodes of each, and their values."""


class Matcher(Protocol):
    def matching(self, document: Document) -> list[int]:
        """The numbers of the patterns that match."""


def parse_stored(text: str) -> Document:
    """A document as it is stored, ready for views."""
    return number_nodes(parse_canonical(text))


@lru_cache(maxsize=100_000)
def view_of(table: XmlTable) -> TableView:
    """The tree pattern of an XMLTABLE; SqlError if there is none."""
    columns = [ColumnPath(one.name, str(one.type), one.path) for one in table.columns]
    return table_view(table.rows, columns)


class View:
    """One XMLTABLE, ready to be evaluated."""

    def __init__(self, table: XmlTable, shared: SharedSubtrees | None = None) -> None:
        self.table = table
        self.view = view_of(table)
        self._root: Subtree = (shared or SharedSubtrees()).of(self.view.pattern)
        returned = self.view.pattern.returned
        self._places = tuple(returned.index(one.node) for one in self.view.columns)
        self._convert: tuple[Conversion, ...] = tuple(
            Extraction.content if output.is_content else _value_as(column.type)
            for output, column in zip(self.view.columns, table.columns, strict=True)
        )

    @property
    def pattern(self) -> TreePattern:
        return self.view.pattern

    def rows(self, extraction: Extraction) -> Extracted:
        """One row for each combination of returned nodes; none if there are too many, or their
        texts are too long."""
        try:
            found = extraction.rows(self._root)
        except TooManyRowsError:
            return []
        cells = list(zip(self._convert, self._places, strict=True))
        return within_bytes(
            (
                ".".join(map(str, nodes)),
                tuple([convert(extraction, nodes[place]) for convert, place in cells]),
            )
            for nodes in found
        )


def within_bytes(rows: Iterable[tuple[str, Row]]) -> Extracted:
    """The rows of a view, or none if their texts are too long in total. Nested elements repeat the
    text of those inside: 50 kB of them can give a gigabyte."""
    kept, left = [], MAX_RESULT_BYTES
    for nodes, values in rows:
        left -= sum(len(one) for one in values if isinstance(one, str))
        if left < 0:
            return []
        kept.append((nodes, values))
    return kept


class DocumentViews:
    """Views over the documents of one column. Not thread-safe."""

    def __init__(self, tables: Sequence[XmlTable]) -> None:
        self.tables = list(dict.fromkeys(tables))

    def __len__(self) -> int:
        return len(self.tables)

    @property
    def dead_count(self) -> int:
        return 0

    def rows(self, extraction: Extraction) -> Iterator[tuple[XmlTable, Extracted]]:
        """The views with rows of a document, and these rows."""
        views, matcher = self._prepared
        for pattern in matcher.matching(extraction.document):
            for view in views[pattern]:
                found = view.rows(extraction)
                if found:
                    yield view.table, found

    @cached_property
    def _prepared(self) -> tuple[list[list[View]], Matcher]:
        """The views of each pattern, and the matcher of the patterns."""
        shared = SharedSubtrees()
        views: dict[TreePattern, list[View]] = {}
        for table in self.tables:
            view = View(table, shared)
            views.setdefault(view.pattern, []).append(view)
        return list(views.values()), _matcher_of(list(views))


def _matcher_of(patterns: list[TreePattern]) -> Matcher:
    if len(patterns) >= MANY_PATTERNS and may_load_kernels():
        from penstock.documents.fast_matching import FastMatcher

        return FastMatcher(patterns)
    return PlainMatcher(patterns)


def _value_as(value_type: ValueType) -> Conversion:
    def convert(extraction: Extraction, node: int) -> Stored:
        try:
            return store_lossless(value_type, extraction.document.value(node))
        except ChangeError:
            return None  # without a schema, no type of a value is guaranteed

    return convert
