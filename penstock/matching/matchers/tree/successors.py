"""Successor nodes: where the search continues when a path of tests ends (Aguilera et al., 1999).

The plain search follows the don't-care edge of every node it passes. But the alternatives to a path
of successful equality tests are known statically: the nodes of the paths on which some of those
tests are replaced by don't-cares. So the search follows outcomes only, and where it is blocked, or
has reached a leaf, it jumps to these *successors*, without stepping through the nodes above them
and without examining their attributes again.

Every path is searched exactly once. Let a node's *run* be the equality edges r1 … rm that end its
path without a don't-care between them. The node is responsible for the 2^m paths in which any of
r1 … rm is replaced. A child over one more outcome is responsible for all of them (and for the
don't-care beside the outcome). If there is no such child, the paths are divided by their first
don't-care: for each i, the path r1 … r(i-1) * r(i+1) … rm, if it exists, is responsible for the
paths with this prefix; if not, the part of it that exists is divided in the same way. So no node is
visited twice.

The failed test rules out more: a successor on the same level whose outcomes are a subset of the
blocked node's is blocked as well, and is replaced by its own successors.

Runs end at levels with a range test (several outcomes can hold there), and where an edge skips a
level.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog import Key
from penstock.matching.matchers.tree.nodes import MatchingTree, Node

Run = tuple[Node, tuple[Key | None, ...]]
"""The node at which a run begins, and the outcomes from there on."""


def analyse(tree: MatchingTree) -> int:
    """Annotate all nodes; returns the number of successors stored."""
    if tree.root is None:
        return 0
    entries = 0
    # Don't-care edges first: a successor has them where the node has an outcome, so it is
    # annotated before the node.
    waiting: list[tuple[Node, Run]] = [(tree.root, (tree.root, ()))]
    while waiting:
        node, run = waiting.pop()
        entries += _annotate(tree, node, run)
        if node.level == tree.depth:
            continue
        ranged = tree.range_edges[node.level] > 0
        waiting += [(child, (child, ())) for child in (node.ranges.values() if node.ranges else ())]
        start, outcomes = (node, ()) if _leads_past(node, run) else run
        for key, child in (node.points or {}).items():
            waiting.append((child, (child, ()) if ranged else (start, (*outcomes, key))))
        if node.star is not None:
            waiting.append((node.star, (node.star, ())))
    return entries


def _annotate(tree: MatchingTree, node: Node, run: Run) -> int:
    others = _shared_out(*run)
    star = [] if node.star is None else [node.star]
    node.always, node.blocked = (), ()
    if node.level == tree.depth:
        node.always = tuple(others)
    elif tree.range_edges[node.level]:
        node.always = tuple(star + others)
    elif _leads_past(node, run):
        node.always, node.blocked = tuple(others), tuple(star)
    else:
        node.blocked = tuple(star + _without_blocked(node, others))
    return len(node.always) + len(node.blocked)


def _leads_past(node: Node, run: Run) -> bool:
    """Whether the edge into the node skips levels: then the run ended above it."""
    start, outcomes = run
    return node.level > start.level + len(outcomes)


def _without_blocked(node: Node, others: Sequence[Node]) -> list[Node]:
    failed = (node.points or {}).keys()
    kept: list[Node] = []
    for other in others:
        if other.level == node.level and (other.points or {}).keys() <= failed:
            kept.extend(other.always + other.blocked)
        else:
            kept.append(other)
    return kept


def _shared_out(start: Node, outcomes: Sequence[Key | None]) -> list[Node]:
    """The nodes responsible for the paths from `start` in which any of the outcomes is replaced."""
    found: list[Node] = []
    waiting = [(node, i) for i, node in enumerate(_path(start, outcomes)) if i < len(outcomes)]
    while waiting:
        node, i = waiting.pop()
        child = node.star
        if child is not None:
            waiting.extend(_entered(child, i + 1, start.level, outcomes, found))
    return found


def _entered(
    node: Node, i: int, first_level: int, outcomes: Sequence[Key | None], found: list[Node]
) -> list[tuple[Node, int]]:
    """Enter a node with the first `i` outcomes decided; returns the nodes still to divide."""
    i = max(i, node.level - first_level)
    rest = outcomes[i:]
    path = _path(node, rest)
    last = path[-1]
    if len(path) == len(rest) + 1:
        found.append(last)
        return []
    # An edge that skips levels ends the run: its child is responsible for all of it.
    behind = last.follow_point(rest[len(path) - 1])
    if behind is not None:
        found.append(behind)
        return []
    return [(one, i + n) for n, one in enumerate(path)]


def _path(start: Node, outcomes: Sequence[Key | None]) -> list[Node]:
    """The nodes along the outcomes, as far as they exist level by level.

    The last outcome may skip levels: its node still stands for the path.
    """
    path = [start]
    for n, key in enumerate(outcomes, 1):
        child = path[-1].follow_point(key)
        if child is None or (n < len(outcomes) and child.level > path[-1].level + 1):
            break
        path.append(child)
    return path


def search(tree: MatchingTree, keys: Sequence[Key | None], found: set[int]) -> int:
    """`MatchingTree.search` for an annotated tree."""
    waiting = [] if tree.root is None else [tree.root]
    columns, depth = tree.columns, tree.depth
    visits = 0
    while waiting:
        node = waiting.pop()
        visits += 1
        waiting += node.always
        if node.level == depth:
            found |= node.subscriptions or set()
            continue
        key = keys[columns[node.level]]
        child = None if node.points is None else node.points.get(key)
        if child is not None:
            waiting.append(child)
        else:
            waiting += node.blocked
        if node.ranges is not None:
            waiting.extend(node.ranges.holding(key))
    return visits
