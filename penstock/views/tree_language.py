"""Tree patterns as a language of views: the plain gear of embedding and coverage.

A pattern embeds in a query if its nodes can be mapped to query nodes with equal labels, child edges
to child edges, descendant edges to paths, and the root to the root if it is anchored at the top. A
node with a predicate is mapped to a node with the *same* predicate: the published rule, which only
forbids two different constants, would let `//a[b = 1]` feed `//a[b]` and lose matches.

Masks are four 16-bit sets of query nodes: those whose id, text value and content is known, and
those whose predicate is checked. A predicate is checked if the view has it, or if it can be tested
on a value. With *navigation* a content also provides everything below it, because ids can be
computed from the id of its root; without it, attributes count as published.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from penstock.documents.patterns import MAX_PATTERN_NODES, Axis, TreePattern
from penstock.views.language import Volume
from penstock.views.statistics import DocumentStatistics

VAL_SHIFT = MAX_PATTERN_NODES
CONT_SHIFT = 2 * MAX_PATTERN_NODES
TEST_SHIFT = 3 * MAX_PATTERN_NODES


class TreeLanguage:
    """Implements `ViewLanguage` for tree patterns."""

    def __init__(
        self, statistics: DocumentStatistics | None = None, *, navigation: bool = True
    ) -> None:
        self.statistics = statistics or DocumentStatistics()
        self.navigation = navigation

    def labels(self, view: TreePattern) -> frozenset[Hashable]:
        return frozenset(view.labels)

    def demands(self, query: TreePattern) -> int:
        mask = 0
        for place, node in enumerate(query.nodes):
            mask |= 1 << place
            mask |= node.val << (VAL_SHIFT + place)
            mask |= node.cont << (CONT_SHIFT + place)
            mask |= (node.predicate is not None) << (TEST_SHIFT + place)
        return mask

    def embeds(self, view: TreePattern, query: TreePattern) -> int:
        found = images(view, query)
        if found is None:
            return 0
        mask = 0
        for node, own in enumerate(found):
            for place in _places(own):
                mask |= attribute_mask(view, node, query, place, navigation=self.navigation)
        return mask & self.demands(query)

    def cost(self, view: TreePattern) -> Volume:
        return self.statistics.volume(view)


def images(view: TreePattern, query: TreePattern) -> list[int] | None:
    """For each node of a view the query nodes that some embedding maps it to; None without one."""
    found = [_alike(view, node, query) for node in range(len(view))]
    for node in range(len(view) - 1, 0, -1):  # drop images without one for a child
        found[view.nodes[node].parent] &= _above(query, found[node], view.nodes[node].axis)
    if view.nodes[0].axis is Axis.CHILD:
        found[0] &= int(query.nodes[0].axis is Axis.CHILD)
    for node in range(1, len(view)):  # drop images without one of the parent
        found[node] &= _beneath(query, found[view.nodes[node].parent], view.nodes[node].axis)
    return found if all(found) else None


def attribute_mask(
    view: TreePattern, node: int, query: TreePattern, place: int, *, navigation: bool
) -> int:
    """The attributes of the query that are known when a view's node is mapped to one of its
    nodes."""
    own, other = view.nodes[node], query.nodes[place]
    mask = 1 << place
    if own.val:
        mask |= (1 << (VAL_SHIFT + place)) | (1 << (TEST_SHIFT + place))
    if own.cont:
        mask |= (1 << (CONT_SHIFT + place)) | (1 << (TEST_SHIFT + place))
        if navigation:
            mask |= 1 << (VAL_SHIFT + place)
            below = subtree_mask(query, place)
            for shift in (0, VAL_SHIFT, CONT_SHIFT, TEST_SHIFT):
                mask |= below << shift
    if other.predicate is not None and own.predicate == other.predicate:
        mask |= 1 << (TEST_SHIFT + place)
    return mask


def subtree_mask(query: TreePattern, place: int) -> int:
    """The nodes below a node."""
    mask = 0
    for child in query.children[place]:
        mask |= (1 << child) | subtree_mask(query, child)
    return mask


def embedding_with(
    view: TreePattern, query: TreePattern, node: int, place: int
) -> tuple[int, ...] | None:
    """An embedding that maps a node of the view to a given node of the query."""
    found = images(view, query)
    if found is None or not found[node] >> place & 1:
        return None
    found[node] = 1 << place
    for at in range(len(view) - 1, 0, -1):
        found[view.nodes[at].parent] &= _above(query, found[at], view.nodes[at].axis)
    chosen: list[int] = []
    for at in range(len(view)):
        mask = found[at]
        if at:
            above = chosen[view.nodes[at].parent]
            mask &= _beneath(query, 1 << above, view.nodes[at].axis)
        chosen.append((mask & -mask).bit_length() - 1)
    return tuple(chosen)


def _alike(view: TreePattern, node: int, query: TreePattern) -> int:
    own = view.nodes[node]
    mask = 0
    for place, other in enumerate(query.nodes):
        if own.label == other.label and own.predicate in (None, other.predicate):
            mask |= 1 << place
    return mask


def _above(query: TreePattern, mask: int, axis: Axis) -> int:
    """The query nodes with a child, or a descendant, among some nodes."""
    found = 0
    for place in _places(mask):
        node = query.nodes[place]
        if axis is Axis.CHILD:
            if node.parent >= 0 and node.axis is Axis.CHILD:
                found |= 1 << node.parent
        else:
            while node.parent >= 0:
                found |= 1 << node.parent
                node = query.nodes[node.parent]
    return found


def _beneath(query: TreePattern, mask: int, axis: Axis) -> int:
    """The query nodes that are a child, or a descendant, of one of some nodes."""
    found = 0
    for place in _places(mask):
        if axis is Axis.DESCENDANT:
            found |= subtree_mask(query, place)
        else:
            for child in query.children[place]:
                found |= (query.nodes[child].axis is Axis.CHILD) << child
    return found


def _places(mask: int) -> Sequence[int]:
    return [place for place in range(mask.bit_length()) if mask >> place & 1]
