"""The links of a broker process: the current connection of each, if any.

A link outlives its connection: the node's session continues when the same process reconnects. A
restarted process is another neighbour.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from penstock.errors import NetworkError
from penstock.network.frames import Frame, encode_frame
from penstock.service.connections import Connection
from penstock.service.packets import NodeFrame, Packet

MAX_LINKS = 64
"""Neighbours of one broker. More readers need a tree of brokers."""
EXPIRE_SECONDS = 60.0
"""A downstream neighbour that is away for this long is dropped, with its interests."""

_NOTHING_SENT = (0, -1)


@dataclass(slots=True)
class Link:
    number: int
    name: str
    is_upstream: bool
    connection: Connection | None
    gone_at: float = 0.0
    sent: tuple[int, int] = _NOTHING_SENT
    """The last frame sent over the connection: session and number."""

    @property
    def address(self) -> str:
        """Where the neighbour listens, according to itself."""
        return self.name.partition("@")[2]


class Links:
    def __init__(self) -> None:
        self._links: dict[int, Link] = {}
        self.sent_bytes = 0
        """In frames of nodes."""

    def __iter__(self) -> Iterator[Link]:
        return iter(list(self._links.values()))

    def named(self, name: str) -> Link | None:
        return next((one for one in self if one.name == name), None)

    def add(self, name: str, connection: Connection, *, is_upstream: bool) -> Link:
        """NetworkError if there are too many."""
        number = next(i for i in range(1, MAX_LINKS + 2) if i not in self._links)
        if number > MAX_LINKS:
            raise NetworkError(
                f"this broker has {MAX_LINKS} neighbours already",
                hint="let the new one connect to another broker",
            )
        link = self._links[number] = Link(number, name, is_upstream, connection)
        return link

    def remove(self, link: Link) -> None:
        del self._links[link.number]

    def connect(self, link: Link, connection: Connection) -> None:
        """A neighbour has reconnected."""
        if link.connection is not None:
            link.connection.abort()
        link.connection, link.sent = connection, _NOTHING_SENT

    def disconnect(self, link: Link, connection: Connection, now: float) -> bool:
        """Whether the link now has no connection: there may be a newer one."""
        if link.connection is not connection:
            return False
        link.connection, link.gone_at = None, now
        return True

    def stale(self, now: float, successor: str = "") -> list[Link]:
        """Downstream neighbours that are away for too long, or were replaced by a restarted one."""
        return [
            link
            for link in self
            if link.connection is None
            and not link.is_upstream
            and (now - link.gone_at >= EXPIRE_SECONDS or (link.address == successor != ""))
        ]

    def send_frame(self, number: int, frame: Frame) -> None:
        """A frame already sent over this connection is on its way, and is not sent again."""
        link = self._links.get(number)
        if link is None or link.connection is None:
            return
        if frame.number >= 0:
            place = (frame.sender, frame.number)
            if place <= link.sent:
                return
            link.sent = place
        data = encode_frame(frame)
        self.sent_bytes += len(data)
        link.connection.send(NodeFrame(data))

    def send_down(self, packets: Iterable[Packet]) -> None:
        """Send to all connected downstream neighbours."""
        listed = list(packets)
        for link in self:
            if not link.is_upstream and link.connection is not None:
                for packet in listed:
                    link.connection.send(packet)
