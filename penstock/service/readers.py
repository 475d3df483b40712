"""The readers of a broker process. There is no queue per reader: a slow one is held, and what it
missed is read for it from the home when it is ready."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.errors import NetworkError
from penstock.messages import Message, Point
from penstock.service.connections import Connection
from penstock.service.packets import Delivered

MAX_READERS = 10_000


@dataclass(slots=True)
class Reader:
    name: str
    connection: Connection
    points: tuple[Point, ...] = ()
    cursor: int = 0
    """The last sequence number sent to it."""
    is_held: bool = False


class Readers:
    def __init__(self) -> None:
        self._readers: dict[str, Reader] = {}
        self._next = 1
        self.holds = 0
        """How often a reader was held."""

    def __iter__(self) -> Iterator[Reader]:
        return iter(list(self._readers.values()))

    def __len__(self) -> int:
        return len(self._readers)

    def add(self, connection: Connection) -> Reader:
        if len(self._readers) >= MAX_READERS:
            raise NetworkError(
                f"this broker has {MAX_READERS:,} readers already",
                hint="connect to another broker",
            )
        reader = Reader(f"reader {self._next}", connection)
        self._next += 1
        self._readers[reader.name] = reader
        return reader

    def remove(self, reader: Reader) -> None:
        del self._readers[reader.name]

    def deliver(self, name: str, sequence: int, message: Message) -> Reader | None:
        """Forward a message; returns the reader if it must be held from now on."""
        reader = self._readers.get(name)
        if reader is None or reader.is_held:
            return None
        reader.connection.send(Delivered(sequence, message))
        reader.cursor = sequence
        if not reader.connection.is_full:
            return None
        reader.is_held = True
        self.holds += 1
        return reader
