"""The interface of content networks, for comparison: messages in, journeys out.

A journey lists the overlay hops of a message and the subscriptions it reached. Its cost (bytes,
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
    """The number of hops since the message entered the network, this one included."""


class Arrival(NamedTuple):
    node: int
    subscription: int
    depth: int


@dataclass(slots=True)
class Journey:
    """Hops are in causal order: a node receives before it sends."""

    message: Message
    hops: list[Hop] = field(default_factory=list)
    arrivals: list[Arrival] = field(default_factory=list)
    in_vain: int = 0
    """Nodes that received the message but neither delivered nor forwarded it."""


class ContentNetwork(Protocol):
    """Nodes are numbers from 0 on; the server is one of them."""

    @property
    def server(self) -> int: ...

    @property
    def nodes(self) -> int: ...

    def subscribe(self, subscription: int, points: Sequence[Point], node: int) -> None:
        """`node` is the subscriber's node, for networks that let it choose."""

    def unsubscribe(self, subscription: int) -> None: ...

    def publish(self, messages: Sequence[Message]) -> list[Journey]:
        """The journey of each message from the server on."""

    def table_size(self) -> int:
        """Interests, or points, in the tables of all nodes."""
