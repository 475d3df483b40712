"""Tree patterns: what a view asks of a document.

A pattern is a tree of nodes with labels. An edge means child or descendant. A node may carry a
value predicate, and may be returned: its text value (`val`), its subtree (`cont`), or both. The
system keeps the structural id of every node in addition.

Nodes are in preorder, the root first. Patterns are plain data: they can be compared, hashed and
sent.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import TypeAlias

from penstock.errors import SqlError
from penstock.xml_text import ATTRIBUTE

MAX_PATTERN_NODES = 16
"""Sets of nodes are 16-bit masks: four (ids, values, contents, predicates) share a word."""

Constant: TypeAlias = str | float
_NUMBER = re.compile(
    r"[ \t\r\n]*(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[ \t\r\n]*"
)


class Axis(Enum):
    """The relation of a node to its parent; for a root: at the top of the document, or anywhere."""

    CHILD = "/"
    DESCENDANT = "//"


class Operator(Enum):
    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


_COMPARE: dict[Operator, Callable[[float, float], bool]] = {
    Operator.EQ: lambda a, b: a == b,
    Operator.NE: lambda a, b: a != b,
    Operator.LT: lambda a, b: a < b,
    Operator.LE: lambda a, b: a <= b,
    Operator.GT: lambda a, b: a > b,
    Operator.GE: lambda a, b: a >= b,
}


@dataclass(frozen=True, slots=True)
class Predicate:
    """A comparison of a node's text value with a constant, as XPath 1.0 compares.

    Texts are equal or not; all other comparisons are numeric, and a text that is not a number is
    never less, equal or greater.
    """

    operator: Operator
    constant: Constant

    def __post_init__(self) -> None:
        assert isinstance(self.constant, float) or self.operator in (Operator.EQ, Operator.NE)

    def accepts(self, value: str) -> bool:
        if isinstance(self.constant, str):
            return (value == self.constant) == (self.operator is Operator.EQ)
        return _COMPARE[self.operator](number_of(value), self.constant)

    def __str__(self) -> str:
        return f"{self.operator.value}{_literal(self.constant)}"


@dataclass(frozen=True, slots=True)
class PatternNode:
    label: str
    parent: int
    """The position of the parent; -1 for the root."""
    axis: Axis = Axis.CHILD
    predicate: Predicate | None = None
    val: bool = False
    cont: bool = False

    @property
    def is_returned(self) -> bool:
        return self.val or self.cont


@dataclass(frozen=True)
class TreePattern:
    """A pattern with at least one node, in preorder."""

    nodes: tuple[PatternNode, ...]
    _hash: int = field(init=False, repr=False, compare=False, default=0)

    def __post_init__(self) -> None:
        if not self.nodes:
            raise SqlError("A view needs at least one node", hint="write a path such as '//item'")
        if len(self.nodes) > MAX_PATTERN_NODES:
            raise SqlError(
                "The pattern has too many nodes",
                detail=f"it has {len(self.nodes)}; at most {MAX_PATTERN_NODES} are accepted",
                hint="split the view into several",
            )
        _check_shape(self.nodes)
        object.__setattr__(self, "_hash", hash(self.nodes))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[TreePattern], tuple[tuple[PatternNode, ...]]]:
        """Hashes of texts differ between processes, so they are not pickled."""
        return TreePattern, (self.nodes,)

    def __len__(self) -> int:
        return len(self.nodes)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        found: list[list[int]] = [[] for _ in self.nodes]
        for position, node in enumerate(self.nodes):
            if node.parent >= 0:
                found[node.parent].append(position)
        return tuple(map(tuple, found))

    @property
    def labels(self) -> frozenset[str]:
        return frozenset(node.label for node in self.nodes)

    @property
    def returned(self) -> tuple[int, ...]:
        return tuple(i for i, node in enumerate(self.nodes) if node.is_returned)

    def __str__(self) -> str:
        """As a path with everything in brackets; `{val}` and `{cont}` mark what is returned."""
        return _show(self, 0)


def canonical_pattern(pattern: TreePattern) -> tuple[TreePattern, tuple[int, ...]]:
    """The same view with sorted siblings, and the new position of each node.

    A branch that returns nothing and equals its sibling is redundant, and is merged.
    """
    order: list[int] = []
    places = [-1] * len(pattern)
    keys = _subtree_keys(pattern)

    def visit(position: int) -> None:
        places[position] = len(order)
        order.append(position)
        first_of: dict[_Key, int] = {}
        for child in sorted(pattern.children[position], key=lambda c: keys[c]):
            twin = first_of.get(keys[child])
            if twin is not None and not _returns_anything(pattern, child):
                _merge_places(pattern, child, twin, keys, places)
                continue
            first_of[keys[child]] = child
            visit(child)

    visit(0)
    nodes = tuple(
        replace(
            pattern.nodes[old],
            parent=places[pattern.nodes[old].parent] if pattern.nodes[old].parent >= 0 else -1,
        )
        for old in order
    )
    return TreePattern(nodes), tuple(places)


def nodes_below(query: TreePattern, node: int) -> list[int]:
    """The nodes below a node, parents before children."""
    found = []
    for child in query.children[node]:
        found += [child, *nodes_below(query, child)]
    return found


def number_of(value: str) -> float:
    """XPath's number(), with exponents as in XPath 2.0: NaN if the text is not a number."""
    found = _NUMBER.fullmatch(value)
    return float(found[1]) if found else math.nan


