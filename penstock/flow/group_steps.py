"""From changes of rows to steps of groups.

Steps are numbered within one offset, because clients must apply them in order: one side of each
edge after the other, and a row leaves its old group before it enters a new one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from penstock.catalog import Relation
from penstock.catalog.unnested import is_unnested
from penstock.flow.changes import Delta
from penstock.flow.index import Index
from penstock.joins import GroupStep, GroupSteps, StepsByEdge
from penstock.messages import INITIAL_STEP
from penstock.spaces import Edge, JoinValue, joiner

FIRST_STEP = INITIAL_STEP + 1
STEPS_OF_ROW = 4
"""A row leaves and enters on two sides. One record may change many rows of a document; each has its
own steps, because the next may show what one of them hides."""


class EdgeSteps:
    """The steps of changes of one relation in the groups of one edge."""

    def __init__(self, relation: Relation, edge: Edge) -> None:
        self._sides = [
            SideSteps(relation, edge, number)
            for number, side in enumerate(edge.sides)
            if side.table == relation.name
        ]

    def __len__(self) -> int:
        """The number of sides of the edge that the relation feeds: two in a self-join."""
        return len(self._sides)

    def add(self, run: Sequence[Delta], groups: GroupSteps) -> None:
        """Add the steps of changes to their groups, one side after the other."""
        for side in self._sides:
            side.add(run, groups)


class SideSteps:
    """`EdgeSteps` for one side of the edge."""

    def __init__(self, relation: Relation, edge: Edge, number: int) -> None:
        self._number = number
        self._side = edge.sides[number]
        self._changes_often = is_unnested(relation.name)
        self._join_value = joiner(relation, self._side.columns)
        self._leaving = FIRST_STEP + 2 * number
        self._entering = self._leaving + 1

    def add(self, run: Iterable[Delta], groups: GroupSteps) -> None:
        join_value, number = self._join_value, self._number
        leaving, entering, last = self._leaving, self._entering, None
        for offset, _, key, old, new in run:
            if self._changes_often and offset == last:
                leaving, entering = leaving + STEPS_OF_ROW, entering + STEPS_OF_ROW
            elif self._changes_often:
                leaving, entering, last = self._leaving, self._entering, offset
            before = None if old is None else join_value(old)
            after = None if new is None else join_value(new)
            if before == after:
                if before is not None:
                    _add(groups, before, GroupStep(offset, entering, number, key, old, new))
                continue
            if before is not None:
                _add(groups, before, GroupStep(offset, leaving, number, key, old, None))
            if after is not None:
                _add(groups, after, GroupStep(offset, entering, number, key, None, new))


def _add(groups: GroupSteps, value: JoinValue, step: GroupStep) -> None:
    steps = groups.get(value)
    if steps is None:
        groups[value] = [step]
    else:
        steps.append(step)


class StepCollector:
    """Collects the steps of changes to any relations."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._steps: StepsByEdge = {}
        self._feeding: Counter[Edge] = Counter()

    def add(self, relation: Relation, run: Sequence[Delta]) -> None:
        """Add the steps of all changes to a relation, in order."""
        for edge in self._index.edges_of(relation):
            steps = EdgeSteps(relation, edge)
            steps.add(run, self._steps.setdefault(edge, {}))
            self._feeding[edge] += len(steps)

    def in_order(self) -> StepsByEdge:
        """The steps of each group in their order."""
        for edge, groups in self._steps.items():
            if self._feeding[edge] > 1:
                for steps in groups.values():
                    steps.sort()
        return self._steps
