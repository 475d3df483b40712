"""The brute-force counterpart of every evaluator: tries all combinations of nodes.

Shares nothing with the evaluators that it checks: no index, no interval encoding, no order of
evaluation. Only for small documents and patterns.
"""

from __future__ import annotations

from itertools import product

from penstock.documents.document import Document
from penstock.documents.patterns import Axis, TreePattern


def all_matches(pattern: TreePattern, document: Document) -> set[tuple[int, ...]]:
    """Every assignment of document nodes to pattern nodes that satisfies the pattern."""
    candidates = [
        [
            number
            for number, label in enumerate(document.labels)
            if label == node.label
            and (node.predicate is None or node.predicate.accepts(document.value(number)))
        ]
        for node in pattern.nodes
    ]
    return {match for match in product(*candidates) if _holds(pattern, document, match)}


def _holds(pattern: TreePattern, document: Document, match: tuple[int, ...]) -> bool:
    for node, number in zip(pattern.nodes, match, strict=True):
        above = -1 if node.parent < 0 else match[node.parent]
        if node.axis is Axis.CHILD:
            if document.parents[number] != above:
                return False
        elif above >= 0 and above not in _ancestors(document, number):
            return False
    return True


def _ancestors(document: Document, number: int) -> set[int]:
    found = set()
    while number >= 0:
        number = document.parents[number]
        found.add(number)
    return found
