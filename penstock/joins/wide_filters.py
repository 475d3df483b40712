"""Dispatch: schemes for one filter column, envelopes for spaces with several.

Skylines and shadows of the schemes `ref-sj-*` are defined in the plane of one column's low and high
ends. Spaces with more filter columns are all handled by envelopes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from penstock.joins.envelopes import envelope_messages
from penstock.joins.filter_vectors import FilterVectors
from penstock.joins.group import Group, GroupStep
from penstock.joins.group_memory import GroupMemory
from penstock.joins.points import SpacePoints
from penstock.joins.scheme import Family, Scheme
from penstock.messages import AnyMessage, Message, Position

if TYPE_CHECKING:
    from penstock.joins.packed.interface import PackedScheme


class WithEnvelopes:
    """A scheme for spaces with one filter column, and envelopes for the others."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        self._vectors = GroupMemory(FilterVectors)

    @property
    def name(self) -> str:
        return self._scheme.name

    @property
    def family(self) -> Family:
        return self._scheme.family

    @property
    def packed(self) -> PackedScheme | None:
        return self._scheme.packed

    def messages(
        self, group: Group, step: GroupStep, spaces: Iterable[SpacePoints]
    ) -> Iterator[Message]:
        spaces = list(spaces)
        narrow = [points for points in spaces if not points.has_envelopes]
        wide = [points for points in spaces if points.has_envelopes]
        if narrow:
            yield from self._scheme.messages(group, step, narrow)
        for points in wide:
            vectors = self._vectors.recall(points, group)
            yield from envelope_messages(group, step, points, vectors)
            vectors.version = group.version + 1  # the caller applies the step next

    def run(
        self, group: Group, steps: Iterable[GroupStep], spaces: Sequence[SpacePoints]
    ) -> list[AnyMessage]:
        if not any(points.has_envelopes for points in spaces):
            return self._scheme.run(group, steps, spaces)
        found: list[AnyMessage] = []
        for step in steps:
            found += self.messages(group, step, spaces)
            group.apply(step)
        return found

    def initial(
        self, position: Position, groups: Iterable[Group], points: SpacePoints
    ) -> Iterator[Message]:
        return self._scheme.initial(position, groups, points)
