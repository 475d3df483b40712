"""Extracts the rows of many views from one document, evaluating common subtrees once.

A view returns each combination of its returned nodes once; branches that return nothing only have
to exist. So a subtree of a pattern gives, below a node of the document, the combinations of its
returned nodes. Equal subtrees of all views are shared (`SharedSubtrees`) and evaluated once per
node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from penstock.documents.document import Document
from penstock.documents.evaluation import MAX_RESULT_ROWS
from penstock.documents.patterns import Axis, Predicate, TreePattern

Nodes: TypeAlias = tuple[int, ...]
"""The returned nodes of one row, in the order of the pattern."""


class TooManyRowsError(Exception):
    """A view has more rows of a document than `MAX_RESULT_ROWS`."""


@dataclass(frozen=True, eq=False, slots=True)
class Subtree:
    """A subtree of patterns; compared by identity, since `SharedSubtrees` interns them."""

    label: str
    axis: Axis
    predicate: Predicate | None
    is_returned: bool
    below: tuple[Subtree, ...]
    """Subtrees that return something, in the order of the pattern."""
    needed: tuple[Subtree, ...]
    """Subtrees that only have to exist."""

    @property
    def returns_anything(self) -> bool:
        return self.is_returned or bool(self.below)


class SharedSubtrees:
    """The subtrees of many patterns, without duplicates."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Subtree] = {}

    def of(self, pattern: TreePattern) -> Subtree:
        """The whole pattern as a subtree."""
        made: list[Subtree | None] = [None] * len(pattern)
        for position in range(len(pattern) - 1, -1, -1):
            node = pattern.nodes[position]
            children = [made[child] for child in pattern.children[position]]
            found = [one for one in children if one is not None]
            below = tuple(one for one in found if one.returns_anything)
            needed = tuple(one for one in found if not one.returns_anything)
            key = (
                *(node.label, node.axis, node.predicate, node.is_returned),
                *(tuple(map(id, below)), tuple(map(id, needed))),
            )
            known = self._known.get(key)
            if known is None:
                known = Subtree(
                    node.label, node.axis, node.predicate, node.is_returned, below, needed
                )
                self._known[key] = known
            made[position] = known
        root = made[0]
        assert root is not None
        return root


class Extraction:
    """Evaluates subtrees over one document."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._found: dict[tuple[Subtree, int], list[Nodes] | None] = {}
        self._exists: dict[tuple[Subtree, int], bool] = {}
        self._contents: dict[int, str] = {}

    def rows(self, root: Subtree) -> list[Nodes]:
        """The combinations of returned nodes, in document order; TooManyRowsError if there are more
        than a view may have. That depends on the document alone, so it is the same for every
        subscriber at any time."""
        if root.axis is Axis.CHILD:
            starts: Sequence[int] = (0,)
        else:
            starts = self.document.by_label.get(root.label, ())
        return sorted(self._together(root, starts))

    def content(self, node: int) -> str:
        """The subtree of a node in canonical form."""
        found = self._contents.get(node)
        if found is None:
            found = self._contents[node] = self.document.content(node).decode()
        return found

    def _together(self, subtree: Subtree, numbers: Iterator[int] | Sequence[int]) -> list[Nodes]:
        """The combinations that a subtree returns for some nodes, without duplicates."""
        found = [nodes for number in numbers for nodes in self._at(subtree, number)]
        if not subtree.is_returned and len(found) > 1:
            found = list(dict.fromkeys(found))
        if len(found) > MAX_RESULT_ROWS:
            raise TooManyRowsError
        return found

    def _at(self, subtree: Subtree, number: int) -> list[Nodes]:
        key = (subtree, number)
        if key not in self._found:
            self._found[key] = None  # unless overwritten below
            self._found[key] = self._compute(subtree, number)
        found = self._found[key]
        if found is None:
            raise TooManyRowsError
        return found

    def _compute(self, subtree: Subtree, number: int) -> list[Nodes]:
        if not self._accepts(subtree, number):
            return []
        own: Nodes = (number,) if subtree.is_returned else ()
        parts: list[list[Nodes]] = []
        size = 1
        for one in subtree.below:
            part = self._together(one, self._candidates(one, number))
            if not part:
                return []
            parts.append(part)
            size *= len(part)
        if size > MAX_RESULT_ROWS:
            raise TooManyRowsError
        if len(parts) == 1:
            return [own + nodes for nodes in parts[0]]
        return [own + tuple(n for part in some for n in part) for some in product(*parts)]

    def _accepts(self, subtree: Subtree, number: int) -> bool:
        document, predicate = self.document, subtree.predicate
        if document.labels[number] != subtree.label:
            return False
        if predicate is not None and not predicate.accepts(document.value(number)):
            return False
        return all(self._has(one, number) for one in subtree.needed)

    def _has(self, subtree: Subtree, number: int) -> bool:
        """Whether a node has below it what a subtree that returns nothing requires."""
        key = (subtree, number)
        found = self._exists.get(key)
        if found is None:
            candidates = self._candidates(subtree, number)
            found = any(self._accepts(subtree, other) for other in candidates)
            self._exists[key] = found
        return found

    def _candidates(self, subtree: Subtree, number: int) -> Iterator[int] | Sequence[int]:
        below = self.document.below(number, subtree.label)
        if subtree.axis is Axis.DESCENDANT:
            return below
        parents = self.document.parents
        return (other for other in below if parents[other] == number)
