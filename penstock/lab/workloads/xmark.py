"""Documents and views after the DTD of XMark (Schmidt et al., 2002), an auction site.

The structure is written here as data: each element with its attributes and children, and how often
a child occurs. `documents` makes documents of that structure with values from small domains;
`views` makes tree patterns as YFilter's generator does: random walks down the DTD with branches,
some steps skipped (a descendant edge), some leaves compared with a constant.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from penstock.documents.patterns import (
    MAX_PATTERN_NODES,
    Axis,
    Operator,
    PatternNode,
    Predicate,
    TreePattern,
    canonical_pattern,
)

_STRUCTURE = """
site: regions categories catgraph people open_auctions closed_auctions
regions: africa asia australia europe namerica samerica
africa: item*
asia: item*
australia: item*
europe: item*
namerica: item*
samerica: item*
item: @id @featured? location quantity name payment description shipping incategory+ mailbox
mailbox: mail*
mail: from to date text
incategory: @category
categories: category+
category: @id name description
catgraph: edge*
edge: @from @to
description: text|parlist
parlist: listitem+
listitem: text|parlist
text: bold* keyword* emph*
bold: bold* keyword* emph*
keyword: bold* keyword* emph*
emph: bold* keyword* emph*
people: person*
person: @id name emailaddress phone? address? homepage? creditcard? profile? watches?
address: street city country province? zipcode
profile: @income? interest* education? gender? business age?
interest: @category
watches: watch*
watch: @open_auction
open_auctions: open_auction*
open_auction: @id initial reserve? bidder* current privacy? itemref seller annotation quantity \
type interval
bidder: date time personref increase
itemref: @item
personref: @person
seller: @person
buyer: @person
author: @person
annotation: author description happiness
interval: start end
closed_auctions: closed_auction*
closed_auction: seller buyer itemref price date quantity type annotation
"""


@dataclass(frozen=True, slots=True)
class Child:
    """A child of an element, or one of its attributes (`@name`)."""

    label: str
    occurs: str
    """"" once, "?" maybe, "*" any number of times, "+" at least once, "|" instead of others."""


def _read_structure(text: str) -> dict[str, tuple[Child, ...]]:
    found = {}
    for line in text.strip().splitlines():
        name, _, children = line.partition(":")
        if "|" in children:
            found[name] = tuple(Child(one.strip(), "|") for one in children.split("|"))
        else:
            words = children.split()
            found[name] = tuple(
                Child(word.rstrip("?*+"), word[len(word.rstrip("?*+")) :]) for word in words
            )
    return found


DTD = _read_structure(_STRUCTURE)
ROOT = "site"
VALUES = 8
"""Number of distinct values of a leaf; the first ones are the most frequent."""
_RECURSIVE = {"text", "bold", "keyword", "emph", "parlist", "listitem"}


@dataclass(frozen=True, slots=True)
class ViewParameters:
    """Of the view generator. The defaults give the view statistics of the paper's Table 2."""

    shortest_walk: int = 3
    longest_walk: int = 5
    descendant: float = 0.18
    """A step of a walk is skipped with this probability."""
    anywhere: float = 0.35
    """Probability that a view begins below the root of the document."""
    branch: float = 0.48
    """Probability of one more branch."""
    most_branches: int = 3
    longest_branch: int = 3
    returned_leaf: float = 0.71
    returned_inner: float = 0.18
    val: float = 0.5
    """Probability that a returned element gives its text value, not its subtree."""
    predicate: float = 0.22
    """Probability that a leaf is compared with a constant."""
    same_structure: float = 0.05
    """Probability that a view is kept if it differs from another one only in what it returns."""
    within: tuple[str, ...] = ()
    """Children of the root that views may cover; empty: all."""
    single: bool = False
    """Whether a view may be a single node, and begin with a leaf."""
    skew: float = 0.0
    """The nth child of an element is chosen with weight 1 / n^skew, as by YFilter's generator."""


def unique_views(
    count: int, seed: int = 1, parameters: ViewParameters | None = None
) -> list[TreePattern]:
    """Distinct views, in canonical form."""
    given = parameters or ViewParameters()
    rng = random.Random(seed)
    views: dict[TreePattern, None] = {}
    structures: set[TreePattern] = set()
    while len(views) < count:
        view = _random_view(rng, given)
        if view is None or view in views:
            continue
        structure = _without_outputs(view)
        if structure in structures and rng.random() > given.same_structure:
            continue
        structures.add(structure)
        views[view] = None
    return list(views)


def drawn_views(seed: int = 1, parameters: ViewParameters | None = None) -> Iterator[TreePattern]:
    """Views as drawn, endlessly: simple ones repeat often."""
    given = parameters or ViewParameters()
    rng = random.Random(seed)
    while True:
        view = _random_view(rng, given)
        if view is not None:
            yield view


