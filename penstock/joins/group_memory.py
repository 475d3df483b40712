"""What is derived from a group for the points of a space, remembered from step to step."""

from __future__ import annotations

from itertools import islice
from typing import Generic, Protocol, TypeVar

from penstock.joins.group import Group
from penstock.joins.points import SpacePoints

MAX_REMEMBERED = 100_000
"""So many pairs of space and join value are remembered, at a few kB each; then the longest known
eighth is forgotten."""


class Derived(Protocol):
    """Something that was worked out from a group. It keeps the group, so no other one takes its
    identity as long as this is remembered."""

    def fits(self, points: SpacePoints, group: Group) -> bool:
        """Whether it still holds."""
        ...


Known = TypeVar("Known", bound=Derived)


class GroupMemory(Generic[Known]):
    def __init__(self, kind: type[Known]) -> None:
        """`kind` is made of points and a group."""
        self._kind = kind
        self._known: dict[tuple[int, int], Known] = {}

    def recall(self, points: SpacePoints, group: Group) -> Known:
        """What is known, or is worked out now."""
        place = (points.space.id, id(group))
        known = self._known.get(place)
        if known is not None and known.fits(points, group):
            return known
        if len(self._known) >= MAX_REMEMBERED:
            for oldest in list(islice(self._known, MAX_REMEMBERED // 8)):
                del self._known[oldest]
        made: Known = self._kind(points, group)  # type: ignore[call-arg]
        self._known[place] = made
        return made
