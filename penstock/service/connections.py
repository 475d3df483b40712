"""One connection: packets in, packets out, with limits on size, time and memory.

Thin on purpose: independent of what brokers do.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

from penstock.errors import NetworkError, PenstockError
from penstock.service.addresses import Address
from penstock.service.packets import (
    LENGTH_BYTES,
    MAX_GREETING_BYTES,
    MAX_PACKET_BYTES,
    PREFACE,
    VERSION,
    Greeting,
    Packet,
    Ping,
    Proof,
    Refused,
    decode_packet,
    encode_packet,
    refusal,
    refused_error,
)
from penstock.service.tokens import NONCE_BYTES, draw_nonce, proof, proven_token

CONNECT_SECONDS = 5.0
GREETING_SECONDS = 10.0
"""Timeout for the whole greeting."""
PING_SECONDS = 5.0
SILENCE_SECONDS = 30.0
"""Six pings: a connection without input for this long is dead."""
PACKET_SECONDS = 60.0
"""Timeout for the rest of a started packet: 64 MiB at 1 MiB per second."""
HIGH_WATER_BYTES = 1 << 20
LOW_WATER_BYTES = 256 << 10
"""`drained` blocks above the first number of unsent bytes, until they are below the second."""
MAX_UNSENT_BYTES = 160 << 20
"""A session may have 64 MiB in flight, plus one packet: above that, the peer has stopped reading,
and the connection is aborted."""

ROLES = ("broker", "reader", "site")
CONNECTING, LISTENING = "connecting", "listening"
"""The two sides of a connection."""


class FinalError(Exception):
    """The other side has refused the connection for good: retrying would not help."""

    def __init__(self, error: PenstockError) -> None:
        super().__init__(str(error))
        self.error = error


class Connection:
    """`send` never blocks. Use from one event loop."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._writer.transport.set_write_buffer_limits(HIGH_WATER_BYTES, LOW_WATER_BYTES)
        self.peer = _peer_of(writer)
        self.is_closed = False

    @property
    def is_full(self) -> bool:
        """Whether the peer reads more slowly than data is sent."""
        return self._writer.transport.get_write_buffer_size() > HIGH_WATER_BYTES

    def send(self, packet: Packet) -> None:
        """Does nothing on a closed connection."""
        if self.is_closed or self._writer.is_closing():
            return
        self._writer.write(encode_packet(packet))
        if self._writer.transport.get_write_buffer_size() > MAX_UNSENT_BYTES:
            self.abort()

    async def drained(self) -> None:
        """Wait until the peer has read most of the sent data, or is gone."""
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()

    async def receive(self, limit: int = MAX_PACKET_BYTES) -> Packet:
        """The next packet. ConnectionError if the connection has ended (ConnectionAbortedError if
        the peer closed it in good order), NetworkError if the packet is invalid."""
        try:
            async with asyncio.timeout(SILENCE_SECONDS):
                head = await self._reader.readexactly(LENGTH_BYTES)
            length = int.from_bytes(head)
            if length > limit:
                raise NetworkError(
                    f"a packet of {length:,} bytes from {self.peer}",
                    detail=f"limit: {limit:,} bytes",
                )
            async with asyncio.timeout(PACKET_SECONDS):
                body = await self._reader.readexactly(length)
        except (asyncio.IncompleteReadError, TimeoutError) as error:
            raise _ended(error) from None
        packet = decode_packet(body)
        if isinstance(packet, Refused):
            refused = refused_error(packet)
            raise FinalError(refused) if packet.is_final else refused
        return packet

    async def ping(self) -> None:
        """Send pings regularly until the connection is closed."""
        while not self.is_closed:
            self.send(Ping())
            await asyncio.sleep(PING_SECONDS)

    def refuse(self, error: PenstockError, *, is_final: bool = True) -> None:
        """Send the error to the peer, and close."""
        self.send(refusal(error, is_final=is_final))
        self.close()

    def close(self) -> None:
        """Data already sent is still flushed."""
        self.is_closed = True
        with contextlib.suppress(ConnectionError, RuntimeError):
            self._writer.close()

    def abort(self) -> None:
        """Drop unsent data."""
        self.is_closed = True
        self._writer.transport.abort()

    async def begin(self) -> None:
        """Exchange the protocol prefaces, before anything else."""
        self._writer.write(PREFACE)
        try:
            preface = await self._reader.readexactly(len(PREFACE))
        except asyncio.IncompleteReadError as error:
            raise _ended(error) from None
        if preface != PREFACE:
            raise NetworkError(
                f"{self.peer} is not a broker or a reader of Penstock",
                detail=f"it began with {preface!r}",
            )


