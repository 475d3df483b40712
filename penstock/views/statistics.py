"""Estimates the size of views' results from statistics of documents.

Measured per document: how many nodes have a label, how many children and descendants of one label a
node of another has, how long values and subtrees are, and which share of the values satisfies a
predicate. A view's rows are the product along its edges, assuming independent branches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from penstock.documents.document import Document
from penstock.documents.patterns import Axis, Predicate, TreePattern
from penstock.views.language import Volume
from penstock.xml_text import ATTRIBUTE

ID_BYTES = 8
"""A structural id: two varints and a level."""
MAX_SAMPLED_VALUES = 1_000
"""Maximum number of values per label kept for the selectivity of predicates."""


@dataclass
class DocumentStatistics:
    """Counts over a sample of documents. Without a sample, everything is one node of 16 bytes."""

    documents: int = 0
    nodes: Counter[str] = field(default_factory=Counter)
    roots: Counter[str] = field(default_factory=Counter)
    children: Counter[tuple[str, str]] = field(default_factory=Counter)
    descendants: Counter[tuple[str, str]] = field(default_factory=Counter)
    value_bytes: Counter[str] = field(default_factory=Counter)
    content_bytes: Counter[str] = field(default_factory=Counter)
    values: dict[str, list[str]] = field(default_factory=dict)
    _shares: dict[tuple[str, Predicate], float] = field(default_factory=dict)

    @classmethod
    def of(cls, documents: Iterable[Document]) -> DocumentStatistics:
        found = cls()
        for document in documents:
            found.add(document)
        return found

    def add(self, document: Document) -> None:
        self.documents += 1
        self.roots[document.labels[0]] += 1
        tag_bytes = _tag_bytes(document)
        for node, label in enumerate(document.labels):
            value = document.value(node)
            self.nodes[label] += 1
            self.value_bytes[label] += len(value)
            self.content_bytes[label] += tag_bytes[node] + len(value)
            sampled = self.values.setdefault(label, [])
            if len(sampled) < MAX_SAMPLED_VALUES:
                sampled.append(value)
            self._add_ancestors(document, node, label)
        self._shares.clear()

    def _add_ancestors(self, document: Document, node: int, label: str) -> None:
        above = document.parents[node]
        if above >= 0:
            self.children[document.labels[above], label] += 1
        while above >= 0:
            self.descendants[document.labels[above], label] += 1
            above = document.parents[above]

    def volume(self, pattern: TreePattern) -> Volume:
        """The rows and bytes that a view has per document."""
        rows = 1.0
        width = 0.0
        for node in pattern.nodes:
            if node.parent >= 0:
                rows *= self._fan_out(pattern.nodes[node.parent].label, node.label, node.axis)
            else:
                rows *= self._starts(node.label, node.axis)
            if node.predicate is not None:
                rows *= self.share(node.label, node.predicate)
            width += ID_BYTES
            width += self._mean(self.value_bytes, node.label) if node.val else 0.0
            width += self._mean(self.content_bytes, node.label) if node.cont else 0.0
        return Volume(rows, rows * width)

    def share(self, label: str, predicate: Predicate) -> float:
        """The share of a label's values that satisfy a predicate; never 0, since the sample is
        small."""
        key = (label, predicate)
        if key not in self._shares:
            values = self.values.get(label, ())
            passed = sum(map(predicate.accepts, values))
            self._shares[key] = (passed + 0.5) / (len(values) + 1)
        return self._shares[key]

    def _starts(self, label: str, axis: Axis) -> float:
        if not self.documents:
            return 1.0
        return (self.roots if axis is Axis.CHILD else self.nodes)[label] / self.documents

    def _fan_out(self, above: str, label: str, axis: Axis) -> float:
        if not self.documents:
            return 1.0
        counts = self.children if axis is Axis.CHILD else self.descendants
        return counts[above, label] / max(1, self.nodes[above])

    def _mean(self, total: Counter[str], label: str) -> float:
        return total[label] / self.nodes[label] if self.nodes[label] else 16.0


def _tag_bytes(document: Document) -> list[int]:
    """The bytes of markup in each subtree."""
    found = [0] * len(document)
    for node in range(len(document) - 1, -1, -1):
        label = document.labels[node]
        is_attribute = label.startswith(ATTRIBUTE)
        own = len(label) + 3 + len(document.value(node)) if is_attribute else 2 * len(label) + 5
        found[node] += own
        if document.parents[node] >= 0:
            found[document.parents[node]] += found[node]
    return found
