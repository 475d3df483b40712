"""From changes of rows to steps of groups.

Steps number what happens at one offset, because clients must apply it in order: side by side of
each edge, a row leaves its old group before it enters a new one.
"""

from __future__ import annotations

from penstock.catalog import Relation
from penstock.catalog.halves import is_half
from penstock.engine.changes import Delta
from penstock.engine.index import Index
from penstock.engine.payloads import feeds, seen_from
from penstock.joins import Edge, GroupStep, GroupSteps, JoinValue, StepsByEdge, joiner
from penstock.messages import INITIAL_STEP

FIRST_STEP = INITIAL_STEP + 1


class EdgeSteps:
    """What changes of the rows of one relation do to the groups of one edge."""

    def __init__(self, relation: Relation, edge: Edge) -> None:
        self._sides = [
            SideSteps(relation, edge, number)
            for number, side in enumerate(edge.sides)
            if feeds(relation, side)
        ]

    def add(self, offset: int, delta: Delta, groups: GroupSteps) -> None:
        """Add the steps of one change to those of their groups, in order."""
        for side in self._sides:
            side.add(offset, delta, groups)


class SideSteps:
    """The same for one side of the edge."""

    def __init__(self, relation: Relation, edge: Edge, number: int) -> None:
        self._number = number
        self._side = edge.sides[number]
        self._sees_half = is_half(self._side.table)
        self._join_value = joiner(relation, self._side.columns)
        self._leaving = FIRST_STEP + 2 * number
        self._entering = self._leaving + 1

    def add(self, offset: int, delta: Delta, groups: GroupSteps) -> None:
        join_value = self._join_value
        if self._sees_half:
            seen = seen_from(self._side, delta)
            if seen is None:
                return
            delta, join_value = seen, joiner(seen.relation, self._side.columns)
        _, key, old, new = delta
        before = None if old is None else join_value(old)
        after = None if new is None else join_value(new)
        number, entering = self._number, self._entering
        if before == after:
            if before is not None:
                _add(groups, before, GroupStep(offset, entering, number, key, old, new))
            return
        if before is not None:
            _add(groups, before, GroupStep(offset, self._leaving, number, key, old, None))
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
        self.steps: StepsByEdge = {}
        self._index = index
        self._of_relation: dict[str, list[tuple[EdgeSteps, GroupSteps]]] = {}

    def add(self, offset: int, delta: Delta) -> None:
        feeding = self._of_relation.get(delta.relation.name)
        if feeding is None:
            feeding = self._of_relation[delta.relation.name] = self._feeding(delta.relation)
        for edge_steps, groups in feeding:
            edge_steps.add(offset, delta, groups)

    def _feeding(self, relation: Relation) -> list[tuple[EdgeSteps, GroupSteps]]:
        """The edges that a relation feeds, and where their steps go."""
        return [
            (EdgeSteps(relation, edge), self.steps.setdefault(edge, {}))
            for edge in self._index.edges_of(relation)
        ]
