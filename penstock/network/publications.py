"""The data plane of a node: forwards publications to interested links and to clients.

Publications leave in the order in which they arrived. One whose payload must be fetched first
blocks those behind it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from penstock.messages import Message, encode_message
from penstock.network.clients import Client, LocalClients
from penstock.network.frames import Cached, Fetch, Fetched, Parcel, Publish, body_bytes
from penstock.network.payloads import PayloadCache, unwrapped
from penstock.network.ports import Ports
from penstock.network.routing_tables import LOCAL, OfferChange, RoutingTables
from penstock.predicates.masks import bits

MAX_HELD_BYTES = 64 << 20
"""Maximum bytes held behind a publication whose payload is missing: as much as a link's queue."""


class DataPlane:
    """`announce` sends changes of offers to links; `find_at_source` finds a payload of a source
    that this node speaks for; `ask_again` requests all that follows a sequence number again, with
    payloads."""

    def __init__(
        self,
        ports: Ports,
        tables: RoutingTables,
        clients: LocalClients,
        payloads: PayloadCache | None,
        announce: Callable[[list[OfferChange]], object],
        find_at_source: Callable[[str, bytes], bytes | None],
        ask_again: Callable[[int, str, int], None],
        refetch_after: float,
    ) -> None:
        self._ports = ports
        self._tables = tables
        self._clients = clients
        self._payloads = payloads
        self._announce = announce
        self._find_at_source = find_at_source
        self._ask_again = ask_again
        self._refetch_after = refetch_after
        self._held: deque[tuple[int, Publish]] = deque()
        self._held_bytes = 0
        self._fetched_at = 0.0
        self.reached: dict[str, int] = {}
        """By source: the sequence number up to which all wanted publications were forwarded."""

    @property
    def is_holding(self) -> bool:
        return bool(self._held)

    def parcel(self, message: Message) -> Parcel:
        """The parcel of a message of a source that this node speaks for."""
        if self._payloads is not None:
            return self._payloads.wrap(message)
        return Parcel(message, encoded=encode_message(message))

    def message(self, parcel: Parcel) -> Message:
        return unwrapped(parcel) if self._payloads is None else self._payloads.unwrap(parcel)

    def take(self, link: int, body: Publish) -> None:
        """A publication arrived over a link."""
        if self._payloads is not None and self._payloads.take(body.parcel) and link != LOCAL:
            self._ports.send(link, Cached(body.parcel.payload_id))
        if not self._held:
            self._pass_on(link, body)
            return
        self._hold(link, body)
        assert self._payloads is not None
        most = self._payloads.settings.held_messages
        if len(self._held) > most or self._held_bytes > MAX_HELD_BYTES:
            self._let_go()

    def fail(self, link: int) -> None:
        """Drop what is held from a link: it will be sent again, not being counted as reached."""
        if self._payloads is not None:
            self._payloads.forget_link(link)
        if self._held:
            self._release([one for one in self._held if one[0] != link])

    def tick(self) -> None:
        if self._held and self._ports.now - self._fetched_at >= self._refetch_after:
            self._fetch(self._held[0][1])

    def cached(self, link: int, body: Cached) -> None:
        if self._payloads is not None:
            self._payloads.set_bit(body.payload_id, link)
            if not len(self._clients):
                down = [one for one in self._ports.links if not self._tables.sources(one)]
                self._payloads.drop_if_everyone_has(body.payload_id, sum(1 << i for i in down))

    def fetch(self, link: int, body: Fetch) -> None:
        """A node downstream needs a payload: answer from here, or forward the request upstream."""
        found = None if self._payloads is None else self._payloads.find(body.payload_id)
        up = self._tables.link_to(body.source)
        if found is None and up == LOCAL:
            found = self._find_at_source(body.source, body.payload_id)
        if found is not None or up == LOCAL:
            self._ports.send(link, Fetched(body.payload_id, found, body.path))
        elif up is not None:
            self._ports.send(up, body._replace(path=(*body.path, link)))

    def fetched(self, body: Fetched) -> None:
        if body.path:
            *rest, back = body.path
            self._ports.send(back, body._replace(path=tuple(rest)))
        elif self._held and self._held[0][1].parcel.payload_id == body.payload_id:
            if body.payload is None:
                self._let_go()
                return
            link, first = self._held.popleft()
            whole = first.parcel._replace(payload=body.payload)
            if self._payloads is not None:
                self._payloads.keep(body.payload_id, body.payload)
            self._release([(link, first._replace(parcel=whole)), *self._held])

    def _hold(self, link: int, body: Publish) -> None:
        self._held.append((link, body))
        self._held_bytes += body_bytes(body)

    def _let_go(self) -> None:
        """The first held publication cannot be completed: request it and all that follows again."""
        link, first = self._held[0]
        way = (link, first.source)
        self._release([one for one in self._held if (one[0], one[1].source) != way])
        self._ask_again(link, first.source, first.sequence - 1)

    def _release(self, publications: Sequence[tuple[int, Publish]]) -> None:
        """Forward held publications up to one whose payload is missing."""
        self._held, self._held_bytes = deque(), 0
        for link, body in publications:
            if self._held:
                self._hold(link, body)
            else:
                self._pass_on(link, body)

    def _pass_on(self, link: int, body: Publish) -> None:
        message, payloads = body.parcel.message, self._payloads
        (wanted,) = self._tables.links_of([message], link)
        links = wanted & ~(1 << LOCAL)
        clients = [one for one in self._clients.concerned(message) if _is_for(one, body)]
        if payloads is not None and payloads.must_fetch(body.parcel, links, bool(clients)):
            self._hold(link, body)
            self._fetch(body)
            return
        for other in bits(links):
            parcel = body.parcel if payloads is None else payloads.outgoing(body.parcel, other)
            self._ports.send(other, body._replace(parcel=parcel))
        self._deliver(body, clients)
        self.reached[body.source] = max(self.reached.get(body.source, 0), body.sequence)
        if link != LOCAL:
            self._announce(self._tables.came(link, message, bool(wanted or clients)))

    def _deliver(self, body: Publish, clients: Sequence[Client]) -> None:
        if clients:
            message = self.message(body.parcel)
            for client in clients:
                self._ports.out.delivered.append((client.name, body.sequence, message))
                client.cursor = body.sequence

    def _fetch(self, body: Publish) -> None:
        self._fetched_at = self._ports.now
        up = self._tables.link_to(body.source)
        if up is not None and up != LOCAL:
            self._ports.send(up, Fetch(body.parcel.payload_id, body.source, ()))


def _is_for(client: Client, body: Publish) -> bool:
    return client.source == body.source and not client.is_waiting and body.sequence > client.cursor
