"""Factoring: a separate tree for each value of an index attribute (Aguilera et al., 1999).

The value of an index attribute selects a subtree by hashing, and that subtree need not test the
attribute. A subscription that requires one value goes into that value's subtree. A *loose* one,
which has a range or no predicate on the attribute, goes into every subtree whose value it allows,
and into the *rest*: an ordinary tree for all values without a subtree. That trades memory for time,
so it suits attributes with few values that nearly all subscriptions constrain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from penstock.catalog import Key
from penstock.matching.matchers.tree.nodes import MatchingTree, point_in
from penstock.matching.matchers.tree.successors import analyse, search
from penstock.predicates.boxes import Box, interval_of

MAX_SUBTREES = 1_024
COPIES_AT_LEAST = 4_096
COPIES_PER_BOX = 8
"""Maximum copies of loose boxes, on average per box; more are not worth their memory."""


class Store(Protocol):
    """Boxes that can be searched: one tree, or many by index attribute."""

    def insert(self, one: Box, subscription: int) -> None: ...
    def remove(self, one: Box, subscription: int) -> None: ...
    def search(self, keys: Sequence[Key | None], found: set[int]) -> int: ...
    def analyse(self) -> None: ...
    def trees(self) -> Iterator[MatchingTree]: ...


class SingleTree:
    """One tree. After a change, successors are recomputed once searches have cost as much."""

    def __init__(self, tree: MatchingTree, successors: bool) -> None:
        self.tree = tree
        self._successors = successors
        self._analysed = False
        self._visits_since_change = 0

    def insert(self, one: Box, subscription: int) -> None:
        self._analysed = False
        self._visits_since_change = 0
        self.tree.insert(one, subscription)

    def remove(self, one: Box, subscription: int) -> None:
        self._analysed = False
        self._visits_since_change = 0
        self.tree.remove(one, subscription)

    def search(self, keys: Sequence[Key | None], found: set[int]) -> int:
        if self._analysed:
            return search(self.tree, keys, found)
        visits = self.tree.search(keys, found)
        self._visits_since_change += visits
        if self._visits_since_change > self.tree.node_count:
            self.analyse()
        return visits

    def analyse(self) -> None:
        if self._successors and not self._analysed:
            analyse(self.tree)
            self._analysed = True

    def trees(self) -> Iterator[MatchingTree]:
        yield self.tree


class Factored:
    """Subtrees by the value of one column."""

    def __init__(
        self,
        column: int,
        make_subtree: Callable[[], Store],
        rest: Store,
    ) -> None:
        self._column = column
        self._make_subtree = make_subtree
        self._rest = rest
        self._subtrees: dict[Key | None, Store] = {}
        self._pinned: dict[Key | None, set[tuple[int, Box]]] = {}
        self._pinned_count = 0
        self._loose: set[tuple[int, Box]] = set()

    def insert(self, one: Box, subscription: int) -> None:
        is_point, key = point_in(interval_of(one, self._column))
        if is_point and (key in self._subtrees or self._may_open()):
            if key not in self._subtrees:
                self._open(key)
            self._subtrees[key].insert(one, subscription)
            self._pinned[key].add((subscription, one))
            self._pinned_count += 1
            return
        self._loose.add((subscription, one))
        self._rest.insert(one, subscription)
        for subtree in self._allowed(one):
            subtree.insert(one, subscription)
        if len(self._loose) * len(self._subtrees) > 2 * self._copies_allowed():
            self._give_up()

    def remove(self, one: Box, subscription: int) -> None:
        if (subscription, one) in self._loose:
            self._loose.remove((subscription, one))
            self._rest.remove(one, subscription)
            for subtree in self._allowed(one):
                subtree.remove(one, subscription)
            return
        _, key = point_in(interval_of(one, self._column))
        self._pinned[key].remove((subscription, one))
        self._pinned_count -= 1
        if self._pinned[key]:
            self._subtrees[key].remove(one, subscription)
        else:
            # The remaining boxes of the subtree are loose, so the rest has them, too.
            del self._subtrees[key], self._pinned[key]

    def search(self, keys: Sequence[Key | None], found: set[int]) -> int:
        return self._subtrees.get(keys[self._column], self._rest).search(keys, found)

    def analyse(self) -> None:
        for store in (self._rest, *self._subtrees.values()):
            store.analyse()

    def trees(self) -> Iterator[MatchingTree]:
        for store in (self._rest, *self._subtrees.values()):
            yield from store.trees()

    def _allowed(self, one: Box) -> list[Store]:
        """The subtrees whose value a box allows."""
        interval = interval_of(one, self._column)
        return [tree for key, tree in self._subtrees.items() if interval.contains(key)]

    def _copies_allowed(self) -> int:
        return max(COPIES_AT_LEAST, COPIES_PER_BOX * (len(self._loose) + self._pinned_count))

    def _may_open(self) -> bool:
        count = len(self._subtrees) + 1
        return count <= MAX_SUBTREES and count * len(self._loose) <= self._copies_allowed()

    def _open(self, key: Key | None) -> None:
        subtree = self._subtrees[key] = self._make_subtree()
        self._pinned[key] = set()
        for subscription, one in self._loose:
            if interval_of(one, self._column).contains(key):
                subtree.insert(one, subscription)

    def _give_up(self) -> None:
        """Drop all subtrees: there are too many loose boxes to copy into each."""
        for boxes in self._pinned.values():
            for subscription, one in boxes:
                self._loose.add((subscription, one))
                self._rest.insert(one, subscription)
        self._subtrees, self._pinned, self._pinned_count = {}, {}, 0
