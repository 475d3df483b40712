"""CBN: brokers along a tree, each with the tables of `penstock.network.routing_tables`.

Changes of tables and messages are propagated immediately, without sessions: the state that the
simulator's brokers converge to, at the speed that experiments with thousands of nodes need. A node
processes messages in batches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from penstock.messages import Message, Point
from penstock.network.journeys import Arrival, Hop, Journey
from penstock.network.link_tables import Entry, entry_name
from penstock.network.overlays import Edge, check_acyclic, numbered_links
from penstock.network.residents import Residents
from penstock.network.routing_tables import LOCAL, OfferChange, RoutingSettings, RoutingTables
from penstock.predicates.masks import bits
from penstock.routing.interests import Interest, Shapes, everything_in, interest_of

SOURCE = "server"


class CbnNetwork:
    def __init__(
        self,
        shapes: Shapes,
        nodes: int,
        edges: Sequence[Edge],
        server: int = 0,
        settings: RoutingSettings | None = None,
    ) -> None:
        check_acyclic(nodes, edges)
        self.server = server
        self.nodes = nodes
        self._links = numbered_links(nodes, edges)
        self._back = [{other: link for link, other in own.items()} for own in self._links]
        self._tables = [RoutingTables(shapes, settings) for _ in range(nodes)]
        self._residents = [Residents(shapes) for _ in range(nodes)]
        self._places: dict[int, tuple[int, list[Interest]]] = {}
        self._wanted: list[dict[Interest, int]] = [{} for _ in range(nodes)]
        for node, links in enumerate(self._links):
            for link in links:
                self._tables[node].add_link(link)
        for shape in shapes.values():
            advert = Entry(SOURCE, everything_in(shape))
            self._spread(server, self._tables[server].add(LOCAL, advert))
        self._order = self._from_server()
        self._pending: dict[int, list[OfferChange]] = {}

    def subscribe(self, subscription: int, points: Sequence[Point], node: int) -> None:
        self.unsubscribe(subscription)
        self._residents[node].add(subscription, points)
        interests = list(dict.fromkeys(map(interest_of, points)))
        self._places[subscription] = (node, interests)
        wanted = self._wanted[node]
        for interest in interests:
            wanted[interest] = wanted.get(interest, 0) + 1
            if wanted[interest] == 1:
                self._spread(node, self._tables[node].add(LOCAL, Entry("", interest)))

    def subscribe_many(self, subscriptions: Iterable[tuple[int, Sequence[Point], int]]) -> None:
        """Initial bulk subscription: tables are filled from the leaves to the server."""
        fresh: dict[int, list[Interest]] = {}
        for subscription, points, node in subscriptions:
            self._residents[node].add(subscription, points)
            interests = list(dict.fromkeys(map(interest_of, points)))
            self._places[subscription] = (node, interests)
            for interest in interests:
                count = self._wanted[node].get(interest, 0)
                self._wanted[node][interest] = count + 1
                if not count:
                    fresh.setdefault(node, []).append(interest)
        for node, _ in reversed(self._order):
            own = [Entry("", interest) for interest in fresh.get(node, ())]
            changes = self._tables[node].add_many(LOCAL, own)
            for change in changes + self._pending.pop(node, []):
                other = self._links[node][change.link]
                back = self._back[other][node]
                more = self._tables[other].add_many(back, change.added)
                self._pending.setdefault(other, []).extend(more)

    def unsubscribe(self, subscription: int) -> None:
        node, interests = self._places.pop(subscription, (self.server, []))
        self._residents[node].remove(subscription)
        wanted = self._wanted[node]
        for interest in interests:
            wanted[interest] -= 1
            if not wanted[interest]:
                del wanted[interest]
                name = entry_name(Entry("", interest))
                self._spread(node, self._tables[node].remove(LOCAL, name))

    def merge(self) -> None:
        """Merge where it is due, from the leaves to the server."""
        for node, _ in reversed(self._order):
            self._spread(node, self._tables[node].merge_if_due())

    def publish(self, messages: Sequence[Message]) -> list[Journey]:
        journeys = [Journey(message) for message in messages]
        arrived: dict[int, list[tuple[int, int]]] = {
            self.server: [(number, 0) for number in range(len(messages))]
        }
        for node, came_from in self._order:
            here = arrived.pop(node, None)
            if here:
                self._pass_on(node, came_from, here, journeys, arrived)
        return journeys

    def _pass_on(
        self,
        node: int,
        came_from: int,
        here: Sequence[tuple[int, int]],
        journeys: Sequence[Journey],
        arrived: dict[int, list[tuple[int, int]]],
    ) -> None:
        batch = [journeys[number].message for number, _ in here]
        wanted = self._tables[node].links_of(batch, came_from)
        residents, neighbours = self._residents[node], self._links[node]
        for (number, depth), links in zip(here, wanted, strict=True):
            journey = journeys[number]
            found: list[int] = []
            if links & 1:
                found = residents.concerned(journey.message)
                journey.arrivals += [Arrival(node, one, depth) for one in found]
            for link in bits(links >> 1):
                other = neighbours[link + 1]
                journey.hops.append(Hop(node, other, depth + 1))
                arrived.setdefault(other, []).append((number, depth + 1))
            if depth and not found and not links >> 1:
                journey.in_vain += 1

    def table_size(self) -> int:
        return sum(table.prt_size() for table in self._tables)

    def table_sizes(self) -> list[int]:
        return [table.prt_size() for table in self._tables]

    def _spread(self, start: int, changes: Iterable[OfferChange]) -> None:
        """Propagate changes of one node's offers to the tables of the next nodes."""
        waiting = deque((start, change) for change in changes)
        while waiting:
            node, change = waiting.popleft()
            other = self._links[node][change.link]
            back, table = self._back[other][node], self._tables[other]
            for entry in change.added:
                waiting.extend((other, one) for one in table.add(back, entry))
            for name, _ in change.removed:
                waiting.extend((other, one) for one in table.remove(back, name))

    def _from_server(self) -> list[tuple[int, int]]:
        """Nodes with their link towards the server, each after the node on that link."""
        found, seen = [(self.server, LOCAL)], {self.server}
        for node, _ in found:
            for other in self._links[node].values():
                if other not in seen:
                    seen.add(other)
                    found.append((other, self._back[other][node]))
        return found
