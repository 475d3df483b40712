"""XML documents: parsed safely, numbered by structure, serialised canonically.

Elements and attributes are nodes; an attribute is a child of its element with the label `@name`.
Nodes are numbered in document order, attributes first and sorted by name. The number of a node, the
number of the last node below it and its level form its *structural id*: two ids tell whether one
node is the parent or an ancestor of the other, without the document. The numbering is a function
of the canonical form, so whoever holds a subtree and the id of its root can number the subtree.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.errors import DocumentError
from penstock.views.extras import load_lxml

ATTRIBUTE = "@"
_PROLOG = re.compile(rb"(?:\s+|<\?.*?\?>|<!--.*?-->)*", re.DOTALL)
_DECLARED_ENCODING = re.compile(rb"\A<\?xml[^>]*?encoding\s*=\s*[\"']([^\"']*)[\"']")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class DocumentLimits:
    """What a document may be at most. All are checked before or while it is parsed."""

    bytes: int = 2 << 20
    """With the other limits it bounds the time until a refusal to about 100 ms."""
    levels: int = 200
    """Below the 256 of libxml2, so that our refusal, which names the limit, comes first."""
    tags: int = 200_000
    """Start and end tags."""
    nodes: int = 250_000
    """Elements and attributes."""
    attributes: int = 100
    """Of one element. lxml lists them in quadratic time: 20,000 take a second."""


LIMITS = DocumentLimits()


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
    """Of each element its slice of `text`; of an attribute its position in `attributes`."""
    attributes: Sequence[str] = field(repr=False)
    elements: Sequence[Any] = field(repr=False)
    """The lxml element of each node; of an attribute the element that has it."""

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
        """The different labels, and the place of each node's label among them."""
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
    """Read a document, or raise a DocumentError that names what is wrong with it."""
    if isinstance(data, str):
        data = _encode(data)
    check_source(data, limits)
    root = _parse(data, limits)
    _check_tree(root, limits)
    return number_nodes(root, limits)


def canonical_bytes(element: Any) -> bytes:
    """Exclusive canonical XML: a subtree has the same bytes wherever it stands."""
    etree = load_lxml()
    serialised: bytes = etree.tostring(element, method="c14n", exclusive=True, with_tail=False)
    return serialised


def check_source(data: bytes, limits: DocumentLimits = LIMITS) -> None:
    """Refuse what should not even reach a parser."""
    if len(data) > limits.bytes:
        raise DocumentError(
            "The document is too large",
            detail=f"it has {len(data):,} bytes; at most {limits.bytes:,} are accepted",
            hint="publish it in parts",
        )
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DocumentError(
            "The document is not valid UTF-8", detail=f"at byte {error.start:,}: {error.reason}"
        ) from error
    declared = _DECLARED_ENCODING.match(data.removeprefix(_BOM))
    if declared and declared[1].decode().upper() not in ("UTF-8", "UTF8", "US-ASCII", "ASCII"):
        raise DocumentError(
            f"The document declares the encoding {declared[1].decode()!r}",
            hint="documents are UTF-8",
        )
    prolog = _PROLOG.match(data.removeprefix(_BOM))
    if data.removeprefix(_BOM)[prolog.end() if prolog else 0 :][:9].upper() == b"<!DOCTYPE":
        raise DocumentError(
            "The document has a document type declaration",
            detail="DTDs and entities are not read: they can name files, hosts and bombs",
            hint="leave out <!DOCTYPE ...>, and write characters instead of entities",
        )
    tags = data.count(b"<")
    if tags > limits.tags:
        raise DocumentError(
            "The document has too many tags",
            detail=f"it has about {tags:,}; at most {limits.tags:,} are accepted",
        )


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise DocumentError(
            "The document has characters that UTF-8 cannot express", detail=str(error)
        ) from error


def _parse(data: bytes, limits: DocumentLimits) -> Any:
    etree = load_lxml()
    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        load_dtd=False,
        dtd_validation=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
        strip_cdata=True,
    )
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        if "xcessive depth" in str(error):
            raise _too_deep(limits) from error
        raise DocumentError("The document is not well-formed XML", detail=str(error)) from error


def _check_tree(root: Any, limits: DocumentLimits) -> None:
    """Refuse by counts that libxml2 makes, before Python visits the nodes."""
    if root.xpath("count(//*) + count(//@*)") > limits.nodes:
        raise DocumentError(
            "The document has too many nodes",
            detail=f"at most {limits.nodes:,} elements and attributes are accepted",
        )
    if root.xpath(f"boolean(//*[@*[{limits.attributes + 1}]])"):
        raise DocumentError(
            "An element has too many attributes",
            detail=f"at most {limits.attributes} are accepted",
        )


def _too_deep(limits: DocumentLimits) -> DocumentError:
    return DocumentError(
        "The document is nested too deeply",
        detail=f"at most {limits.levels} levels are accepted",
    )


def number_nodes(root: Any, limits: DocumentLimits = LIMITS) -> Document:
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
        if level >= limits.levels:
            raise _too_deep(limits)
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
