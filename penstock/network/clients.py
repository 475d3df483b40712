"""The clients of one node: which points they have, and how far each has come.

Messages are tested against the exact points here: whatever was covered or merged on the path, a
client never gets a message that none of its points needs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from penstock.catalog import Relation
from penstock.messages import Message, Point
from penstock.routing.interest_index import InterestIndex
from penstock.routing.interests import Interest, Shapes, interest_of, shape_of


@dataclass(slots=True)
class Client:
    name: str
    source: str
    points: tuple[Point, ...]
    cursor: int
    """The sequence number of the source up to which it has received everything."""
    is_waiting: bool = True
    """True until missed messages were replayed; live messages until then are part of the replay."""

    is_held: bool = False
    """Set if it does not keep up: nothing is sent or requested for it until it reattaches."""

    def interests(self) -> list[Interest]:
        """The distinct interests of its points."""
        return list(dict.fromkeys(map(interest_of, self.points)))


class LocalClients:
    """Clients by name, and an index over their points."""

    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes
        self._clients: dict[str, Client] = {}
        self._index: dict[int, InterestIndex] = {}
        self._owners: dict[int, tuple[Client, Point]] = {}
        self._members: dict[str, list[tuple[int, int]]] = {}
        self._wanted: Counter[Interest] = Counter()
        self._next_member = 0

    def __len__(self) -> int:
        return len(self._clients)

    def __iter__(self) -> Iterator[Client]:
        return iter(list(self._clients.values()))

    def get(self, name: str) -> Client | None:
        return self._clients.get(name)

    def add(self, client: Client) -> list[Interest]:
        """Returns the interests that no other client has."""
        self._clients[client.name] = client
        members = self._members[client.name] = []
        for point in client.points:
            index = self._index.get(point.space)
            if index is None:
                shape = shape_of(self._shapes, point.space)
                index = self._index[point.space] = InterestIndex(shape)
            index.add(self._next_member, interest_of(point, with_number=True))
            self._owners[self._next_member] = (client, point)
            members.append((point.space, self._next_member))
            self._next_member += 1
        own = client.interests()
        self._wanted.update(own)
        return [one for one in own if self._wanted[one] == 1]

    def remove(self, name: str) -> list[Interest]:
        """Returns the interests that no other client has."""
        client = self._clients.pop(name, None)
        if client is None:
            return []
        for space, member in self._members.pop(name):
            self._index[space].remove(member)
            del self._owners[member]
        own = client.interests()
        self._wanted.subtract(own)
        gone = [one for one in own if not self._wanted[one]]
        for one in gone:
            del self._wanted[one]
        return gone

    def concerned(self, message: Message) -> list[Client]:
        """The clients with a point in the message's region, each once."""
        index = self._index.get(message.space)
        if index is None:
            return []
        base = index.shape.base
        found: dict[str, Client] = {}
        for member in index.names(message):
            client, point = self._owners[member]
            # The index is exact for points, except for recipients named by branch and node.
            if not message.recipients or _is_meant(message, point, base):
                found[client.name] = client
        return list(found.values())

    def is_meant(self, message: Message, client: Client) -> bool:
        base = shape_of(self._shapes, message.space).base
        return any(
            _is_meant(message, point, base)
            for point in client.points
            if point.space == message.space
        )


def _is_meant(message: Message, point: Point, base: Relation) -> bool:
    return message.upserts(point, base) or message.removes(point, base)
