"""Peers that say what they are told to: for what no broker or reader would do."""

from __future__ import annotations

import asyncio

from penstock.delivery import description_from_plain
from penstock.messages import Point
from penstock.network.frames import Body, Frame, Hello, decode_frame, encode_frame
from penstock.service import Address
from penstock.service.connections import Connection, connect, greet_listener
from penstock.service.packets import Ask, Described, NodeFrame, Packet


async def raw_reader(address: Address, token: bytes = b"") -> Connection:
    connection = await connect(address)
    await greet_listener(connection, "reader", "raw@", token)
    return connection


async def described_points(reader: Connection, number: int) -> tuple[tuple[Point, ...], int]:
    reader.send(Ask(1, number))
    packet = await next_packet(reader, Described)
    assert isinstance(packet, Described)
    described = description_from_plain(packet.description)
    return tuple(described.points()), described.start


async def next_packet(connection: Connection, kind: type[Packet]) -> Packet:
    while True:
        packet = await connection.receive()
        if isinstance(packet, kind):
            return packet


async def to_the_end(connection: Connection) -> None:
    """Read until the other side closes, and raise what it says then."""
    while True:
        await connection.receive()


class RawBroker:
    """A neighbour further down that opens a session and sends any bodies."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.arrived = self.sent = 0
        self.session = 0

    @classmethod
    async def join(cls, address: Address, name: str = "raw@127.0.0.1:9") -> RawBroker:
        connection = await connect(address)
        await greet_listener(connection, "broker", name, b"")
        peer = cls(connection)
        hello = await peer.frame()
        peer.session = hello.sender
        peer.send(Hello(1))
        return peer

    def send(self, body: Body) -> None:
        frame = Frame(1 << 20, self.session, self.sent, self.arrived, body)
        self.sent += 1
        self.connection.send(NodeFrame(encode_frame(frame)))

    async def frame(self) -> Frame:
        """The next frame with a body."""
        while True:
            packet = await next_packet(self.connection, NodeFrame)
            assert isinstance(packet, NodeFrame)
            frame = decode_frame(packet.data)
            if frame.body is not None:
                self.arrived = frame.number + 1
                return frame


async def raw_bytes(address: Address, data: bytes) -> bytes:
    """Connect, say something, and read what comes back until the other side closes."""
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(data)
    writer.write_eof()
    found = await reader.read()
    writer.close()
    return found
