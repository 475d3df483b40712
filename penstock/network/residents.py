"""The subscriptions of one node by number, and the exact recipients of a message among them."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.messages import Message, Point
from penstock.network.clients import Client, LocalClients
from penstock.routing.interests import Shapes


class Residents:
    def __init__(self, shapes: Shapes) -> None:
        self._clients = LocalClients(shapes)

    def __len__(self) -> int:
        return len(self._clients)

    def add(self, subscription: int, points: Sequence[Point]) -> None:
        self.remove(subscription)
        self._clients.add(Client(str(subscription), "", tuple(points), 0))

    def remove(self, subscription: int) -> None:
        self._clients.remove(str(subscription))

    def concerned(self, message: Message) -> list[int]:
        return sorted(int(client.name) for client in self._clients.concerned(message))
