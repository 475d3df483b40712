"""Subscriptions of one last hop as a set of diagrams, with covering.

Each subscription is a conjunction of predicates. Its diagram is a chain from its topmost predicate
downwards; subscriptions share equal suffixes. A *diagram* of the published set is a group of roots
with the same children, so a new one finds its group by looking up its children (figure 4), and the
set is maintained as subscriptions are added and removed.

Covering: a new conjunction gives every known predicate a two-bit code. The left bit says that the
new condition on that attribute contains the predicate's, the right bit that it lies within it. If
all left bits of a conjunction are set, the new one covers it; if all right bits are set, it covers
the new one. (The published description omits that the new conjunction must not test attributes that
the covered one does not: `attributes` ensures that here.)
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from penstock.catalog import Relation
from penstock.matching.matchers.diagram.nodes import FALSE, TRUE, NodeTable
from penstock.matching.matchers.diagram.predicates import PredicateIndex
from penstock.predicates.boxes import Box, covers
from penstock.predicates.intervals import Interval
from penstock.routing.diagrams.dependencies import DependencyTable
from penstock.routing.diagrams.kernels import (
    Bytes,
    Diagrams,
    Remembered,
    all_covered,
    first_cover,
    relations_in_one_pass,
)

_SWEEP_AT_LEAST = 1_000
"""Minimum removals before garbage nodes are swept."""


class Relations(NamedTuple):
    """The covering relations of a new subscription to those in the table."""

    covered_by: int | None
    covers: list[int]


# Many methods: adding, removing, querying and explaining use the same diagrams and caches.
class DiagramTable:
    """`order` lists column positions from the top of the diagrams to the bottom. With `caches`,
    dependency tables find the predicates that contain another one; without, all predicates of the
    attribute are compared. Not thread-safe."""

    def __init__(
        self, relation: Relation, order: Sequence[int] | None = None, *, caches: bool = True
    ) -> None:
        self.relation = relation
        self.caches = caches
        columns = range(len(relation.columns)) if order is None else order
        self._rank_of_column = {column: rank for rank, column in enumerate(columns)}
        self.predicates = PredicateIndex(relation)
        self.nodes = NodeTable(self._rank)
        self.dependencies: dict[int, DependencyTable] = {}
        self._uses: Counter[int] = Counter()
        self._boxes: dict[int, Box] = {}
        self._slots: dict[int, int] = {}
        self._free_slots: list[int] = []
        self._roots, self._ids, self._attributes = array("i"), array("q"), array("Q")
        self.diagrams: dict[tuple[int, int], dict[int, None]] = {}
        """The set of diagrams: by children, the subscriptions whose roots have them."""
        self._left: Bytes = np.ones(0, np.uint8)
        self._right: Bytes = np.zeros(0, np.uint8)
        self._memory = (_remembered(2), _remembered(2))
        self._stamp = 0
        self._removed = 0

    def _rank(self, variable: int) -> int:
        return self._rank_of_column[self.predicates.predicates[variable].column] << 32 | variable

    def __len__(self) -> int:
        return len(self._boxes)

    def __contains__(self, subscription: int) -> bool:
        return subscription in self._boxes

    def __getitem__(self, subscription: int) -> Box:
        return self._boxes[subscription]

    def items(self) -> Iterator[tuple[int, Box]]:
        return iter(self._boxes.items())

    def root(self, subscription: int) -> int:
        return self._roots[self._slots[subscription]]

    def top_column(self, subscription: int) -> int:
        """The attribute of the topmost test; -1 if there is none."""
        root = self.root(subscription)
        if root <= TRUE:
            return -1
        return self.predicates.predicates[self.nodes.variables[root]].column

    def insert(self, subscription: int, box: Box) -> Relations:
        """Covering-based insertion: not stored if covered; those that it covers are removed."""
        relations = self.relations(box)
        if relations.covered_by is None:
            for covered in relations.covers:
                self.remove(covered)
            self.add(subscription, box)
        return relations

    def add(self, subscription: int, box: Box) -> None:
        """Add a subscription regardless of covering."""
        self.remove(subscription)
        variables = [self._variable(column, interval) for column, interval in box]
        self._uses.update(variables)
        root = self.nodes.conjunction(variables)
        self._boxes[subscription] = box
        if self._free_slots:
            slot = self._free_slots.pop()
            self._roots[slot], self._ids[slot] = root, subscription
            self._attributes[slot] = self._attribute_bits(box)
        else:
            slot = len(self._roots)
            self._roots.append(root)
            self._ids.append(subscription)
            self._attributes.append(self._attribute_bits(box))
        self._slots[subscription] = slot
        self.diagrams.setdefault(self.nodes.children(root), {})[subscription] = None

    def remove(self, subscription: int) -> bool:
        box = self._boxes.pop(subscription, None)
        if box is None:
            return False
        slot = self._slots.pop(subscription)
        children = self.nodes.children(self._roots[slot])
        group = self.diagrams[children]
        del group[subscription]
        if not group:
            del self.diagrams[children]
        self._roots[slot] = FALSE
        self._free_slots.append(slot)
        for column, interval in box:
            self._release(column, interval)
        self._removed += 1
        if self._removed > max(_SWEEP_AT_LEAST, len(self)):
            self.sweep()
        return True

    def relations(self, box: Box) -> Relations:
        """In one pass: the subscription that covers a conjunction, or else those it covers."""
        left, right = self._codes(box)
        found = np.empty(len(self._roots), np.int64)
        bits = np.uint64(self._attribute_bits(box))
        self._stamp += 1
        cover, used = relations_in_one_pass(
            self._arrays(), left, right, bits, self._memory, self._stamp, found
        )
        self._forget_codes(box)
        if cover >= 0:
            return Relations(self._ids[cover], [])
        return Relations(None, self._verified(box, found[:used].tolist()))

    def relations_in_two_passes(self, box: Box) -> Relations:
        """`relations` by two separate passes over the whole table, for comparison."""
        left, right = self._codes(box)
        self._stamp = stamp = self._stamp + 1
        bits = np.uint64(self._attribute_bits(box))
        cover = first_cover(self._arrays(), right, bits, self._memory[0], stamp)
        found = np.empty(len(self._roots), np.int64)
        used = all_covered(self._arrays(), left, bits, self._memory[1], stamp, found)
        self._forget_codes(box)
        if cover >= 0:
            return Relations(self._ids[cover], [])
        return Relations(None, self._verified(box, found[:used].tolist()))

    def codes_of(self, box: Box) -> tuple[Bytes, Bytes]:
        """The first step only: the left and the right bit of every predicate."""
        left, right = (codes.copy() for codes in self._codes(box))
        self._forget_codes(box)
        return left, right

    def sweep(self) -> None:
        """Drop nodes and predicates that no subscription uses."""
        moved = self.nodes.sweep(self._roots)
        self._roots = array("i", moved[np.array(self._roots, np.int64)].tolist())
        used = {variable for variable, uses in self._uses.items() if uses}
        self.predicates, names = self.predicates.keeping(used)
        self.nodes.rename(names)
        self._uses = Counter({names[v]: uses for v, uses in self._uses.items() if uses})
        self._left, self._right = np.ones(0, np.uint8), np.zeros(0, np.uint8)
        self._memory = (_remembered(2), _remembered(2))
        self.dependencies = {}
        for variable, predicate in enumerate(self.predicates.predicates):
            self._dependencies(predicate.column).add(variable, predicate.interval)
        self.diagrams = {}
        for subscription, slot in self._slots.items():
            children = self.nodes.children(self._roots[slot])
            self.diagrams.setdefault(children, {})[subscription] = None
        self._removed = 0

    def _variable(self, column: int, interval: Interval) -> int:
        variable = self.predicates.variable(column, interval)
        table = self._dependencies(column)
        if variable not in table:
            table.add(variable, self.predicates.predicates[variable].interval)
        return variable

    def _dependencies(self, column: int) -> DependencyTable:
        return self.dependencies.setdefault(column, DependencyTable())

    def _release(self, column: int, interval: Interval) -> None:
        variable = self.predicates.variable(column, interval)
        self._uses[variable] -= 1
        if not self._uses[variable]:
            del self._uses[variable]
            self.dependencies[column].remove(variable)

    def _codes(self, box: Box) -> tuple[Bytes, Bytes]:
        """The two bits of every predicate. An untested attribute counts as unbounded."""
        variables = [self._known_variable(column, interval) for column, interval in box]
        size = len(self.predicates)
        if len(self._left) < size:
            self._left = np.ones(2 * size, np.uint8)
            self._right = np.zeros(2 * size, np.uint8)
        for (column, interval), variable in zip(box, variables, strict=True):
            table = self._dependencies(column)
            self._left[list(table)] = 0
            if self.caches and variable is not None and variable in table:
                self._left[table.implying(variable)] = 1
                self._right[table.implied_by(variable)] = 1
            else:
                self._compare(table, interval)
        return self._left, self._right

    def _known_variable(self, column: int, interval: Interval) -> int | None:
        if not self.caches:
            return None
        variable = self.predicates.find(column, interval)
        if variable is None or variable not in self._dependencies(column):
            # New predicates are added to the index before the query, as published.
            return self._variable(column, interval)
        return variable

    def _compare(self, table: DependencyTable, interval: Interval) -> None:
        for variable in table:
            other = self.predicates.predicates[variable].interval
            if interval.covers(other):
                self._left[variable] = 1
            if other.covers(interval):
                self._right[variable] = 1

    def _forget_codes(self, box: Box) -> None:
        for column, _ in box:
            variables = list(self._dependencies(column))
            self._left[variables] = 1
            self._right[variables] = 0

    def _verified(self, box: Box, slots: list[int]) -> list[int]:
        found = [self._ids[slot] for slot in slots]
        if len(self._rank_of_column) <= _BITS:
            return found
        return [one for one in found if covers(box, self._boxes[one])]

    def _attribute_bits(self, box: Box) -> int:
        bits = 0
        for column, _ in box:
            bits |= 1 << self._rank_of_column[column] % _BITS
        return bits

    def _arrays(self) -> Diagrams:
        variables, _, highs = self.nodes.arrays()
        if len(self._memory[0].values) < len(variables):
            self._memory = (_remembered(2 * len(variables)), _remembered(2 * len(variables)))
        roots = np.frombuffer(self._roots, np.int32)
        return Diagrams(variables, highs, roots, np.frombuffer(self._attributes, np.uint64))


_BITS = 64


def _remembered(size: int) -> Remembered:
    return Remembered(np.zeros(size, np.uint8), np.zeros(size, np.int64), np.empty(size, np.int32))
