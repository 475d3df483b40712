"""A broker: sessions with its neighbours, tables, clients; without any input or output.

    frame comes in ──► ports ──► control plane (advertisements, interests, acknowledgements)
                                 data plane (publications, payloads)  ──► frames go out
                                 replays (what was missed)            ──► messages for clients

The runner passes frames, clients and the time to a node, and sends what it returns; the simulator
and broker processes run the same node.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from penstock.errors import NetworkError
from penstock.messages import Message, Point
from penstock.network import frames
from penstock.network.clients import Client, LocalClients
from penstock.network.control import ControlPlane
from penstock.network.frames import VERSION, Body, Frame
from penstock.network.link_tables import Entry
from penstock.network.payload_places import PayloadPlaces
from penstock.network.payloads import PayloadCache, PayloadSettings
from penstock.network.ports import Outcome, Ports
from penstock.network.publications import DataPlane
from penstock.network.replays import MAX_PORTION_MESSAGES, Replays, SourceLog
from penstock.network.routing_tables import LOCAL, RoutingSettings, RoutingTables
from penstock.network.sessions import Timing
from penstock.routing.interests import Interest, Shapes, SpaceShape, check_interest

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
        portion_messages: int = MAX_PORTION_MESSAGES,
    ) -> None:
        if LOCAL in links or len(set(links)) != len(links):
            raise NetworkError("the links of a node have distinct numbers from 1 on")
        timing = timing or Timing()
        self._shapes = dict(shapes)
        self.tables = RoutingTables(self._shapes, settings)
        for link in links:
            self.tables.add_link(link)
        self.clients = LocalClients(self._shapes)
        self.faults: deque[NetworkError] = deque(maxlen=MAX_FAULTS)
        """Recent refusals."""
        self._sources: dict[str, SourceLog] = {}
        self._ports = Ports(links, timing, start)
        self._control = ControlPlane(self._ports, self.tables)
        self.payloads = None if payloads is None else PayloadCache(payloads)
        self._payload_places = PayloadPlaces(self._sources, self.payloads)
        self._data = DataPlane(
            self._ports,
            self.tables,
            self.clients,
            self.payloads,
            self._control.announce,
            self._payload_places.find,
            self._ask_again,
            timing.resend_after,
        )
        self._replays = Replays(
            self._ports,
            self.tables,
            self.clients,
            self._control,
            self._data,
            self._sources,
            start,
            portion_messages,
        )
        self._takers = self._taking()

    def start(self, now: float) -> Outcome:
        self._ports.now = now
        for link in self._ports.links:
            self._ports.open(link)
        return self._ports.outcome()

    def receive(self, link: int, frame: Frame, now: float) -> Outcome:
        """Process a frame. Invalid bodies are dropped, and recorded in `faults`."""
        self._ports.now = now
        if link not in self._ports:
            self.faults.append(NetworkError(f"a frame over link {link}, which is not known"))
            return self._ports.outcome()
        bodies, must_reopen = self._ports.receive(link, frame)
        if must_reopen:
            self._fail(link, frame)
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
        """Call a few times within `resend_after`."""
        self._ports.now = now
        for link in self._ports.tick():
            self._fail(link)
        self._data.tick()
        self._control.announce(self.tables.merge_if_due())
        return self._ports.outcome()

    def add_link(self, link: int, now: float) -> Outcome:
        """Add a new neighbour, under an unused link number."""
        self._ports.now = now
        if link == LOCAL or link in self._ports:
            raise NetworkError(f"link {link} is there already")
        self.tables.add_link(link)  # the offer is sent once the session is open
        self._ports.add(link)
        self._ports.open(link)
        return self._ports.outcome()

    def remove_link(self, link: int, now: float) -> Outcome:
        """Remove a neighbour for good, with all entries that came from it."""
        self._ports.now = now
        self._data.fail(link)
        self._replays.fail(link)
        self._control.fail(link)
        changes = self.tables.remove_link(link)
        self._replays.forget_link(link)
        self._ports.remove(link)
        self._control.announce(changes)
        self._replays.follow_adverts()
        return self._ports.outcome()

    def reconnect(self, link: int, now: float) -> Outcome:
        """A connection was restored: resend unacknowledged frames immediately."""
        self._ports.now = now
        self._ports.send_again(link)
        return self._ports.outcome()

    def learn_spaces(self, shapes: Iterable[SpaceShape], now: float) -> Outcome:
        """Add spaces; entries that were refused because a space was unknown are requested again."""
        self._ports.now = now
        self._shapes.update({one.space: one for one in shapes})
        for link in list(self._ports.links):
            table = self.tables.table(link)
            if table.has_refused:
                table.forget_refused()
                self._fail(link)
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

    def reached(self, source: str) -> int:
        """The sequence number up to which everything was forwarded."""
        return self._data.reached.get(source, 0)

    def publish(self, source: str, after: int, now: float, most: int | None = None) -> Outcome:
        """The log of a source has grown: forward what follows a sequence number, at most `most`
        messages of it."""
        self._ports.now = now
        for sequence, message in islice(_each(self._sources[source], after), most):
            parcel = self._data.parcel(message)
            self._payload_places.note(parcel, source, sequence)
            self._data.take(LOCAL, frames.Publish(source, sequence, parcel))
        return self._ports.outcome()

    def attach(
        self, name: str, source: str, points: Sequence[Point], after: int, now: float
    ) -> Outcome:
        """Attach a client that has everything up to a sequence number, and wants what follows."""
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

    def hold(self, name: str) -> None:
        """Pause a client that does not keep up. Its interests stay; `attach` resumes it."""
        client = self.clients.get(name)
        if client is not None:
            self._replays.forget_client(name)
            client.is_held = client.is_waiting = True

    def detach(self, name: str, now: float) -> Outcome:
        self._ports.now = now
        self._replays.forget_client(name)
        self._control.ask_locally([], [Entry("", one) for one in self.clients.remove(name)])
        return self._ports.outcome()

    @property
    def is_quiet(self) -> bool:
        """Whether this node knows of nothing in progress."""
        return (
            self._ports.is_idle
            and self._control.is_synced_everywhere
            and not self._replays.is_busy
            and not self._data.is_holding
        )

    def _fail(self, link: int, answering: Frame | None = None) -> None:
        self._data.fail(link)
        self._replays.fail(link)
        self._ports.open(link, answering)
        self._control.fail(link)

    def _ask_again(self, link: int, source: str, after: int) -> None:
        self._replays.ask_again(link, source, after)

    def _taking(self) -> dict[type[Any], Callable[[int, Any], None]]:
        """The handler of each body."""
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


def _each(log: SourceLog, after: int) -> Iterator[tuple[int, Message]]:
    """All messages after a sequence number, read in portions."""
    while found := log.read(after, MAX_PORTION_MESSAGES):
        yield from found
        after = found[-1][0]