async def connect(address: Address) -> Connection:
    """NetworkError if nothing listens there."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            return Connection(*await asyncio.open_connection(address.host, address.port))
    except (OSError, TimeoutError) as error:
        raise NetworkError(
            f"no broker can be reached at {address}",
            detail=str(error) or "it does not answer",
            hint="is it running? penstock broker --help says how to start one",
        ) from None


async def greet_listener(connection: Connection, role: str, name: str, token: bytes) -> Greeting:
    """The connecting side: returns the peer's greeting. FinalError if it refuses the connection."""
    async with _greeting_time(connection):
        await connection.begin()
        nonce = draw_nonce()
        connection.send(Greeting(VERSION, role, name, nonce))
        theirs = await _greeting(connection)
        connection.send(Proof(proof(token, CONNECTING, nonce, theirs.nonce)))
        given = await _proof(connection)
        if proven_token([token], given, LISTENING, theirs.nonce, nonce) is None:
            raise FinalError(_wrong_token(connection, "the broker does not know the token"))
        return theirs


async def greet_connecting(connection: Connection, name: str, tokens: Sequence[bytes]) -> Greeting:
    """The listening side: returns the peer's greeting. NetworkError if it is refused; the peer has
    been sent the reason."""
    async with _greeting_time(connection):
        await connection.begin()
        nonce = draw_nonce()
        try:
            connection.send(Greeting(VERSION, "broker", name, nonce))
            theirs = await _greeting(connection)
            given = await _proof(connection)
            token = proven_token(tokens, given, CONNECTING, theirs.nonce, nonce)
            if token is None:
                raise _wrong_token(connection, "it does not know a token of this broker")
        except NetworkError as error:
            connection.refuse(error)
            raise
        connection.send(Proof(proof(token, LISTENING, nonce, theirs.nonce)))
        return theirs


async def _greeting(connection: Connection) -> Greeting:
    packet = await connection.receive(MAX_GREETING_BYTES)
    if not isinstance(packet, Greeting):
        raise NetworkError(f"{connection.peer} did not begin with a greeting")
    if packet.version != VERSION:
        raise NetworkError(
            f"{connection.peer} speaks version {packet.version} of the brokers' protocol",
            detail=f"its peer speaks version {VERSION}",
            hint="upgrade Penstock on the older side",
        )
    if len(packet.nonce) != NONCE_BYTES or packet.role not in ROLES:
        raise NetworkError(f"{connection.peer} sent a greeting that cannot be one")
    return packet


async def _proof(connection: Connection) -> bytes:
    packet = await connection.receive(MAX_GREETING_BYTES)
    if not isinstance(packet, Proof):
        raise NetworkError(f"{connection.peer} did not prove to know a token")
    return packet.proof


@contextlib.asynccontextmanager
async def _greeting_time(connection: Connection) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(GREETING_SECONDS):
            yield
    except TimeoutError:
        raise NetworkError(
            f"{connection.peer} has not greeted within {GREETING_SECONDS:.0f} seconds"
        ) from None


def _wrong_token(connection: Connection, detail: str) -> NetworkError:
    return NetworkError(
        f"{connection.peer} and this side have different tokens",
        detail=detail,
        hint="give both sides a file with the same token: --token-file, --upstream-token-file",
    )


def _ended(error: asyncio.IncompleteReadError | TimeoutError) -> ConnectionError:
    if isinstance(error, TimeoutError):
        return ConnectionResetError("nothing came for too long")
    if error.partial:
        return ConnectionResetError("it was cut in the middle of a packet")
    return ConnectionAbortedError("it was closed")


def _peer_of(writer: asyncio.StreamWriter) -> str:
    name = writer.get_extra_info("peername")
    return str(Address(*name[:2])) if isinstance(name, tuple) else "a peer"
