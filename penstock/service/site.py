"""A site process: the views of a `SiteHost`, its connections, and the clock.

    hosting ──► host ──► reads to the source and to other sites ──► answers ──► host ──► …

All of it runs in one event loop. A site keeps nothing on disk: a restarted one is a new site, and
gets its views from the source.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from penstock.errors import NetworkError
from penstock.service.addresses import Address
from penstock.service.reports import Reports
from penstock.service.site_peers import Listener, Outgoing, OutgoingPeers, Peer, send_frame
from penstock.service.tokens import NO_TOKEN
from penstock.views.site_frames import Join, Reached, SiteFrame
from penstock.views.site_host import AT_SOURCE, Batch, Gap, Hosting, Read, SiteHost

TICK_SECONDS = 0.2
DEFAULT_FEEDS = 30


@dataclass(frozen=True, slots=True)
class SiteSettings:
    listen: Address
    source: Address
    tokens: tuple[bytes, ...] = (NO_TOKEN,)
    """Tokens accepted from connecting processes; the first one is used towards the source and other
    sites."""
    feeds: int = DEFAULT_FEEDS
    """How many others a view of this site may feed."""

    def check(self) -> None:
        check_tokens(self.listen, self.tokens)


def check_tokens(listen: Address, tokens: tuple[bytes, ...]) -> None:
    if NO_TOKEN in tokens and not listen.is_loopback:
        raise NetworkError(
            f"{listen} can be reached from other machines, so a token is needed",
            hint="give --token-file FILE, or listen on 127.0.0.1",
        )


class Site:
    """`report` gets lines for people. Use from one event loop."""

    def __init__(self, settings: SiteSettings, report: Callable[[str], None]) -> None:
        settings.check()
        self._settings = settings
        self._report = Reports(report)
        self._name = secrets.token_hex(8)
        self._host = SiteHost()
        self._listener = Listener(
            *(self._name, settings.tokens, self._on_frame, self._on_gone, self._report)
        )
        self._peers = OutgoingPeers(
            *(self._name, settings.tokens[0], self._on_answer, self._on_link, self._report)
        )
        self._source: Outgoing | None = None
        self._unreachable: set[str] = {AT_SOURCE}
        self._is_pumping = False
        self._said: tuple[int, int] | None = None

    async def run(self, on_ready: Callable[[Address], None]) -> None:
        """Runs until it is cancelled, or the source refuses it: NetworkError."""
        await self._listener.start(self._settings.listen)
        self._host.address = str(self._listener.address)
        on_ready(self._listener.address)
        self._source = Outgoing(
            *(self._settings.source, "site", self._name, self._settings.tokens[0]),
            *(self._on_answer, self._on_source, self._report),
        )
        ticking = asyncio.ensure_future(self._tick())
        try:
            await self._source.ended()
            assert self._source.failure is not None
            raise self._source.failure
        finally:
            ticking.cancel()
            self._source.close()
            self._peers.close_all_but(set())
            self._listener.end()

    async def _tick(self) -> None:
        """Report the progress of the views regularly."""
        while True:
            await asyncio.sleep(TICK_SECONDS)
            reached, epoch = self._host.reached, self._host.epoch
            if reached is None or epoch is None or self._said == (epoch, reached):
                continue
            if self._source is not None and self._source.send(Reached(epoch, reached)):
                self._said = (epoch, reached)

    # What comes in.

    def _on_frame(self, peer: Peer, frame: SiteFrame) -> None:
        """Frames of sites and readers that have connected to this one."""
        if not isinstance(frame, Read):
            raise NetworkError(f"{type(frame).__name__} from a {peer.role}")
        self._host.on_read(peer.number, frame)
        self._pump()

    def _on_gone(self, peer: Peer) -> None:
        self._host.drop_reader(peer.number)

    def _on_answer(self, frame: SiteFrame) -> None:
        """Frames of the source, and of sites that this one reads from."""
        if isinstance(frame, Batch | Gap):
            self._host.on_answer(frame)
        elif isinstance(frame, Hosting):
            self._host.on_hosting(frame)
            self._peers.close_all_but(set(frame.places.values()))
        else:
            raise NetworkError(f"{type(frame).__name__} from a site that may not say it")
        self._pump()

    def _on_source(self, is_there: bool) -> None:
        if is_there:
            assert self._source is not None
            self._said = None
            self._source.send(Join(self._host.address, self._settings.feeds))
        self._on_link(AT_SOURCE, is_there)

    def _on_link(self, address: str, is_there: bool) -> None:
        if is_there:
            self._unreachable.discard(address)
        else:
            self._unreachable.add(address)
            self._host.on_lost(address)
        self._pump()

    # What goes out.

    def _pump(self) -> None:
        """Runs once for everything that arrived meanwhile."""
        if not self._is_pumping:
            self._is_pumping = True
            asyncio.get_running_loop().call_soon(self._send_all)

    def _send_all(self) -> None:
        self._is_pumping = False
        if self._host.epoch is not None:
            for address, read in self._host.take_reads(self._unreachable):
                self._ask(address, read)
        for number, answer in self._host.take_answers():
            peer = self._listener.peer(number)
            if peer is not None:
                send_frame(peer.connection, answer)

    def _ask(self, address: str, read: Read) -> None:
        if address == AT_SOURCE:
            assert self._source is not None
            self._source.send(read)
        elif not self._peers.connect_to(address).send(read):
            # Requested again when the connection is there.
            self._unreachable.add(address)
            self._host.on_lost(address)


async def run_site(
    settings: SiteSettings, on_ready: Callable[[Address], None], report: Callable[[str], None]
) -> None:
    """Run a site until it is cancelled."""
    await Site(settings, report).run(on_ready)