@dataclass
class _Walker:
    """A view under construction: nodes in the order in which they are added."""

    rng: random.Random
    given: ViewParameters
    nodes: list[PatternNode]

    def child_of(self, label: str) -> str:
        children = DTD[label]
        if label == ROOT and self.given.within:
            children = tuple(child for child in children if child.label in self.given.within)
        if not self.given.skew:
            return self.rng.choice(children).label
        weights = [1 / (place + 1) ** self.given.skew for place in range(len(children))]
        return self.rng.choices(children, weights)[0].label

    def walk(self, label: str, steps: int, parent: int) -> None:
        axis = Axis.CHILD
        for step in range(steps):
            if label not in DTD:
                return
            label = self.child_of(label)
            if self.rng.random() < self.given.descendant and label in DTD and step < steps - 1:
                axis = Axis.DESCENDANT
                continue
            self.nodes.append(PatternNode(label, parent, axis))
            parent, axis = len(self.nodes) - 1, Axis.CHILD

    def begin(self) -> None:
        steps = self.rng.randint(self.given.shortest_walk, self.given.longest_walk)
        label, skipped = ROOT, 0
        if self.rng.random() < self.given.anywhere:
            skipped = self.rng.randint(1, 3)
            for _ in range(skipped):
                if label in DTD:
                    label = self.child_of(label)
        if label not in DTD and not self.given.single:
            return
        axis = Axis.DESCENDANT if skipped else Axis.CHILD
        self.nodes.append(PatternNode(label, -1, axis))
        shortest = 0 if self.given.single else 1
        self.walk(label, max(shortest, steps - max(1, skipped)), 0)

    def branch(self) -> None:
        for _ in range(self.given.most_branches):
            if self.rng.random() >= self.given.branch:
                return
            inner = [i for i, node in enumerate(self.nodes) if len(DTD.get(node.label, ())) > 1]
            if not inner:
                return
            start = self.rng.choice(inner)
            self.walk(
                self.nodes[start].label, self.rng.randint(1, self.given.longest_branch), start
            )


def _random_view(rng: random.Random, given: ViewParameters) -> TreePattern | None:
    walker = _Walker(rng, given, [])
    walker.begin()
    if not walker.nodes:
        return None
    walker.branch()
    if len(walker.nodes) > MAX_PATTERN_NODES - 2:
        return None
    parents = {node.parent for node in walker.nodes}
    nodes = [
        _decorate(rng, given, node, position not in parents)
        for position, node in enumerate(walker.nodes)
    ]
    if not any(node.is_returned for node in nodes):
        nodes[-1] = replace(nodes[-1], val=True)
    return canonical_pattern(TreePattern(_preorder(nodes)))[0]


def _decorate(
    rng: random.Random, given: ViewParameters, node: PatternNode, is_leaf: bool
) -> PatternNode:
    if rng.random() < (given.returned_leaf if is_leaf else given.returned_inner):
        wants_val = rng.random() < given.val or node.label.startswith("@")
        node = replace(node, val=wants_val, cont=not wants_val)
    if is_leaf and rng.random() < given.predicate:
        node = replace(node, predicate=Predicate(Operator.EQ, leaf_value(node.label, rng)))
    return node


def leaf_value(label: str, rng: random.Random) -> str:
    """A value of a leaf; the lower its number, the more frequent it is."""
    return f"{label.lstrip('@')}{min(VALUES, int(rng.paretovariate(1.0)))}"


def _preorder(nodes: list[PatternNode]) -> tuple[PatternNode, ...]:
    """The nodes sorted so that subtrees are contiguous."""
    children: list[list[int]] = [[] for _ in nodes]
    for position, node in enumerate(nodes[1:], start=1):
        children[node.parent].append(position)
    found: list[PatternNode] = []

    def visit(position: int, parent: int) -> None:
        here = len(found)
        found.append(replace(nodes[position], parent=parent))
        for child in children[position]:
            visit(child, here)

    visit(0, -1)
    return tuple(found)


def _without_outputs(view: TreePattern) -> TreePattern:
    nodes = tuple(replace(node, val=False, cont=False) for node in view.nodes)
    return canonical_pattern(TreePattern(nodes))[0]


@dataclass(frozen=True, slots=True)
class DocumentParameters:
    """Of the document generator."""

    repeats: float = 2.0
    """Mean number of children that may occur any number of times."""
    optional: float = 0.7
    nesting: int = 3
    """Levels of text markup and of lists in lists."""


def documents(
    count: int, seed: int = 1, parameters: DocumentParameters | None = None
) -> Iterator[bytes]:
    """Documents of the structure above."""
    given = parameters or DocumentParameters()
    rng = random.Random(seed)
    for _ in range(count):
        parts: list[str] = []
        _write_element(rng, given, ROOT, 0, parts)
        yield "".join(parts).encode()


def _write_element(
    rng: random.Random, given: DocumentParameters, label: str, nested: int, parts: list[str]
) -> None:
    children = DTD.get(label, ())
    attributes = [
        f' {child.label[1:]}="{leaf_value(child.label, rng)}"'
        for child in children
        if child.label.startswith("@") and (not child.occurs or rng.random() < given.optional)
    ]
    parts.append(f"<{label}{''.join(attributes)}>")
    elements = [child for child in children if not child.label.startswith("@")]
    if not elements or label in ("text", "bold", "keyword", "emph"):
        parts.append(leaf_value(label, rng))
    nested += label in _RECURSIVE
    if nested <= given.nesting:
        for child in _chosen(rng, elements, nested, given):
            for _ in range(_occurrences(rng, given, child, nested)):
                _write_element(rng, given, child.label, nested, parts)
    parts.append(f"</{label}>")


def _chosen(
    rng: random.Random, elements: list[Child], nested: int, given: DocumentParameters
) -> list[Child]:
    """One of several alternatives; at the maximum depth, the one that ends the recursion."""
    if not elements or elements[0].occurs != "|":
        return elements
    return [elements[0] if nested + 1 >= given.nesting else rng.choice(elements)]


def _occurrences(rng: random.Random, given: DocumentParameters, child: Child, nested: int) -> int:
    if child.occurs == "?":
        return int(rng.random() < given.optional)
    if child.occurs in ("", "|"):
        return 1
    mean = given.repeats / (1 + nested) if child.label in _RECURSIVE else given.repeats
    least = int(child.occurs == "+")
    return max(least, int(rng.expovariate(1 / mean) + 0.5))
