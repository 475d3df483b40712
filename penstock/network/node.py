"""A broker: sessions with its neighbours, tables, clients, and nothing that does input or output.

    frame comes in ──► ports ──► control plane (advertisements, interests, acknowledgements)
                                 data plane (publications, payloads)  ──► frames go out
                                 replays (what was missed)            ──► messages for clients

Whoever runs a node hands it frames, clients and the time, and sends what it returns; the simulator
and processes run the same node.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from penstock.errors import NetworkError
from penstock.messages import Point
from penstock.network import frames
from penstock.network.clients import Client, LocalClients
from penstock.network.control import ControlPlane
from penstock.network.frames import VERSION, Body, Frame
from penstock.network.link_tables import Entry
from penstock.network.payloads import PayloadCache, PayloadSettings
from penstock.network.ports import Outcome, Ports
from penstock.network.publications import DataPlane
from penstock.network.replays import Replays, SourceLog
from penstock.network.routing_tables import LOCAL, RoutingSettings, RoutingTables
from penstock.network.sessions import Timing
from penstock.routing.interests import Interest, Shapes, check_interest

MAX_FAULTS = 100


class BrokerNode:
    """Links are numbers from 1 on. `start` must be larger after every restart. Not thread-safe."""

    def __init__(
        self,
        shapes: Shapes,
        links: Sequence[int],
        *,
        start: int = 1,
        timing: Timing | None = None,
        settings: RoutingSettings | None = None,
        payloads: PayloadSettings | None = None,
    ) -> None:
        if LOCAL in links or len(set(links)) != len(links):
            raise NetworkError("the links of a node have distinct numbers from 1 on")
        timing = timing or Timing()
        self.tables = RoutingTables(shapes, settings)
        for link in links:
            self.tables.add_link(link)
        self.clients = LocalClients(shapes)
        self.faults: deque[NetworkError] = deque(maxlen=MAX_FAULTS)
        """What was refused of late."""
        self._sources: dict[str, SourceLog] = {}
        self._payload_places: dict[bytes, int] = {}
        self._ports = Ports(links, timing, start)
        self._control = ControlPlane(self._ports, self.tables)
        self.payloads = None if payloads is None else PayloadCache(payloads)
        self._data = DataPlane(
            self._ports,
            self.tables,
            self.clients,
            self.payloads,
            self._control.announce,
            self._find_at_source,
            timing.resend_after,
        )
        self._replays = Replays(
            self._ports, self.tables, self.clients, self._control, self._data, self._sources, start
        )
        self._takers = self._taking()

    def start(self, now: float) -> Outcome:
        self._ports.now = now
        for link in self._ports.links:
            self._ports.open(link)
        return self._ports.outcome()

    def receive(self, link: int, frame: Frame, now: float) -> Outcome:
        """What cannot be understood is left out, and said in `faults`."""
        self._ports.now = now
        if link not in self._ports:
            self.faults.append(NetworkError(f"a frame over link {link}, which is not known"))
            return self._ports.outcome()
        bodies, must_reopen = self._ports.receive(link, frame)
        if must_reopen:
            self._fail(link)
            bodies, _ = self._ports.receive(link, frame)
        for body in bodies:
            try:
                self._takers[type(body)](link, body)
            except NetworkError as error:
                self.faults.append(error)
        if frame.number >= 0:
            self._ports.acknowledge(link)
        return self._ports.outcome()

    def tick(self, now: float) -> Outcome:
        """To be called a few times within `resend_after`."""
        self._ports.now = now
        for link in self._ports.tick():
            self._fail(link)
        self._data.tick()
        self._control.announce(self.tables.merge_if_due())
        return self._ports.outcome()

    def speak_for(
        self, source: str, log: SourceLog, advertised: Sequence[Interest], now: float
    ) -> Outcome:
        """This node publishes for a source from now on."""
        self._ports.now = now
        self._sources[source] = log
        self._control.ask_locally([Entry(source, interest) for interest in advertised], [])
        self._replays.resume_source(source)
        self._replays.follow_adverts()
        return self._ports.outcome()

    def unadvertise(self, source: str, advertised: Sequence[Interest], now: float) -> Outcome:
        self._ports.now = now
        self._control.ask_locally([], [Entry(source, interest) for interest in advertised])
        self._replays.follow_adverts()
        return self._ports.outcome()

    def publish(self, source: str, after: int, now: float) -> Outcome:
        """The log of a source has grown: pass on what came after a sequence number."""
        self._ports.now = now
        for sequence, message in self._sources[source].read(after):
            parcel = self._data.parcel(message)
            if parcel.payload_id:
                self._payload_places[parcel.payload_id] = sequence
            self._data.take(LOCAL, frames.Publish(source, sequence, parcel))
        return self._ports.outcome()

    def attach(
        self, name: str, source: str, points: Sequence[Point], after: int, now: float
    ) -> Outcome:
        """A client that has everything up to a sequence number, and wants what follows."""
        self._ports.now = now
        client = Client(name, source, tuple(points), after)
        for interest in client.interests():
            check_interest(interest, self.tables.shapes)
        gone = self.clients.remove(name)
        fresh = self.clients.add(client)
        self._replays.forget_client(name)
        self._control.ask_locally(
            [Entry("", one) for one in fresh if one not in gone],
            [Entry("", one) for one in gone if one not in fresh],
        )
        self._replays.follow_client(client)
        return self._ports.outcome()

    def detach(self, name: str, now: float) -> Outcome:
        self._ports.now = now
        self._replays.forget_client(name)
        self._control.ask_locally([], [Entry("", one) for one in self.clients.remove(name)])
        return self._ports.outcome()

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is under way that this node knows of."""
        return (
            self._ports.is_idle
            and self._control.is_synced_everywhere
            and not self._replays.is_busy
            and not self._data.is_holding
        )

    def _fail(self, link: int) -> None:
        self._data.fail(link)
        self._replays.fail(link)
        self._ports.open(link)
        self._control.fail(link)

    def _taking(self) -> dict[type[Any], Callable[[int, Any], None]]:
        """Who takes which body."""
        control, data, replays = self._control, self._data, self._replays
        return {
            frames.Hello: self._take_hello,
            frames.Check: control.check,
            frames.Summary: control.summary,
            frames.Names: self._take_names,
            frames.Want: control.want,
            frames.InSync: self._take_in_sync,
            frames.Subscribe: lambda link, b: control.subscribe(link, b.op, Entry("", b.interest)),
            frames.Unsubscribe: lambda link, b: control.unsubscribe(link, b.op, b.name),
            frames.Advertise: self._take_advertise,
            frames.Unadvertise: self._take_unadvertise,
            frames.Ack: lambda link, b: control.acknowledged(link, b.op),
            frames.Publish: self._take_publication,
            frames.Resume: replays.take_resume,
            frames.Replayed: replays.take_replayed,
            frames.Fetch: data.fetch,
            frames.Fetched: lambda _, b: data.fetched(b),
            frames.Cached: data.cached,
        }

    def _take_hello(self, link: int, body: frames.Hello) -> None:
        if body.version != VERSION:
            raise NetworkError(
                f"the peer of link {link} speaks version {body.version}",
                detail=f"this release speaks version {VERSION}",
            )
        self._control.greet(link)

    def _take_in_sync(self, link: int, _: Body) -> None:
        self._control.in_sync(link)
        self._replays.resume_link(link)

    def _take_advertise(self, link: int, body: frames.Advertise) -> None:
        is_new = body.source not in self.tables.sources(link)
        self._control.subscribe(link, body.op, Entry(body.source, body.interest))
        if is_new:
            self._replays.source_came(link, body.source)
        self._replays.follow_adverts()

    def _take_unadvertise(self, link: int, body: frames.Unadvertise) -> None:
        self._control.unsubscribe(link, body.op, body.name)
        self._replays.follow_adverts()

    def _take_names(self, link: int, body: frames.Names) -> None:
        self._control.names(link, body)
        self._replays.follow_adverts()

    def _take_publication(self, link: int, body: frames.Publish) -> None:
        if self._replays.is_live(link, body.source):
            self._data.take(link, body)

    def _find_at_source(self, source: str, payload_id: bytes) -> bytes | None:
        """A payload of a message that was published, perhaps before a restart, from the log."""
        log = self._sources.get(source)
        if log is None:
            return None
        if payload_id not in self._payload_places:
            for sequence, message in log.read(0):
                self._payload_places[self._data.parcel(message).payload_id] = sequence
        place = self._payload_places.get(payload_id)
        return None if place is None else self._data.parcel(log.read(place - 1)[0][1]).payload
