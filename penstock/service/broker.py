"""A broker process: a node, its links and readers, and the clock.

    connections ──► packets ──► node.receive(...) ──► what to send ──► connections

All of it runs in one event loop; no operation of the node takes more than milliseconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Sequence
from random import random

from penstock.delivery import MARKS
from penstock.errors import NetworkError, PenstockError
from penstock.network import BrokerNode, Timing
from penstock.network import frames as node_frames
from penstock.network.frames import decode_frame
from penstock.routing.interests import SpaceShape
from penstock.service.addresses import Address
from penstock.service.broker_settings import BrokerSettings
from penstock.service.broker_statistics import BrokerStatistics
from penstock.service.connections import (
    Connection,
    FinalError,
    connect,
    greet_connecting,
    greet_listener,
)
from penstock.service.exchange import Exchange, error_line, now
from penstock.service.home_root import LOOK_SECONDS, HomeRoot, PayloadColumns
from penstock.service.links import Link
from penstock.service.packets import (
    Ask,
    Attach,
    Described,
    NodeFrame,
    NotDescribed,
    Packet,
    Ping,
    Route,
    Spaces,
    shapes_in,
    spaces_packet,
)
from penstock.service.questions import Questions
from penstock.service.reports import Reports

TIMING = Timing(resend_after=5.0, fail_after=30.0)
"""A live connection loses nothing, so resending matters only for a node that hangs."""
TICK_SECONDS = 1.0
RETRY_SECONDS = (0.1, 5.0)
"""Delay between attempts to connect: initial and maximum."""
MAX_HOPS = 32
"""Maximum from a broker to the home."""
FROM_ABOVE = (
    node_frames.Advertise,
    node_frames.Unadvertise,
    node_frames.Publish,
    node_frames.Replayed,
    node_frames.Fetched,
)
"""Only the upstream broker may send these: it is the one with a route to the home."""


class Broker:
    """`report` gets lines for people. Use from one event loop."""

    def __init__(self, settings: BrokerSettings, report: Callable[[str], None]) -> None:
        settings.check()
        self._settings = settings
        self._report = Reports(report)
        self._shapes: dict[int, SpaceShape] = {MARKS.space: MARKS}
        payload_columns = PayloadColumns()
        self._node = BrokerNode(
            self._shapes,
            [],
            start=secrets.randbits(40),
            timing=TIMING,
            settings=settings.routing(),
            payloads=settings.payloads(payload_columns),
        )
        self._exchange = Exchange(self._node, self._report)
        self._questions = Questions()
        self._route: tuple[str, ...] = ()
        self._root: HomeRoot | None = None
        if settings.home is not None:
            self._root = HomeRoot(settings.home, self._node, payload_columns)
        self._server: asyncio.Server | None = None
        self._failure: asyncio.Future[None] | None = None
        self.name = ""

    @property
    def address(self) -> Address:
        """The listening address, with the actual port for port 0."""
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return Address(host, port)

    def statistics(self) -> BrokerStatistics:
        return self._exchange.statistics()

    async def run(self, on_ready: Callable[[Address], None]) -> None:
        """Runs until it is cancelled, or fails with NetworkError."""
        self._failure = asyncio.get_running_loop().create_future()
        listen = self._settings.listen
        try:
            self._server = await asyncio.start_server(self._serve, listen.host, listen.port)
        except OSError as error:
            raise NetworkError(f"cannot listen on {listen}", detail=str(error)) from None
        self.name = f"{secrets.token_hex(8)}@{self.address}"
        if self._root is not None:
            self._look()
        on_ready(self.address)
        above = self._follow_upstream() if self._root is None else self._follow_home()
        tasks = [asyncio.ensure_future(above), asyncio.ensure_future(self._tick())]
        try:
            done, _ = await asyncio.wait(
                [*tasks, self._failure], return_when=asyncio.FIRST_COMPLETED
            )
            for one in done:
                one.result()
        finally:
            await self._end(tasks)

    async def _end(self, tasks: Sequence[asyncio.Future[None]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert self._server is not None
        self._server.close()
        self._exchange.abort()
        if self._root is not None:
            self._root.close()

    # Periodic work.

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self._exchange.tick()

    async def _follow_home(self) -> None:
        assert self._root is not None
        while True:
            self._look()
            while (outcome := self._root.publish_some(now())) is not None:
                self._exchange.carry_out(outcome)
                await asyncio.sleep(0)
            await asyncio.sleep(LOOK_SECONDS)

    def _look(self) -> None:
        assert self._root is not None
        fresh, outcomes = self._root.look(now())
        self._announce(fresh)
        for outcome in outcomes:
            self._exchange.carry_out(outcome)

    def _announce(self, fresh: list[SpaceShape]) -> None:
        """Spaces are announced downstream before anything that mentions them."""
        if fresh:
            self._shapes |= {one.space: one for one in fresh}
            self._exchange.links.send_down([spaces_packet(fresh)])

    async def _follow_upstream(self) -> None:
        """Connect to the upstream broker, and reconnect."""
        wait, address = RETRY_SECONDS[0], self._settings.upstream
        assert address is not None
        while True:
            try:
                connection = await connect(address)
                with contextlib.closing(connection):
                    token = self._settings.upstream_token
                    peer = await greet_listener(connection, "broker", self.name, token)
                    wait = RETRY_SECONDS[0]
                    await self._serve_upstream(connection, peer.name)
            except FinalError as refused:
                if not self._route:  # it was never accepted
                    raise refused.error from None
                self._report(error_line(refused.error))
            except (ConnectionError, PenstockError) as error:
                self._report(error_line(error))
            await asyncio.sleep(wait * (0.5 + random()))
            wait = min(2 * wait, RETRY_SECONDS[1])

    async def _serve_upstream(self, connection: Connection, name: str) -> None:
        link, outcome = self._exchange.join_upstream(connection, name)
        self._report(f"connected to {connection.peer}")
        self._exchange.carry_out(outcome)
        try:
            await self._receive_all(connection, link)
        finally:
            self._exchange.links.disconnect(link, connection, now())
            self._questions.fail()

    # What comes in.

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One downstream connection, from its first byte to its last."""
        connection = Connection(reader, writer)
        try:
            peer = await greet_connecting(connection, self.name, self._settings.tokens)
            if peer.role == "reader":
                await self._serve_reader(connection)
            else:
                await self._serve_link(connection, peer.name)
        except ConnectionAbortedError:
            pass  # closed by the peer in good order
        except FinalError as refused:
            self._report(error_line(refused.error))
        except (ConnectionError, PenstockError) as error:
            self._report(f"{connection.peer}: {error_line(error)}")
            if isinstance(error, PenstockError):
                connection.refuse(error, is_final=isinstance(error, NetworkError))
        finally:
            connection.close()

    async def _serve_link(self, connection: Connection, name: str) -> None:
        if name == self.name or name in self._route:
            raise _cycle(name)
        link, outcome = self._exchange.join_downstream(connection, name)
        connection.send(spaces_packet(self._shapes.values()))
        connection.send(Route((self.name, *self._route)))
        self._exchange.carry_out(outcome)
        try:
            await self._receive_all(connection, link)
        finally:
            self._exchange.links.disconnect(link, connection, now())

    async def _receive_all(self, connection: Connection, link: Link) -> None:
        pinging = asyncio.ensure_future(connection.ping())
        try:
            while True:
                packet = await connection.receive()
                if link.connection is not connection:
                    return  # the neighbour has reconnected
                self._take(connection, link, packet)
        finally:
            pinging.cancel()

    def _take(self, connection: Connection, link: Link, packet: Packet) -> None:
        """Handle a packet of a neighbour. NetworkError if it is invalid: the connection ends."""
        if isinstance(packet, NodeFrame):
            frame = decode_frame(packet.data)
            if not link.is_upstream and isinstance(frame.body, FROM_ABOVE):
                raise NetworkError(
                    f"{type(frame.body).__name__} from a broker further down",
                    hint="messages come from the home; let that broker be further up",
                )
            self._exchange.carry_out(self._node.receive(link.number, frame, now()))
        elif isinstance(packet, Ask) and not link.is_upstream:
            self._ask(connection, packet)
        elif isinstance(packet, Spaces) and link.is_upstream:
            fresh = [one for one in shapes_in(packet) if one.space not in self._shapes]
            self._announce(fresh)
            self._exchange.carry_out(self._node.learn_spaces(fresh, now()))
        elif isinstance(packet, Route) and link.is_upstream:
            self._take_route(packet)
        elif isinstance(packet, Described | NotDescribed) and link.is_upstream:
            self._questions.answer(packet)
        elif not isinstance(packet, Ping):
            raise NetworkError(f"{type(packet).__name__} from a broker that may not say it")

    def _take_route(self, route: Route) -> None:
        """A cycle or too many hops end this broker: it was started in the wrong place."""
        if self.name in route.names:
            self._fail(_cycle(route.names[0]))
        elif len(route.names) > MAX_HOPS:
            self._fail(NetworkError(f"more than {MAX_HOPS} brokers on the way to the home"))
        elif route.names != self._route:
            self._route = route.names
            self._exchange.links.send_down([Route((self.name, *self._route))])

    def _fail(self, error: NetworkError) -> None:
        assert self._failure is not None
        if not self._failure.done():  # it may be set again before the broker has ended
            self._failure.set_exception(error)

    def _ask(self, asker: Connection, ask: Ask) -> None:
        if self._root is None:
            upstream = (
                None if self._exchange.upstream is None else self._exchange.upstream.connection
            )
            self._questions.pass_up(upstream, asker, ask)
            return
        self._look()  # its spaces must be known downstream before its description
        asker.send(self._root.describe(ask))

    # Readers.

    async def _serve_reader(self, connection: Connection) -> None:
        reader = self._exchange.readers.add(connection)
        pinging = asyncio.ensure_future(connection.ping())
        try:
            while True:
                packet = await connection.receive()
                if isinstance(packet, Ask):
                    self._ask(connection, packet)
                elif isinstance(packet, Attach):
                    self._exchange.attach(reader, packet)
                elif not isinstance(packet, Ping):
                    raise NetworkError(f"{type(packet).__name__} from a reader")
        finally:
            pinging.cancel()
            self._exchange.detach(reader)


def _cycle(name: str) -> NetworkError:
    return NetworkError(
        f"the overlay has a cycle through {name.partition('@')[2]}",
        detail="the broker further up gets its messages from this one",
        hint="brokers pass messages along a tree: start this one with another --upstream",
    )
