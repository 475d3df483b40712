"""The matching tree of Aguilera, Strom, Sturman, Astley and Chandra (1999).

A subscription is a conjunction of elementary tests. The tests have one order, level by level: a
node examines the attribute of its level, its edges are the outcomes that some subscription
requires, and a don't-care edge leads to the subscriptions without a test on that level. A leaf
holds the subscriptions whose outcomes are the edges on its path. To match an event, follow from the
root all edges that agree with it; the subscriptions of the leaves reached match.

Outcomes of equality tests are found by hashing, those of ranges and inequalities by order
(`outcomes`). With `collapse`, a chain of don't-care edges is one edge: an edge may skip levels, and
no node has a don't-care edge only.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from penstock.catalog import Key
from penstock.matching.matchers.tree.outcomes import RangeOutcomes
from penstock.predicates.boxes import Box
from penstock.predicates.intervals import IS_NULL, Interval


class Test(NamedTuple):
    """A subscription's test on one level."""

    level: int
    interval: Interval
    is_point: bool
    key: Key | None
    """The required value of an equality test; None is NULL."""


class Node:
    """A node. In a leaf, `level` is the depth of the tree, and there are no edges."""

    __slots__ = ("always", "blocked", "level", "points", "ranges", "star", "subscriptions")

    def __init__(self, level: int) -> None:
        self.level = level
        self.points: dict[Key | None, Node] | None = None
        self.ranges: RangeOutcomes[Node] | None = None
        self.star: Node | None = None
        self.subscriptions: set[int] | None = None
        # Where the search continues, computed by static analysis (`successors`).
        self.always: tuple[Node, ...] = ()
        self.blocked: tuple[Node, ...] = ()

    def follow_point(self, key: Key | None) -> Node | None:
        return None if self.points is None else self.points.get(key)

    def follow(self, test: Test | None) -> Node | None:
        """The child over an outcome, or over the don't-care edge."""
        if test is None:
            return self.star
        if test.is_point:
            return self.follow_point(test.key)
        return None if self.ranges is None else self.ranges.get(test.interval)

    def children(self) -> Iterator[Node]:
        if self.points:
            yield from self.points.values()
        if self.ranges:
            yield from self.ranges.values()
        if self.star is not None:
            yield self.star

    def nbytes(self) -> int:
        inner = self.ranges.nbytes() if self.ranges else 0
        held = (self, self.points, self.subscriptions, self.always, self.blocked)
        return inner + sum(sys.getsizeof(one) for one in held if one)


class MatchingTree:
    """Normalised boxes, by the order of their columns.

    Columns without a level are not tested.
    """

    def __init__(self, columns: Sequence[int], collapse: bool) -> None:
        self.columns = tuple(columns)
        self.depth = len(self.columns)
        self.root: Node | None = None
        self.collapse = collapse
        self.node_count = 0
        self.range_edges = [0] * self.depth
        """How many range outcomes there are on each level."""
        self._levels = {column: level for level, column in enumerate(self.columns)}

    def tests_of(self, one: Box) -> list[Test]:
        """The tests of a box in the order of the levels."""
        tests = []
        for column, interval in one:
            level = self._levels.get(column)
            if level is not None:
                tests.append(Test(level, interval, *point_in(interval)))
        return sorted(tests, key=lambda test: test.level)

    def insert(self, one: Box, subscription: int) -> None:
        tests = self.tests_of(one)
        parent: Node | None = None
        via: Test | None = None
        node = self.root
        asked = 0
        while True:
            wanted = tests[asked].level if asked < len(tests) else self.depth
            if node is None or node.level > wanted:
                node = self._put_between(parent, via, node, wanted)
            if node.level == self.depth:
                node.subscriptions = node.subscriptions or set()
                node.subscriptions.add(subscription)
                return
            parent = node
            via = tests[asked] if node.level == wanted else None
            asked += via is not None
            node = node.follow(via)

    def _put_between(
        self, parent: Node | None, via: Test | None, node: Node | None, wanted: int
    ) -> Node:
        """A new node on an edge that was empty, or that skipped the wanted level."""
        next_level = 0 if parent is None else parent.level + 1
        new = Node(wanted if self.collapse else next_level)
        new.star = node
        self._link(parent, via, new)
        self.node_count += 1
        return new

    def _link(self, parent: Node | None, via: Test | None, node: Node) -> None:
        if parent is None:
            self.root = node
        elif via is None:
            parent.star = node
        elif via.is_point:
            if parent.points is None:
                parent.points = {}
            parent.points[via.key] = node
        else:
            if parent.ranges is None:
                parent.ranges = RangeOutcomes()
            self.range_edges[parent.level] += parent.ranges.get(via.interval) is None
            parent.ranges[via.interval] = node

    def _unlink(self, parent: Node | None, via: Test | None) -> None:
        if parent is None:
            self.root = None
        elif via is None:
            parent.star = None
        elif via.is_point:
            assert parent.points is not None
            del parent.points[via.key]
            parent.points = parent.points or None
        else:
            assert parent.ranges is not None
            del parent.ranges[via.interval]
            self.range_edges[parent.level] -= 1
            parent.ranges = parent.ranges if len(parent.ranges) else None

    def remove(self, one: Box, subscription: int) -> None:
        """Remove a box that was inserted, and the nodes that become empty.

        All boxes of a subscription are removed together. Two of them that differ only in columns
        without a level are one here, and the second removal finds nothing.
        """
        tests = self.tests_of(one)
        path: list[tuple[Node | None, Test | None]] = [(None, None)]
        node = self.root
        asked = 0
        while node is not None and node.level < self.depth:
            met = asked < len(tests) and node.level == tests[asked].level
            via = tests[asked] if met else None
            asked += met
            path.append((node, via))
            node = node.follow(via)
        if node is None or node.subscriptions is None:
            return
        node.subscriptions.discard(subscription)
        while path and node is not None and not node.subscriptions:
            parent, via = path.pop()
            if node.points or node.ranges or (node.star is not None and not self.collapse):
                return
            self.node_count -= 1
            if node.star is not None:
                self._link(parent, via, node.star)
                return
            self._unlink(parent, via)
            node = parent

    def search(self, keys: Sequence[Key | None], found: set[int]) -> int:
        """Add the matching subscriptions to `found`; returns the number of nodes visited."""
        waiting = [] if self.root is None else [self.root]
        columns, depth = self.columns, self.depth
        visits = 0
        while waiting:
            node = waiting.pop()
            visits += 1
            if node.level == depth:
                found |= node.subscriptions or set()
                continue
            key = keys[columns[node.level]]
            if node.points is not None and (child := node.points.get(key)) is not None:
                waiting.append(child)
            if node.ranges is not None:
                waiting.extend(node.ranges.holding(key))
            if node.star is not None:
                waiting.append(node.star)
        return visits

    def nodes(self) -> Iterator[Node]:
        waiting = [] if self.root is None else [self.root]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(node.children())


def point_in(interval: Interval) -> tuple[bool, Key | None]:
    """Whether a normalised interval holds exactly one value, and which."""
    if interval == IS_NULL:
        return True, None
    low, high = interval.low, interval.high
    if len(low) == 3 and len(high) == 3 and low[2] == 0:
        if high[1:] == (low[1], 1):
            return True, low[1]
        if isinstance(low[1], int) and isinstance(high[1], int) and high[1:] == (low[1] + 1, 0):
            return True, low[1]
    return False, None
