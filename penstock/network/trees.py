"""The journeys of a CBN with exact tables, computed from the locations of subscribers.

Without imperfect merging a link carries a message exactly if some subscription beyond it wants it.
So the journey consists of the tree's paths from the server to all of those, and takes one index
query, where running every broker takes one per hop. A test checks that both give the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter

from penstock.garbage import without_garbage
from penstock.messages import Message, Point, PointId
from penstock.network.journeys import Arrival, Hop, Journey
from penstock.network.overlays import Edge, check_acyclic, numbered_links
from penstock.routing.interest_index import InterestIndex
from penstock.routing.interests import Shapes, interest_of, shape_of


class TreeNetwork:
    """Messages that name their recipients go to the nodes of these."""

    def __init__(self, shapes: Shapes, nodes: int, edges: Sequence[Edge], server: int = 0) -> None:
        check_acyclic(nodes, edges)
        self.server = server
        self.nodes = nodes
        self._shapes = shapes
        self._index: dict[int, InterestIndex] = {}
        self._points: dict[int, list[tuple[int, int]]] = {}
        """By subscription: space and member of each point."""
        self._arrivals: dict[int, Arrival] = {}
        """By member: the arrival of a message at its subscription, the same each time."""
        self._several: set[int] = set()
        """Spaces in which some subscription has several points: a message reaches it once."""
        self._next_member = 0
        self._parents, self._depths = self._ways(numbered_links(nodes, edges))
        ways = enumerate(zip(self._parents, self._depths, strict=True))
        self._last_hops = [Hop(parent, node, depth) for node, (parent, depth) in ways]
        """By node: the last hop on the path to it."""

    def subscribe(self, subscription: int, points: Sequence[Point], node: int) -> None:
        self.unsubscribe(subscription)
        for point, member in self._entered(subscription, points, node):
            self._index_of(point.space).add(member, interest_of(point, with_number=True))

    def subscribe_many(self, subscriptions: Iterable[tuple[int, Sequence[Point], int]]) -> None:
        fresh: dict[int, list[tuple[int, Point]]] = {}
        for subscription, points, node in subscriptions:
            for point, member in self._entered(subscription, points, node):
                fresh.setdefault(point.space, []).append((member, point))
        for space, members in fresh.items():
            named = ((member, interest_of(p, with_number=True), 0) for member, p in members)
            self._index_of(space).add_many(named)

    def unsubscribe(self, subscription: int) -> None:
        for space, member in self._points.pop(subscription, ()):
            self._index[space].remove(member)
            del self._arrivals[member]

    def publish(self, messages: Sequence[Message]) -> list[Journey]:
        with without_garbage():
            return [self._journey(message) for message in messages]

    def table_size(self) -> int:
        return len(self._arrivals)

    def _journey(self, message: Message) -> Journey:
        journey = Journey(message)
        index = self._index.get(message.space)
        if index is None:
            return journey
        named = message.recipients
        found = self._members_of(named, message.space) if named else index.names(message)
        arrivals = map(self._arrivals.__getitem__, found)
        is_plain = message.space not in self._several
        journey.arrivals = list(arrivals if is_plain else dict.fromkeys(arrivals))
        hops, parents, last_hops, seen = journey.hops, self._parents, self._last_hops, {self.server}
        for node in set(map(_node, journey.arrivals)):
            while node not in seen:
                seen.add(node)
                hops.append(last_hops[node])
                node = parents[node]
        hops.sort(key=_depth)
        return journey

    def _members_of(self, recipients: Iterable[PointId], space: int) -> Iterator[int]:
        """The members of named recipients. Searching the index for each of thousands of them would
        take longer than everything else."""
        for subscription in dict.fromkeys(one.subscription for one in recipients):
            for own_space, member in self._points.get(subscription, ()):
                if own_space == space:
                    yield member

    def _entered(
        self, subscription: int, points: Sequence[Point], node: int
    ) -> Iterable[tuple[Point, int]]:
        members = self._points.setdefault(subscription, [])
        arrival = Arrival(node, subscription, self._depths[node])
        times = Counter(point.space for point in points)
        self._several.update(space for space, number in times.items() if number > 1)
        for point in points:
            self._arrivals[self._next_member] = arrival
            members.append((point.space, self._next_member))
            yield point, self._next_member
            self._next_member += 1

    def _index_of(self, space: int) -> InterestIndex:
        index = self._index.get(space)
        if index is None:
            index = self._index[space] = InterestIndex(shape_of(self._shapes, space))
        return index

    def _ways(self, links: Sequence[dict[int, int]]) -> tuple[list[int], list[int]]:
        """For each node, the neighbour towards the server, and the distance to the server."""
        parents, depths = [self.server] * len(links), [-1] * len(links)
        depths[self.server] = 0
        reached = [self.server]
        for node in reached:
            for other in links[node].values():
                if depths[other] < 0:
                    parents[other], depths[other] = node, depths[node] + 1
                    reached.append(other)
        return parents, depths


_node = itemgetter(Arrival._fields.index("node"))
_depth = itemgetter(Hop._fields.index("depth"))
