"""A simulated network of brokers: virtual time, links with latency, bandwidth and loss, crashes.

Runs are deterministic in their seed, so a failing run can be repeated frame by frame. Nodes are the
same as in broker processes; here frames are encoded, carried by a queue of events, and decoded.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import count
from random import Random

from penstock.messages import Message, Point
from penstock.network.frames import decode_frame, encode_frame
from penstock.network.node import BrokerNode
from penstock.network.overlays import Edge, check_acyclic, numbered_links
from penstock.network.ports import Outcome
from penstock.routing.interests import Interest

MAX_VIRTUAL_SECONDS = 3_600.0
"""A network that is not quiet by then is considered stuck."""
MAX_QUEUE_SECONDS = 3.0
"""Maximum queueing delay of a congested link; further frames are dropped."""


class NotQuietError(Exception):
    """The network has not become quiet."""


@dataclass(slots=True)
class Conditions:
    """The conditions of one link, in both directions."""

    latency: float = 0.01
    """Seconds."""
    jitter: float = 0.0
    """Maximum additional latency in seconds; frames keep their order."""
    bandwidth: float = 0.0
    """Bytes per second; 0 for unlimited."""
    loss: float = 0.0
    """The share of lost frames."""
    is_cut: bool = False


class MemorySource:
    """The log of a source, kept by the simulation: it survives crashes."""

    def __init__(self) -> None:
        self._messages: list[Message] = []

    @property
    def end(self) -> int:
        return len(self._messages)

    def append(self, message: Message) -> None:
        self._messages.append(message)

    def read(self, after: int, most: int) -> Sequence[tuple[int, Message]]:
        return list(enumerate(self._messages[after : after + most], after + 1))


@dataclass(slots=True)
class SimulatedClient:
    """Records what it received; reattaches to its node with its cursor after a crash."""

    name: str
    node: int
    source: str
    points: tuple[Point, ...]
    cursor: int
    received: list[tuple[int, Message]] = field(default_factory=list)


@dataclass
class Traffic:
    """The traffic over all links."""

    frames: Counter[str] = field(default_factory=Counter)
    """By kind of body."""
    bytes_by_link: Counter[tuple[int, int]] = field(default_factory=Counter)
    lost: int = 0

    @property
    def total_bytes(self) -> int:
        return sum(self.bytes_by_link.values())


class Simulator:
    """`make_node(number, links, start)` creates a node, at the beginning and after a crash."""

    def __init__(
        self,
        nodes: int,
        edges: Sequence[Edge],
        make_node: Callable[[int, Sequence[int], int], BrokerNode],
        seed: int,
        tick_seconds: float = 0.5,
    ) -> None:
        check_acyclic(nodes, edges)
        self.random = Random(seed)
        self.now = 0.0
        self.links = numbered_links(nodes, edges)
        self._back = [{other: link for link, other in own.items()} for own in self.links]
        self._make_node = make_node
        self._tick_seconds = tick_seconds
        self._starts = [1] * nodes
        self.nodes: list[BrokerNode | None] = [None] * nodes
        self.conditions = {frozenset(edge): Conditions() for edge in edges}
        self._free_at: dict[tuple[int, int], float] = {}
        self._arrives_at: dict[tuple[int, int], float] = {}
        self._events: list[tuple[float, int, int, int, int, bytes]] = []
        self._numbers = count()
        self.clients: dict[str, SimulatedClient] = {}
        self.sources: dict[str, tuple[int, MemorySource, tuple[Interest, ...]]] = {}
        self.traffic = Traffic()
        self._trace = blake2b(digest_size=16)
        for node in range(nodes):
            self._start(node)

    @property
    def trace(self) -> str:
        """A digest of every frame that arrived, and when: equal for equal runs."""
        return self._trace.hexdigest()

    # Actions of a scenario.

    def restart(self, number: int) -> None:
        """Restart a crashed node; its clients and sources reattach."""
        if self.nodes[number] is not None:
            return
        self._starts[number] += 1
        self._start(number)

    def _start(self, number: int) -> None:
        node = self._make_node(number, list(self.links[number]), self._starts[number])
        self.nodes[number] = node
        self._carry_out(number, node.start(self.now))
        self._schedule_tick(number)
        for name, (at, log, advertised) in self.sources.items():
            if at == number:
                self._carry_out(number, node.speak_for(name, log, advertised, self.now))
        for client in self.clients.values():
            if client.node == number:
                self._attach(client)

    def crash(self, number: int) -> None:
        self.nodes[number] = None

    def condition(self, one: int, other: int) -> Conditions:
        return self.conditions[frozenset((one, other))]

    def add_source(self, name: str, node: int, advertised: Iterable[Interest]) -> MemorySource:
        log = MemorySource()
        self.sources[name] = (node, log, tuple(advertised))
        broker = self.nodes[node]
        if broker is not None:
            self._carry_out(node, broker.speak_for(name, log, self.sources[name][2], self.now))
        return log

    def publish(self, source: str, message: Message) -> None:
        """Append to the log immediately; forward it if the source's node is up."""
        node, log, _ = self.sources[source]
        log.append(message)
        broker = self.nodes[node]
        if broker is not None:
            self._carry_out(node, broker.publish(source, log.end - 1, self.now))

    def subscribe(
        self, name: str, node: int, source: str, points: Sequence[Point], after: int
    ) -> SimulatedClient:
        client = self.clients[name] = SimulatedClient(name, node, source, tuple(points), after)
        self._attach(client)
        return client

    def unsubscribe(self, name: str) -> None:
        client = self.clients.pop(name)
        broker = self.nodes[client.node]
        if broker is not None:
            self._carry_out(client.node, broker.detach(name, self.now))

    def move(self, name: str, node: int) -> None:
        """Move a client to another node, with its cursor."""
        client = self.clients[name]
        broker = self.nodes[client.node]
        if broker is not None:
            self._carry_out(client.node, broker.detach(name, self.now))
        client.node = node
        self._attach(client)

    def run_for(self, seconds: float) -> None:
        until = self.now + seconds
        while self._events and self._events[0][0] <= until:
            self._step()
        self.now = until

    def run_until_quiet(self) -> None:
        """Run until nothing is in progress; requires that all nodes are up, and no link is cut."""
        until = self.now + MAX_VIRTUAL_SECONDS
        while not self.is_quiet:
            if not self._events or self.now > until:
                raise NotQuietError(f"not quiet after {self.now:.0f} virtual seconds")
            self._step()

    @property
    def is_quiet(self) -> bool:
        return not any(event[2] != _TICK for event in self._events) and all(
            node is None or node.is_quiet for node in self.nodes
        )

    # Internals.

    def _attach(self, client: SimulatedClient) -> None:
        broker = self.nodes[client.node]
        if broker is not None:
            outcome = broker.attach(
                client.name, client.source, client.points, client.cursor, self.now
            )
            self._carry_out(client.node, outcome)

    def _carry_out(self, number: int, outcome: Outcome) -> None:
        for link, frame in outcome.frames:
            kind = "Ack only" if frame.body is None else type(frame.body).__name__
            self.traffic.frames[kind] += 1
            self._transmit(number, self.links[number][link], encode_frame(frame))
        for name, sequence, message in outcome.delivered:
            client = self.clients.get(name)
            if client is not None and client.node == number:
                client.cursor = max(client.cursor, sequence)
                client.received.append((sequence, message))

    def _transmit(self, sender: int, receiver: int, data: bytes) -> None:
        conditions = self.condition(sender, receiver)
        way = (sender, receiver)
        self.traffic.bytes_by_link[way] += len(data)
        if conditions.is_cut or (conditions.loss and self.random.random() < conditions.loss):
            self.traffic.lost += 1
            return
        leaves = max(self.now, self._free_at.get(way, 0.0))
        if leaves - self.now > MAX_QUEUE_SECONDS:
            self.traffic.lost += 1
            return
        if conditions.bandwidth:
            leaves += len(data) / conditions.bandwidth
            self._free_at[way] = leaves
        latency = conditions.latency + conditions.jitter * self.random.random()
        arrives = max(leaves + latency, self._arrives_at.get(way, 0.0))
        self._arrives_at[way] = arrives
        self._schedule(arrives, sender, receiver, self._starts[receiver], data)

    def _schedule(self, at: float, sender: int, receiver: int, start: int, data: bytes) -> None:
        heapq.heappush(self._events, (at, next(self._numbers), sender, receiver, start, data))

    def _schedule_tick(self, number: int) -> None:
        # Nodes tick at different times.
        wait = self._tick_seconds * (0.5 + self.random.random())
        self._schedule(self.now + wait, _TICK, number, self._starts[number], b"")

    def _step(self) -> None:
        self.now, _, sender, receiver, start, data = heapq.heappop(self._events)
        node = self.nodes[receiver]
        if node is None or start != self._starts[receiver]:
            return  # the node crashed meanwhile
        if sender == _TICK:
            self._carry_out(receiver, node.tick(self.now))
            self._schedule_tick(receiver)
            return
        if self.condition(sender, receiver).is_cut:
            self.traffic.lost += 1
            return
        self._trace.update(b"%d %d %.6f " % (sender, receiver, self.now) + data)
        link = self._back[receiver][sender]
        self._carry_out(receiver, node.receive(link, decode_frame(data), self.now))


_TICK = -1
