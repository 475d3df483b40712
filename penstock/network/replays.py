"""Replays of missed messages: after a failure, and for clients that attach.

A node or client that missed messages asks the node that speaks for the source, by a Resume that is
forwarded upstream and records the path back. The answer is a portion of what follows a sequence
number; the requester asks for each further portion, so that neither a long log nor a slow link
fills memory. Later publications follow the last portion on the same path. So a requester ignores
live messages until then: they are part of the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from penstock.messages import Message
from penstock.network.clients import Client, LocalClients
from penstock.network.control import ControlPlane
from penstock.network.frames import Parcel, Publish, Replayed, Resume
from penstock.network.ports import Ports
from penstock.network.publications import DataPlane
from penstock.network.routing_tables import LOCAL, RoutingTables
from penstock.routing.interests import Interest, check_interest, concerns, shape_of

MAX_PORTION_MESSAGES = 1_000
"""Maximum messages read for one portion: it blocks the node for about 20 ms."""
MAX_PORTION_BYTES = 1 << 20
"""Maximum bytes of the messages in a portion; a larger message is a portion of its own."""
_NOT_ASKED = -1


class SourceLog(Protocol):
    """The publications of a source that this node speaks for, by sequence number from 1 on."""

    @property
    def end(self) -> int:
        """The last sequence number."""

    def read(self, after: int, most: int) -> Sequence[tuple[int, Message]]:
        """What follows a sequence number: at most `most` messages, fewer only at the end."""


class Replays:
    def __init__(
        self,
        ports: Ports,
        tables: RoutingTables,
        clients: LocalClients,
        control: ControlPlane,
        data: DataPlane,
        sources: Mapping[str, SourceLog],
        start: int,
        portion_messages: int,
    ) -> None:
        self._portion_messages = portion_messages
        self._ports = ports
        self._tables = tables
        self._clients = clients
        self._control = control
        self._data = data
        self._sources = sources
        # Numbers differ after a restart, because answers to earlier requests may still arrive.
        self._next = start << 20
        self._waiting: dict[tuple[int, str], int] = {}
        """By link and source: the number of this node's own unanswered request."""
        self._answered_to: dict[tuple[int, str], int] = {}
        """By link and source: where the last portion of an answer ended, if more follow."""
        self._asked: dict[tuple[int, tuple[int, ...]], Resume] = {}
        """Requests of clients and of other nodes, by number and path back."""
        self._client_of: dict[int, str] = {}

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting or self._asked)

    def is_live(self, link: int, source: str) -> bool:
        return (link, source) not in self._waiting

    def fail(self, link: int) -> None:
        """A link failed: what came over it has gaps, and requests over it are repeated."""
        for source in self._tables.sources(link):
            if source in self._data.reached:
                self._waiting[link, source] = _NOT_ASKED
            self._answered_to.pop((link, source), None)
        self._asked = {key: one for key, one in self._asked.items() if one.path[-1] != link}

    def forget_link(self, link: int) -> None:
        self._waiting = {key: one for key, one in self._waiting.items() if key[0] != link}

    def follow_adverts(self) -> None:
        """Advertisements changed. A client whose interests are not all advertised has gaps, so it
        waits; once they are, what it missed is requested."""
        for client in self._clients:
            self.follow_client(client)

    def follow_client(self, client: Client) -> None:
        if client.is_held:
            return
        if not self._is_advertised(client):
            self.forget_client(client.name)
            client.is_waiting = True
        elif client.is_waiting and client.name not in self._client_of.values():
            number = self._number()
            self._client_of[number] = client.name
            interests = tuple(client.interests())
            self._pass_up(Resume(number, client.source, client.cursor, (LOCAL,), interests))

    def _is_advertised(self, client: Client) -> bool:
        advertised = self._tables.advertised_by(client.source)
        return all(any(one.meets(i) for one in advertised) for i in client.interests())

    def forget_client(self, name: str) -> None:
        """Drop the requests of a client."""
        gone = {number for number, client in self._client_of.items() if client == name}
        for number in gone:
            del self._client_of[number]
            self._asked.pop((number, (LOCAL,)), None)

    def resume_link(self, link: int) -> None:
        """The other side has our table now: repeat our own requests and those of others."""
        for source in sorted(self._tables.sources(link)):
            self._resume_own(link, source)
        for resume in list(self._asked.values()):
            if self._tables.link_to(resume.source) == link:
                self._ports.send(link, resume)

    def source_came(self, link: int, source: str) -> None:
        """A source is advertised over a link, perhaps again."""
        if self._control.is_synced(link):
            self._resume_own(link, source)
        self.resume_source(source)

    def resume_source(self, source: str) -> None:
        """A source has become reachable: forward earlier requests for it."""
        for resume in list(self._asked.values()):
            if resume.source == source:
                self._pass_up(resume)

    def take_resume(self, link: int, body: Resume) -> None:
        for interest in body.interests:
            check_interest(interest, self._tables.shapes)
        self._pass_up(body._replace(path=(*body.path, link)))

    def take_replayed(self, link: int, body: Replayed) -> None:
        if not body.path:
            self._take_own(link, body)
            return
        self._asked.pop((body.number, body.path), None)
        # An answer for another requester proves nothing about what this node's own table wants: the
        # next node may still be catching up, and such an answer overtakes that node's replay.
        if body.is_last and body.source not in self._data.reached:
            self._note_reached(link, body)
        *rest, back = body.path
        if back == LOCAL:
            self._take_for_client(body)
        else:
            # A client's request lists its interests; a node's are those of the link to it.
            items = body.items if body.path[0] == LOCAL else self._wanted(back, body)
            self._ports.send(back, body._replace(path=tuple(rest), items=tuple(items)))

    def ask_again(self, link: int, source: str, after: int) -> None:
        """A publication cannot be forwarded: request it, and all that follows, again."""
        self._data.reached.setdefault(source, after)
        self._waiting[link, source] = _NOT_ASKED
        self._answered_to.pop((link, source), None)
        if self._control.is_synced(link):
            self._resume_own(link, source)

    def _resume_own(self, link: int, source: str) -> None:
        if (link, source) in self._waiting:
            number = self._waiting[link, source] = self._number()
            reached = self._data.reached.get(source, 0)
            after = max(reached, self._answered_to.get((link, source), 0))
            self._ports.send(link, Resume(number, source, after, (), ()))

    def _number(self) -> int:
        number, self._next = self._next, self._next + 1
        return number

    def _pass_up(self, resume: Resume) -> None:
        if resume.source in self._sources:
            self._answer(resume)
            return
        self._asked[resume.number, resume.path] = resume
        link = self._tables.link_to(resume.source)
        if link is not None and self._control.is_synced(link):
            self._ports.send(link, resume)

    def _answer(self, resume: Resume) -> None:
        log, upto, nbytes = self._sources[resume.source], resume.after, 0
        items: list[tuple[int, Parcel]] = []
        # Requests with many interests get smaller portions, which take about as long to compute.
        most = max(1, self._portion_messages // max(1, len(resume.interests) // 8))
        by_space: dict[int, list[Interest]] = {}
        for interest in resume.interests:
            by_space.setdefault(interest.space, []).append(interest)
        for sequence, message in log.read(upto, most):
            if not by_space or self._concerns_any(message, by_space.get(message.space, ())):
                parcel = self._data.parcel(message)
                nbytes += parcel.nbytes
                if items and nbytes > MAX_PORTION_BYTES:
                    break
                items.append((sequence, parcel))
            upto = sequence
        is_last = upto >= log.end
        body = Replayed(resume.number, resume.source, tuple(items), resume.path, upto, is_last)
        self.take_replayed(LOCAL, body)

    def _concerns_any(self, message: Message, interests: Sequence[Interest]) -> bool:
        if not interests:
            return False
        base = shape_of(self._tables.shapes, message.space).base
        return any(concerns(message, interest, base) for interest in interests)

    def _wanted(self, link: int, body: Replayed) -> list[tuple[int, Parcel]]:
        wanted = self._tables.links_of([parcel.message for _, parcel in body.items], LOCAL)
        return [item for item, links in zip(body.items, wanted, strict=True) if links >> link & 1]

    def _note_reached(self, link: int, body: Replayed) -> None:
        """Record the end of an answer as reached: earlier live messages came on the same path."""
        is_complete = self.is_live(link, body.source) and not self._data.is_holding
        if link != LOCAL and is_complete:
            reached = self._data.reached
            reached[body.source] = max(reached.get(body.source, 0), body.upto)

    def _take_own(self, link: int, body: Replayed) -> None:
        if self._waiting.get((link, body.source)) != body.number:
            return  # an answer to an outdated request
        for sequence, parcel in body.items:
            self._data.take(link, Publish(body.source, sequence, parcel))
        key = (link, body.source)
        if body.is_last:
            del self._waiting[key]
            self._answered_to.pop(key, None)
            self._note_reached(link, body)
        else:
            self._answered_to[key] = body.upto
            self._resume_own(*key)

    def _take_for_client(self, body: Replayed) -> None:
        client = self._clients.get(self._client_of.get(body.number, ""))
        if client is None or not client.is_waiting:
            return
        for sequence, parcel in body.items:
            if sequence > client.cursor:
                client.cursor = sequence
                message = self._data.message(parcel)
                if self._clients.is_meant(message, client):
                    self._ports.out.delivered.append((client.name, sequence, message))
        client.cursor = max(client.cursor, body.upto)
        client.is_waiting = not body.is_last
        del self._client_of[body.number]
        self.follow_client(client)
