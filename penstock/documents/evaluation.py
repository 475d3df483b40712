"""Evaluates one view over one document.

A result is the set of all matches, each with one cell per pattern node: the structural id and, if
requested, the text value and the subtree. Other views can be fed from it. The subscriber sees a
projection (`visible_rows`): branches that return nothing only have to exist.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple, TypeAlias

from penstock.documents.document import Document, NodeId
from penstock.documents.patterns import Axis, PatternNode, TreePattern
from penstock.documents.xmltable import OutputColumn
from penstock.errors import DocumentError

MAX_RESULT_ROWS = 100_000
"""Maximum matches of one view in one document; branches multiply, so a small document can have
billions."""

MAX_CELLS_BYTES = 48 << 20
"""Maximum size of the values and contents of one view in one document: they are sent in one
packet."""


class Cell(NamedTuple):
    """A document node that a pattern node matched."""

    id: NodeId
    val: str | None = None
    cont: bytes | None = None


ResultRow: TypeAlias = tuple[Cell, ...]


def evaluate(pattern: TreePattern, document: Document) -> list[ResultRow]:
    """All matches, in document order."""
    return _result_rows(pattern, document, _Evaluation(pattern, document).matches())


def evaluate_through(
    pattern: TreePattern, document: Document, returned: Collection[tuple[int, ...]]
) -> list[ResultRow]:
    """All matches, given which nodes they return: `returned` holds for each visible row the numbers
    of the nodes at `pattern.returned`."""
    places = pattern.returned
    allowed = {place: {one[i] for one in returned} for i, place in enumerate(places)}
    found = [
        match
        for match in _Evaluation(pattern, document, allowed).matches()
        if tuple(match[place] for place in places) in returned
    ]
    return _result_rows(pattern, document, found)


def _result_rows(
    pattern: TreePattern, document: Document, found: Iterable[tuple[int, ...]]
) -> list[ResultRow]:
    """The cells of matches, in document order; DocumentError if they are too large: nested elements
    repeat the same text."""
    rows, left = [], MAX_CELLS_BYTES
    for match in sorted(found):
        row = result_row(pattern, document, match)
        left -= sum(len(cell.val or "") + len(cell.cont or b"") for cell in row)
        if left < 0:
            raise DocumentError(
                "The results of one view for a document are too long",
                detail=f"{pattern} has more than {MAX_CELLS_BYTES:,} bytes",
            )
        rows.append(row)
    return rows


def matches(pattern: TreePattern, document: Document) -> list[tuple[int, ...]]:
    """All matches as node numbers, in document order."""
    return sorted(_Evaluation(pattern, document).matches())


def result_row(pattern: TreePattern, document: Document, match: Sequence[int]) -> ResultRow:
    """The cells of a match."""
    return tuple(
        Cell(
            document.node_id(number),
            document.value(number) if node.val else None,
            document.content(number) if node.cont else None,
        )
        for node, number in zip(pattern.nodes, match, strict=True)
    )


def visible_rows(
    columns: Sequence[OutputColumn], rows: Iterable[ResultRow]
) -> list[tuple[str | bytes | None, ...]]:
    """The subscriber's view: one row for each distinct combination of returned nodes."""
    seen: dict[tuple[NodeId, ...], ResultRow] = {}
    for row in rows:
        seen.setdefault(tuple(row[column.node].id for column in columns), row)
    return [
        tuple(
            row[column.node].cont if column.is_content else row[column.node].val
            for column in columns
        )
        for row in seen.values()
    ]


def accepts(node: PatternNode, document: Document, number: int) -> bool:
    """Whether a document node has the label and the value of a pattern node."""
    if document.labels[number] != node.label:
        return False
    return node.predicate is None or node.predicate.accepts(document.value(number))


class _Evaluation:
    """Matches of subtrees, each computed once per document node."""

    def __init__(
        self,
        pattern: TreePattern,
        document: Document,
        allowed: Mapping[int, Container[int]] | None = None,
    ) -> None:
        """`allowed`: for some nodes of the pattern, the only nodes that they may match."""
        self.pattern = pattern
        self.document = document
        self.allowed = allowed or {}
        self.known: dict[tuple[int, int], list[tuple[int, ...]]] = {}

    def matches(self) -> list[tuple[int, ...]]:
        root = self.pattern.nodes[0]
        if root.axis is Axis.CHILD:
            starts: Sequence[int] = [0]
        else:
            starts = self.document.by_label.get(root.label, [])
        found = [match for start in starts for match in self._at(0, start)]
        self._check(len(found))
        return found

    def _at(self, position: int, number: int) -> list[tuple[int, ...]]:
        """The matches of a subtree of the pattern with its root at a document node."""
        key = (position, number)
        if key not in self.known:
            self.known[key] = self._compute(position, number)
        return self.known[key]

    def _compute(self, position: int, number: int) -> list[tuple[int, ...]]:
        if position in self.allowed and number not in self.allowed[position]:
            return []
        if not accepts(self.pattern.nodes[position], self.document, number):
            return []
        parts: list[list[tuple[int, ...]]] = []
        size = 1
        for child in self.pattern.children[position]:
            part = [m for other in self._candidates(child, number) for m in self._at(child, other)]
            if not part:
                return []
            parts.append(part)
            size *= len(part)
        self._check(size)
        return [(number, *(n for part in parts_ for n in part)) for parts_ in product(*parts)]

    def _candidates(self, child: int, number: int) -> Iterator[int]:
        node = self.pattern.nodes[child]
        below = self.document.below(number, node.label)
        if node.axis is Axis.DESCENDANT:
            return iter(below)
        return (other for other in below if self.document.parents[other] == number)

    def _check(self, size: int) -> None:
        if size > MAX_RESULT_ROWS:
            raise DocumentError(
                "The document has too many matches of one view",
                detail=f"{self.pattern} has more than {MAX_RESULT_ROWS:,}",
                hint="ask for fewer branches that match independently",
            )
