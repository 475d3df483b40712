"""From changes of rows to steps of groups.

Steps number what happens at one offset, because clients must apply it in order: side by side of
each edge, a row leaves its old group before it enters a new one.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.catalog import Relation
from penstock.catalog.halves import is_half
from penstock.engine.changes import Delta
from penstock.engine.payloads import feeds, seen_from
from penstock.joins import Edge, GroupStep, joiner
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

    def of(self, offset: int, delta: Delta) -> list[GroupStep]:
        """The steps of one change, in order."""
        if len(self._sides) == 1:
            return self._sides[0].of(offset, delta)
        return [step for side in self._sides for step in side.of(offset, delta)]


class SideSteps:
    """The same for one side of the edge."""

    def __init__(self, relation: Relation, edge: Edge, number: int) -> None:
        self._edge, self._number = edge, number
        self._side = edge.sides[number]
        self._sees_half = is_half(self._side.table)
        self._join_value = joiner(relation, self._side.columns)
        self._leaving = FIRST_STEP + 2 * number
        self._entering = self._leaving + 1

    def of(self, offset: int, delta: Delta) -> list[GroupStep]:
        join_value = self._join_value
        if self._sees_half:
            seen = seen_from(self._side, delta)
            if seen is None:
                return []
            delta, join_value = seen, joiner(seen.relation, self._side.columns)
        _, key, old, new = delta
        before = None if old is None else join_value(old)
        after = None if new is None else join_value(new)
        edge, number, entering = self._edge, self._number, self._entering
        if before == after:
            if before is None:
                return []
            return [GroupStep(offset, entering, edge, number, before, key, old, new)]
        steps = []
        if before is not None:
            steps.append(GroupStep(offset, self._leaving, edge, number, before, key, old, None))
        if after is not None:
            steps.append(GroupStep(offset, entering, edge, number, after, key, None, new))
        return steps


def steps_by_edge(relation: Relation, edges: Iterable[Edge]) -> list[EdgeSteps]:
    return [EdgeSteps(relation, edge) for edge in edges]