_Key: TypeAlias = tuple[object, ...]


def _subtree_keys(pattern: TreePattern) -> list[_Key]:
    """Ordered keys of subtrees: equal if and only if the subtrees are equal."""
    keys: list[_Key] = [()] * len(pattern)
    for position in range(len(pattern) - 1, -1, -1):
        node = pattern.nodes[position]
        below = sorted(keys[child] for child in pattern.children[position])
        predicate = str(node.predicate) if node.predicate else ""
        keys[position] = (
            *(node.label, node.axis.value, predicate, node.val, node.cont),
            tuple(below),
        )
    return keys


def _returns_anything(pattern: TreePattern, position: int) -> bool:
    if pattern.nodes[position].is_returned:
        return True
    return any(_returns_anything(pattern, child) for child in pattern.children[position])


def _merge_places(
    pattern: TreePattern, gone: int, twin: int, keys: Sequence[_Key], places: list[int]
) -> None:
    places[gone] = places[twin]
    ours, theirs = (sorted(pattern.children[one], key=lambda c: keys[c]) for one in (gone, twin))
    for child, other in zip(ours, theirs, strict=True):
        _merge_places(pattern, child, other, keys, places)


def _check_shape(nodes: Iterable[PatternNode]) -> None:
    path: list[int] = []
    for position, node in enumerate(nodes):
        while path and path[-1] != node.parent:
            path.pop()
        if (node.parent == -1) != (position == 0) or (position and not path):
            raise ValueError("the nodes of a pattern stand in preorder, the root first")
        if node.label.startswith(ATTRIBUTE) and node.cont:
            raise SqlError(
                f"The attribute {node.label!r} has no content",
                hint="ask for its value: VARCHAR instead of XML",
            )
        path.append(position)
    for node in nodes:
        parent = node.parent
        if parent >= 0 and tuple(nodes)[parent].label.startswith(ATTRIBUTE):
            raise SqlError(f"The attribute {tuple(nodes)[parent].label!r} has nothing below it")


def _show(pattern: TreePattern, position: int) -> str:
    node = pattern.nodes[position]
    marks = "".join(f"{{{name}}}" for name in ("val", "cont") if getattr(node, name))
    tests = f"[.{node.predicate}]" if node.predicate else ""
    below = "".join(f"[{_relative(_show(pattern, child))}]" for child in pattern.children[position])
    label = f"Q{node.label}" if node.label.startswith("{") else node.label
    if node.label.startswith("@{"):
        label = f"@Q{node.label[1:]}"
    return f"{node.axis.value}{label}{marks}{tests}{below}"


def _relative(path: str) -> str:
    return f".{path}" if path.startswith("//") else path[1:]


def _literal(constant: Constant) -> str:
    if isinstance(constant, str):
        return f"'{constant}'" if "'" not in constant else f'"{constant}"'
    return f"{constant:.17g}"
