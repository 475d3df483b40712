"""Connections between sites, incoming and outgoing.

Frames of sites are sent as the packets of nodes (`penstock.service.packets.NodeFrame`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from random import random

from penstock.errors import NetworkError, PenstockError
from penstock.service.addresses import Address, parse_address
from penstock.service.connections import (
    Connection,
    FinalError,
    connect,
    greet_connecting,
    greet_listener,
)
from penstock.service.packets import NodeFrame, Ping
from penstock.views.site_frames import SiteFrame, decode_site_frame, encode_site_frame

MAX_PEERS = 10_000
"""Sites and readers that are connected to one site."""
RETRY_SECONDS = (0.1, 5.0)
"""Delay between attempts to connect: initial and maximum."""


def send_frame(connection: Connection, frame: SiteFrame) -> None:
    connection.send(NodeFrame(encode_site_frame(frame)))


async def receive_frame(connection: Connection) -> SiteFrame:
    """The next frame. ConnectionError if the connection has ended, NetworkError if the frame is
    invalid."""
    while True:
        packet = await connection.receive()
        if isinstance(packet, NodeFrame):
            return decode_site_frame(packet.data)
        if not isinstance(packet, Ping):
            raise NetworkError(f"{type(packet).__name__} from a site")


@dataclass(eq=False, slots=True)
class Peer:
    """A process that has connected to this one."""

    number: str
    role: str
    name: str
    connection: Connection


class Listener:
    """Accepts peers and dispatches their frames. Use from one event loop."""

    def __init__(
        self,
        name: str,
        tokens: tuple[bytes, ...],
        on_frame: Callable[[Peer, SiteFrame], None],
        on_gone: Callable[[Peer], None],
        report: Callable[[str], None],
    ) -> None:
        self._name = name
        self._tokens = tokens
        self._on_frame, self._on_gone, self._report = on_frame, on_gone, report
        self._peers: dict[str, Peer] = {}
        self._next = 1
        self._server: asyncio.Server | None = None

    @property
    def address(self) -> Address:
        """The listening address, with the actual port for port 0."""
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return Address(host, port)

    async def start(self, listen: Address) -> None:
        try:
            self._server = await asyncio.start_server(self._serve, listen.host, listen.port)
        except OSError as error:
            raise NetworkError(f"cannot listen on {listen}", detail=str(error)) from None

    def peer(self, number: str) -> Peer | None:
        return self._peers.get(number)

    def end(self) -> None:
        if self._server is not None:
            self._server.close()
        for peer in self._peers.values():
            peer.connection.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(reader, writer)
        peer = None
        try:
            greeting = await greet_connecting(connection, self._name, self._tokens)
            if len(self._peers) >= MAX_PEERS:
                raise NetworkError(f"{MAX_PEERS:,} others are connected already")
            peer = Peer(str(self._next), greeting.role, greeting.name, connection)
            self._next += 1
            self._peers[peer.number] = peer
            await self._serve_peer(peer)
        except (ConnectionAbortedError, FinalError, asyncio.CancelledError):
            pass  # closed in good order, refused with a reason, or the process ends
        except (ConnectionError, PenstockError) as error:
            self._report(f"{connection.peer}: {describe_trouble(error)}")
            if isinstance(error, PenstockError):
                connection.refuse(error)
        finally:
            connection.close()
            if peer is not None:
                del self._peers[peer.number]
                self._on_gone(peer)

    async def _serve_peer(self, peer: Peer) -> None:
        pinging = asyncio.ensure_future(peer.connection.ping())
        try:
            while True:
                self._on_frame(peer, await receive_frame(peer.connection))
        finally:
            pinging.cancel()


class Outgoing:
    """A connection to one address that is re-established whenever it ends, until it is closed."""

    def __init__(
        self,
        address: Address,
        role: str,
        name: str,
        token: bytes,
        on_frame: Callable[[SiteFrame], None],
        on_change: Callable[[bool], None],
        report: Callable[[str], None],
    ) -> None:
        """`on_change` is called when the connection is established, and when it is lost."""
        self.address = address
        self.connection: Connection | None = None
        self.failure: PenstockError | None = None
        """The error if it was refused for good."""
        self._role, self._name, self._token = role, name, token
        self._on_frame, self._on_change, self._report = on_frame, on_change, report
        self._task = asyncio.ensure_future(self._follow())

    def send(self, frame: SiteFrame) -> bool:
        """Returns whether there is a connection to send it over."""
        if self.connection is None:
            return False
        send_frame(self.connection, frame)
        return True

    async def ended(self) -> None:
        """Wait until it ends by itself: it was refused for good."""
        await asyncio.wait([self._task])

    def close(self) -> None:
        self._task.cancel()
        if self.connection is not None:
            self.connection.close()

    async def _follow(self) -> None:
        wait, has_been_let_in = RETRY_SECONDS[0], False
        while True:
            try:
                connection = await connect(self.address)
                with contextlib.closing(connection):
                    await greet_listener(connection, self._role, self._name, self._token)
                    wait, has_been_let_in = RETRY_SECONDS[0], True
                    await self._receive_all(connection)
            except FinalError as refused:
                if not has_been_let_in:
                    self.failure = refused.error
                    return
                self._report(describe_trouble(refused.error))
            except (ConnectionError, PenstockError) as error:
                self._report(f"{self.address}: {describe_trouble(error)}")
            await asyncio.sleep(wait * (0.5 + random()))
            wait = min(2 * wait, RETRY_SECONDS[1])

    async def _receive_all(self, connection: Connection) -> None:
        self.connection = connection
        pinging = asyncio.ensure_future(connection.ping())
        self._on_change(True)
        try:
            while True:
                self._on_frame(await receive_frame(connection))
        finally:
            pinging.cancel()
            self.connection = None
            self._on_change(False)


class OutgoingPeers:
    """Connections to many addresses, each opened on first use."""

    def __init__(
        self,
        name: str,
        token: bytes,
        on_frame: Callable[[SiteFrame], None],
        on_change: Callable[[str, bool], None],
        report: Callable[[str], None],
        role: str = "site",
    ) -> None:
        self._name, self._token, self._role = name, token, role
        self._on_frame, self._on_change, self._report = on_frame, on_change, report
        self._peers: dict[str, Outgoing] = {}

    def connect_to(self, address: str) -> Outgoing:
        """The connection to an address, which may not be established yet."""
        found = self._peers.get(address)
        if found is None or found.failure is not None:
            found = self._peers[address] = Outgoing(
                *(parse_address(address), self._role, self._name, self._token, self._on_frame),
                *(lambda is_there: self._on_change(address, is_there), self._report),
            )
        return found

    def close_all_but(self, addresses: set[str]) -> None:
        for address in [one for one in self._peers if one not in addresses]:
            self._peers.pop(address).close()


def describe_trouble(error: BaseException) -> str:
    """One line for people."""
    if not isinstance(error, PenstockError):
        return f"the connection ended: {error}"
    return f"{error.primary} ({error.detail})" if error.detail else error.primary
