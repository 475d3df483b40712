"""A node with its links and readers: executes the outcomes of the node.

Links and readers are added and removed here; their packets are handled by
`penstock.service.broker`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from penstock.errors import NetworkError, PenstockError
from penstock.network import BrokerNode, Outcome
from penstock.service.broker_statistics import BrokerStatistics, statistics_of
from penstock.service.connections import Connection
from penstock.service.home_root import SOURCE
from penstock.service.links import Link, Links
from penstock.service.packets import Attach
from penstock.service.readers import Reader, Readers


class Exchange:
    """`report` gets lines for people. Use from one event loop."""

    def __init__(self, node: BrokerNode, report: Callable[[str], None]) -> None:
        self.node = node
        self.links = Links()
        self.readers = Readers()
        self.upstream: Link | None = None
        self._report = report
        self._resuming: set[asyncio.Future[None]] = set()
        """Running tasks: the event loop alone does not keep them from being collected."""

    def carry_out(self, outcome: Outcome) -> None:
        for number, frame in outcome.frames:
            self.links.send_frame(number, frame)
        for name, sequence, message in outcome.delivered:
            held = self.readers.deliver(name, sequence, message)
            if held is not None:
                self._hold(held)
        while self.node.faults:
            self._report(error_line(self.node.faults.popleft()))

    def tick(self) -> None:
        self.carry_out(self.node.tick(now()))
        for link in self.links.stale(now()):
            self._forget(link)

    def statistics(self) -> BrokerStatistics:
        return statistics_of(self.node, self.links, self.upstream)

    def abort(self) -> None:
        for link in self.links:
            if link.connection is not None:
                link.connection.abort()
        for reader in self.readers:
            reader.connection.abort()

    # Links.

    def join_upstream(self, connection: Connection, name: str) -> tuple[Link, Outcome]:
        """The upstream broker, which may be another one than before."""
        before = self.upstream
        if before is not None and before.name == name:
            return before, self._reconnect(before, connection)
        if before is not None:
            self._forget(before)
        self.upstream = self.links.add(name, connection, is_upstream=True)
        return self.upstream, self.node.add_link(self.upstream.number, now())

    def join_downstream(self, connection: Connection, name: str) -> tuple[Link, Outcome]:
        link = self.links.named(name)
        for stale in self.links.stale(now(), name.partition("@")[2]):
            if stale is not link:
                self._forget(stale)
        if link is not None:
            return link, self._reconnect(link, connection)
        link = self.links.add(name, connection, is_upstream=False)
        return link, self.node.add_link(link.number, now())

    def _reconnect(self, link: Link, connection: Connection) -> Outcome:
        self.links.connect(link, connection)
        return self.node.reconnect(link.number, now())

    def _forget(self, link: Link) -> None:
        self.links.remove(link)
        self.carry_out(self.node.remove_link(link.number, now()))

    # Readers.

    def attach(self, reader: Reader, packet: Attach) -> None:
        try:
            outcome = self.node.attach(reader.name, SOURCE, packet.points, packet.after, now())
        except NetworkError as error:
            # After a restart its spaces may not have arrived yet; then it retries.
            reader.connection.refuse(error, is_final=False)
            return
        reader.points, reader.cursor, reader.is_held = packet.points, packet.after, False
        self.carry_out(outcome)

    def detach(self, reader: Reader) -> None:
        self.readers.remove(reader)
        self.carry_out(self.node.detach(reader.name, now()))

    def _hold(self, reader: Reader) -> None:
        """Stop sending to a slow reader: what it misses is sent when it has read what it has."""
        self.node.hold(reader.name)
        resuming = asyncio.ensure_future(self._resume(reader))
        resuming.add_done_callback(self._resuming.discard)
        self._resuming.add(resuming)

    async def _resume(self, reader: Reader) -> None:
        await reader.connection.drained()
        if reader.is_held and not reader.connection.is_closed:
            self.attach(reader, Attach(reader.points, reader.cursor))


def now() -> float:
    return asyncio.get_running_loop().time()


def error_line(error: BaseException) -> str:
    if not isinstance(error, PenstockError):
        return f"the connection ended: {error}"
    return f"{error.primary} ({error.detail})" if error.detail else error.primary
