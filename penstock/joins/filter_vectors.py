"""The filter vectors of a group, for a space with several filter columns.

No point can distinguish vectors with the same codes. A group may have many more rows than distinct
codes, so steps work on the codes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TypeAlias

from penstock.catalog import Row
from penstock.joins.group import Group, GroupStep
from penstock.joins.points import SpacePoints
from penstock.messages import Vector
from penstock.predicates.intervals import Cut, below

Codes: TypeAlias = tuple[int, ...]
"""One value per filter column, in the codes of the points' filters."""
Cuts: TypeAlias = tuple[Cut, ...]
"""A vector as cuts, which are totally ordered."""


class FilterVectors:
    """The vectors of the rows on the filter side, by their codes; follows the group's steps."""

    def __init__(self, points: SpacePoints, group: Group) -> None:
        self._points, self._group, self.version = points, group, group.version
        self._filters = points.all_filters
        self._by_codes: dict[Codes, list[tuple[Cuts, Vector]]] = {}
        for row in group.sides[1 - points.space.side].values():
            self._add(row)

    def fits(self, points: SpacePoints, group: Group) -> bool:
        """Whether no point was added or removed since, and no step was missed."""
        return (
            self._group is group
            and self.version == group.version
            and self._points is points
            and self._filters is points.all_filters
        )

    def follow(self, step: GroupStep) -> None:
        """Bring the vectors to the state after a step of a row on the filter side."""
        if step.new is not None:
            self._add(step.new)
        if step.old is not None:
            self._remove(step.old)

    def codes(self) -> list[Codes]:
        return sorted(self._by_codes)

    def has(self, codes: Codes) -> bool:
        return codes in self._by_codes

    def representatives(self) -> dict[Codes, Vector]:
        """One vector for each distinct codes; does not depend on the history."""
        ordered = sorted(self._by_codes.items(), key=lambda item: item[1][0][0])
        return {codes: vectors[-1][1] for codes, vectors in ordered}

    def _add(self, row: Row) -> None:
        vector = self._points.vector(row)
        held = self._by_codes.setdefault(codes_of(self._points, vector), [])
        insort(held, (_cuts(vector), vector), key=_by_cuts)

    def _remove(self, row: Row) -> None:
        vector = self._points.vector(row)
        codes = codes_of(self._points, vector)
        held = self._by_codes[codes]
        del held[bisect_left(held, _cuts(vector), key=_by_cuts)]
        if not held:
            del self._by_codes[codes]


def codes_of(points: SpacePoints, vector: Vector) -> Codes:
    pairs = zip(points.all_filters, vector, strict=True)
    return tuple(ranges.codes.value(key) for ranges, key in pairs)


def _cuts(vector: Vector) -> Cuts:
    return tuple([below(key) for key in vector])


def _by_cuts(item: tuple[Cuts, Vector]) -> Cuts:
    return item[0]
