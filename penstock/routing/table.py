"""A routing table: finds the subscriptions that get a message."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.catalog import Catalog
from penstock.messages import Message
from penstock.routing.plain import PlainRegions
from penstock.spaces import Placed, Space

if TYPE_CHECKING:
    from penstock.joins.points import SpacePoints

PLAIN_POINTS = 2_000
"""Points of a space up to which bit masks are used: at this size about as fast as the index, and
without kernels."""


class RoutingTable:
    """The points of subscriptions by space. Not thread-safe.

    Spaces with few points use the plain gear; a space that grows moves to the fast one, unless that
    cannot be imported.
    """

    def __init__(self, catalog: Catalog, plain_points: int = PLAIN_POINTS) -> None:
        self._catalog = catalog
        self._plain_points = plain_points
        self._plain: dict[int, PlainRegions] = {}
        self._fast: dict[int, SpacePoints] = {}
        self._placed: dict[int, list[Placed]] = {}

    def __contains__(self, subscription: int) -> bool:
        return subscription in self._placed

    def put(self, subscription: int, placed: Iterable[Placed]) -> None:
        """Add a subscription, or replace its points by those of another decomposition."""
        after, before = list(placed), self._placed.get(subscription, [])
        for old in before:
            self._remove(old)
        for new in after:
            self._add(new)
        self._placed[subscription] = after

    def remove(self, subscription: int) -> None:
        for one in self._placed.pop(subscription, []):
            self._remove(one)

    def subscribers(self, message: Message) -> set[int]:
        """The subscriptions that must upsert or remove the message's row at one of their points."""
        if message.space in self._fast:
            from penstock.routing.space_recipients import subscribers

            return subscribers(message, self._fast[message.space])
        points = self._plain.get(message.space)
        return set() if points is None else points.subscribers(message)

    def _add(self, one: Placed) -> None:
        number = one.space.id
        if number in self._fast:
            self._fast[number].add(one.point)
            return
        if number not in self._plain:
            self._plain[number] = PlainRegions(self._catalog[one.space.table])
        points = self._plain[number]
        points.add(one.point)
        if len(points) > self._plain_points:
            self._shift_up(one.space, points)

    def _remove(self, one: Placed) -> None:
        if one.space.id in self._fast:
            self._fast[one.space.id].remove(one.point.id)
        else:
            self._plain[one.space.id].remove(one.point.id)

    def _shift_up(self, space: Space, points: PlainRegions) -> None:
        try:
            from penstock.joins.points import SpacePoints
        except ImportError:  # numba is not installed here
            self._plain_points = len(points) * 2
            return
        fast = SpacePoints(space, self._catalog)
        for point in points:
            fast.add(point)
        self._fast[space.id] = fast
        del self._plain[space.id]
