"""XML documents: parsed safely, numbered by structure, serialised canonically.

Elements and attributes are nodes; an attribute is a child of its element with the label `@name`.
Nodes are numbered in document order, attributes first and sorted by name. The number of a node, the
number of the last node below it and its level form its *structural id*: two ids tell whether one
node is the parent or an ancestor of the other, without the document. The numbering is a function of
the canonical form, so a subtree can be numbered from the id of its root alone.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.xml_text import ATTRIBUTE, LIMITS, DocumentLimits, canonical_bytes, parse_tree


class NodeId(NamedTuple):
    """A structural id."""

    pre: int
    end: int
    """The number of the last node of the subtree; its own for a node without children."""
    level: int

    def is_ancestor_of(self, other: NodeId) -> bool:
        return self.pre < other.pre <= self.end

    def is_parent_of(self, other: NodeId) -> bool:
        return self.pre < other.pre <= self.end and other.level == self.level + 1


@dataclass(frozen=True)
class Document:
    """A document, or a subtree of one; immutable, and safe to share between threads."""

    root: Any = field(repr=False)
    labels: Sequence[str]
    parents: Sequence[int]
    """Number of each node's parent; -1 for the root."""
    ends: Sequence[int]
    levels: Sequence[int]
    text: str = field(repr=False)
    """All text in document order; an element's text value is a slice of it."""
    spans: Sequence[tuple[int, int]] = field(repr=False)
    """For each element its slice of `text`; for an attribute its position in `attributes`."""
    attributes: Sequence[str] = field(repr=False)
    elements: Sequence[Any] = field(repr=False)
    """The lxml element of each node; for an attribute its owner element."""

    def __len__(self) -> int:
        return len(self.labels)

    def node_id(self, node: int) -> NodeId:
        return NodeId(node, self.ends[node], self.levels[node])

    def value(self, node: int) -> str:
        """The text value, as XPath's string(): all text below, or the attribute's value."""
        start, stop = self.spans[node]
        if self.labels[node][0] == ATTRIBUTE:
            return self.attributes[start]
        return self.text[start:stop]

    def content(self, node: int) -> bytes:
        """The subtree in canonical form. Attributes have none."""
        assert self.labels[node][0] != ATTRIBUTE
        return canonical_bytes(self.elements[node])

    @cached_property
    def canonical(self) -> bytes:
        return canonical_bytes(self.root)

    @cached_property
    def by_label(self) -> dict[str, list[int]]:
        """The nodes of each label, in document order."""
        found: dict[str, list[int]] = {}
        for node, label in enumerate(self.labels):
            found.setdefault(label, []).append(node)
        return found

    @cached_property
    def label_codes(self) -> tuple[list[str], NDArray[np.int32]]:
        """The distinct labels, and the index of each node's label among them."""
        places: dict[str, int] = {}
        codes = [places.setdefault(label, len(places)) for label in self.labels]
        return list(places), np.array(codes, np.int32)

    @cached_property
    def level_array(self) -> NDArray[np.int32]:
        return np.array(self.levels, np.int32)

    def below(self, node: int, label: str) -> Sequence[int]:
        """The descendants of a node with a label, in document order."""
        nodes = self.by_label.get(label, [])
        return nodes[bisect_right(nodes, node) : bisect_right(nodes, self.ends[node])]


def parse_document(data: bytes | str, limits: DocumentLimits = LIMITS) -> Document:
    """Parse a document, or raise a DocumentError that says what is wrong with it."""
    return number_nodes(parse_tree(data, limits))


def number_nodes(root: Any) -> Document:
    """Number the nodes of a parsed tree."""
    labels: list[str] = []
    parents: list[int] = []
    ends: list[int] = []
    levels: list[int] = []
    spans: list[tuple[int, int]] = []
    attributes: list[str] = []
    elements: list[Any] = []
    texts: list[str] = []
    length = 0
    # Two kinds of entries: an element to enter with its parent and level, and a node to leave.
    stack: list[tuple[Any, int, int]] = [(root, -1, 0)]
    while stack:
        element, parent, level = stack.pop()
        if level < 0:  # leave: `parent` is the number of the node
            ends[parent] = len(labels) - 1
            spans[parent] = (spans[parent][0], length)
            tail = element.tail
            if tail and parent:
                texts.append(tail)
                length += len(tail)
            continue
        number = len(labels)
        labels.append(element.tag)
        parents.append(parent)
        ends.append(number)
        levels.append(level)
        spans.append((length, length))
        elements.append(element)
        for name, value in sorted(element.attrib.items(), key=_attribute_order):
            spans.append((len(attributes), 0))
            attributes.append(value)
            ends.append(len(labels))
            labels.append(ATTRIBUTE + name)
            parents.append(number)
            levels.append(level + 1)
            elements.append(element)
        if element.text:
            texts.append(element.text)
            length += len(element.text)
        stack.append((element, number, -1))
        stack.extend((child, number, level + 1) for child in reversed(element))
    return Document(
        root, labels, parents, ends, levels, "".join(texts), spans, attributes, elements
    )


def _attribute_order(item: tuple[str, str]) -> tuple[str, str]:
    """As canonical XML sorts attributes: by namespace, then by local name."""
    uri, brace, local = item[0].rpartition("}")
    return (uri + brace, local)
