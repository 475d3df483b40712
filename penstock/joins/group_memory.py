"""A cache of data derived from a group for the points of a space, kept from step to step."""

from __future__ import annotations

from itertools import islice
from typing import Generic, Protocol, TypeVar

from penstock.joins.group import Group
from penstock.joins.points import SpacePoints

MAX_REMEMBERED = 100_000
"""Maximum cached pairs of space and join value, at a few kB each; beyond that the oldest eighth is
evicted."""


class Derived(Protocol):
    """Data computed from a group. It references the group, so that the group's `id` is not reused
    while the entry is cached."""

    def fits(self, points: SpacePoints, group: Group) -> bool:
        """Whether it is still valid."""
        ...


Known = TypeVar("Known", bound=Derived)


class GroupMemory(Generic[Known]):
    def __init__(self, kind: type[Known]) -> None:
        """`kind` is constructed from points and a group."""
        self._kind = kind
        self._known: dict[tuple[int, int], Known] = {}

    def recall(self, points: SpacePoints, group: Group) -> Known:
        """The cached entry if it is valid, otherwise a new one."""
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
