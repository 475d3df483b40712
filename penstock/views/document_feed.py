"""The documents of the source: those of a table as they are now, numbered in order of arrival.

A document that is changed or deleted gets a new number, and its old number is *superseded*: a read
of it says so, and the new one follows later. So the source keeps as many documents as the table
has, and can compute the results of any view from any number on.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from penstock.documents.document import Document, parse_document
from penstock.documents.evaluation import (
    MAX_RESULT_ROWS,
    ResultRow,
    evaluate,
    evaluate_through,
)
from penstock.documents.patterns import TreePattern
from penstock.errors import DocumentError
from penstock.views.sites import DocumentKey, NodeName, Results
from penstock.xml_text import ATTRIBUTE

PARSED_DOCUMENTS = 64
"""Number of parsed documents kept: sites without delay read the same few."""
MAX_TOMBSTONES = 100_000
"""Number of deleted documents kept for slow readers; above it, documents are renumbered."""

NodeNumbers = frozenset[tuple[int, ...]]
"""For each row of a view the numbers of its returned nodes."""


@dataclass(slots=True)
class _Entry:
    key: DocumentKey
    text: str | None
    """None: deleted."""
    cut: int
    found: dict[NodeName, NodeNumbers] = field(default_factory=dict)
    """What the home has extracted for the views that it feeds."""


class DocumentFeed:
    """Not thread-safe."""

    def __init__(self) -> None:
        self.epoch = secrets.randbits(40)
        self.end = 0
        """The number of the next document."""
        self.extracted_by_home = 0
        self.extracted_here = 0
        """Results assembled from rows of the home, or matched here."""
        self._patterns: dict[NodeName, TreePattern] = {}
        self._entries: dict[int, _Entry] = {}
        self._last: dict[DocumentKey, int] = {}
        self._tombstones = 0
        self._parsed: OrderedDict[int, Document] = OrderedDict()

    def know(self, view: NodeName, pattern: TreePattern) -> None:
        self._patterns[view] = pattern

    def forget(self, view: NodeName) -> None:
        self._patterns.pop(view, None)

    def knows(self, view: NodeName) -> bool:
        return view in self._patterns

    def documents(self) -> Iterable[tuple[DocumentKey, str]]:
        """As they are now."""
        return [(one.key, one.text) for one in self._entries.values() if one.text is not None]

    def put(
        self,
        key: DocumentKey,
        text: str | None,
        cut: int,
        found: Mapping[NodeName, NodeNumbers] | None = None,
    ) -> int:
        """Set a document (None: deleted), with the home's results for it; returns its number.

        `found` has an entry for every view that was looked up in the home, also for those without a
        match."""
        before = self._last.pop(key, None)
        if before is not None:
            gone = self._entries.pop(before)
            self._tombstones -= gone.text is None
            self._parsed.pop(before, None)
        number = self.end
        self._last[key] = number
        self._entries[number] = _Entry(key, text, cut, dict(found or {}))
        self._tombstones += text is None
        self.end += 1
        if self._tombstones > MAX_TOMBSTONES:
            self._start_anew()
        return number

    def read(
        self, view: NodeName, from_document: int, most: int, most_bytes: int = 1 << 60
    ) -> list[Results]:
        """The results of a known view, for documents from a number on; at least one, if there is
        one."""
        found: list[Results] = []
        nbytes = 0
        for number in range(from_document, min(self.end, from_document + most)):
            results = self._results(view, number)
            nbytes += results.nbytes
            if found and nbytes > most_bytes:
                break
            found.append(results)
        return found

    def text_of(self, key: DocumentKey) -> str | None:
        """The document with a key as it is now, if there is one."""
        number = self._last.get(key)
        return None if number is None else self._entries[number].text

    def _results(self, view: NodeName, number: int) -> Results:
        entry = self._entries.get(number)
        if entry is None:
            return Results(view, number, None, is_superseded=True)
        return Results(view, number, self._rows(view, number, entry), entry.key, entry.cut)

    def _rows(self, view: NodeName, number: int, entry: _Entry) -> tuple[ResultRow, ...] | None:
        if entry.text is None:
            return ()
        pattern, nodes = self._patterns[view], entry.found.get(view)
        is_by_home = nodes is not None and (bool(nodes) or not _may_overflow(pattern, entry.text))
        self.extracted_by_home += is_by_home
        self.extracted_here += not is_by_home
        if is_by_home and not nodes:
            return ()
        document = self._document(number, entry)
        try:
            if is_by_home:
                return tuple(evaluate_through(pattern, document, nodes or frozenset()))
            return tuple(evaluate(pattern, document))
        except DocumentError:
            return None

    def _document(self, number: int, entry: _Entry) -> Document:
        document = self._parsed.get(number)
        if document is None:
            assert entry.text is not None
            document = self._parsed[number] = parse_document(entry.text)
            if len(self._parsed) > PARSED_DOCUMENTS:
                self._parsed.popitem(last=False)
        return document

    def _start_anew(self) -> None:
        """Renumber the current documents from 0, for readers that start again."""
        kept = [one for one in self._entries.values() if one.text is not None]
        self.epoch = secrets.randbits(40)
        self._parsed.clear()
        self._entries = dict(enumerate(kept))
        self._last = {one.key: number for number, one in self._entries.items()}
        self.end, self._tombstones = len(kept), 0


def _may_overflow(pattern: TreePattern, text: str) -> bool:
    """Whether a view without rows in the home could have too many instead of none: the number of
    matches is at most the number of ways to choose nodes with the right labels."""
    ways = 1
    for node in pattern.nodes:
        ways *= text.count(node.label.rpartition("}")[2].lstrip(ATTRIBUTE))
    return ways > MAX_RESULT_ROWS
