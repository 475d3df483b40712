"""All matches of a pattern by lxml's XPath, one step at a time: a twin of every evaluator."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

from penstock.documents.document import Document
from penstock.documents.evaluation import ResultRow
from penstock.documents.patterns import PatternNode, TreePattern
from penstock.xml_text import canonical_bytes

Found = tuple[int, str | None, bytes | None]
"""A node's number, its value and its subtree, where the pattern returns them."""


def xpath_rows(pattern: TreePattern, document: Document) -> list[tuple[Found, ...]]:
    """One row per match, in document order; values and subtrees are lxml's, too."""
    numbers = {
        element: number
        for number, element in enumerate(document.elements)
        if not document.labels[number].startswith("@")
    }

    def rows_at(position: int, above: Any) -> list[tuple[Found, ...]]:
        node = pattern.nodes[position]
        rows = []
        for match in above.xpath(_step(node, is_root=position == 0)):
            parts = [rows_at(child, match) for child in pattern.children[position]]
            rows += [
                (_found(node, match), *(one for part in chosen for one in part))
                for chosen in product(*parts)
            ]
        return rows

    def _found(node: PatternNode, match: Any) -> Found:
        if node.label.startswith("@"):
            owner = numbers[match.getparent()]
            number = next(
                n
                for n in range(owner + 1, len(document))
                if document.parents[n] == owner and document.labels[n] == node.label
            )
            return number, str(match) if node.val else None, None
        val = str(match.xpath("string()")) if node.val else None
        cont = canonical_bytes(match) if node.cont else None
        return numbers[match], val, cont

    return sorted(rows_at(0, document.root.getroottree()), key=lambda row: [one[0] for one in row])


def plain_rows(rows: Iterable[ResultRow]) -> list[tuple[Found, ...]]:
    """Rows of an evaluator as the twin gives them."""
    return [tuple((cell.id.pre, cell.val, cell.cont) for cell in row) for row in rows]


def _step(node: PatternNode, *, is_root: bool) -> str:
    test = "" if node.predicate is None else f"[.{node.predicate}]"
    return f"{'' if is_root else '.'}{node.axis.value}{node.label}{test}"
