"""Unicast: the server knows all subscribers and sends each message to each recipient."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.messages import Message, Point
from penstock.network.journeys import Arrival, Hop, Journey
from penstock.network.residents import Residents
from penstock.routing.interests import Shapes


class UnicastNetwork:
    def __init__(self, shapes: Shapes, nodes: int, server: int = 0) -> None:
        self.server = server
        self.nodes = nodes
        self._residents = Residents(shapes)
        self._places: dict[int, int] = {}

    def subscribe(self, subscription: int, points: Sequence[Point], node: int) -> None:
        self._residents.add(subscription, points)
        self._places[subscription] = node

    def unsubscribe(self, subscription: int) -> None:
        self._residents.remove(subscription)
        self._places.pop(subscription, None)

    def publish(self, messages: Sequence[Message]) -> list[Journey]:
        journeys = []
        for message in messages:
            journey = Journey(message)
            for subscription in self._residents.concerned(message):
                node = self._places[subscription]
                if node != self.server:
                    journey.hops.append(Hop(self.server, node, 1))
                journey.arrivals.append(Arrival(node, subscription, int(node != self.server)))
            journeys.append(journey)
        return journeys

    def table_size(self) -> int:
        return len(self._residents)
