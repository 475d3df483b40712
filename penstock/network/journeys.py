"""What a content network is, for whoever compares them: messages in, journeys out.

A journey says over which overlay hops a message went and whom it reached. What that costs (bytes,
stress, latency) is counted by `penstock.network.metrics`; with payload caching, by
`penstock.network.caching`, around any network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from penstock.messages import Message, Point


class Hop(NamedTuple):
    sender: int
    receiver: int
    depth: int
    """How many hops after it entered the network, this one included."""


class Arrival(NamedTuple):
    node: int
    subscription: int
    depth: int


@dataclass(slots=True)
class Journey:
    """Hops are in an order in which they can happen: a node receives before it sends."""

    message: Message
    hops: list[Hop] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    in_vain: int = 0
    """Nodes that received the message for nobody, and passed it on to nobody."""


class ContentNetwork(Protocol):
    """Nodes are numbers from 0 on; the server is one of them."""

    @property
    def server(self) -> int: ...

    @property
    def nodes(self) -> int: ...

    def subscribe(self, subscription: int, points: Sequence[Point], node: int) -> None:
        """`node` is where the subscriber is, for networks that let it choose."""

    def unsubscribe(self, subscription: int) -> None: ...

    def publish(self, messages: Sequence[Message]) -> list[Journey]:
        """The journey of each message from the server on."""

    def table_size(self) -> int:
        """Interests, or points, in the tables of all nodes."""
