"""Sending again what was missed: after a failure, and to clients that come or come back.

Whoever misses something asks the node that speaks for the source, by a Resume that goes up from
link to link and remembers the way back. The answer is a portion of what comes after a sequence
number; who wants more asks again, so that neither a long log nor a slow link fills a memory. Behind
the last portion, on the same way, comes what is published later. So whoever has asked ignores what
comes live until then: it is part of the answer.
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
"""That are looked at for one portion: about 20 ms of a node that everybody else waits for."""
MAX_PORTION_BYTES = 1 << 20
"""Of the messages in a portion; one larger message is a portion of its own."""
_NOT_ASKED = -1


class SourceLog(Protocol):
    """What was published by a source that this node speaks for, by sequence number from 1 on."""

    @property
    def end(self) -> int:
        """The last sequence number."""

    def read(self, after: int, most: int) -> Sequence[tuple[int, Message]]:
        """What follows a sequence number: at most so many messages, fewer only at the end."""


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
        # What was asked before a restart may be answered after it.
        self._next = start << 20
        self._waiting: dict[tuple[int, str], int] = {}
        """By link and source: the number of our own question, to which no answer has come."""
        self._answered_to: dict[tuple[int, str], int] = {}
        """By link and source: where the last portion of an answer ended, if there are more."""
        self._asked: dict[tuple[int, tuple[int, ...]], Resume] = {}
        """Questions of clients and of other nodes, by number and way back."""
        self._client_of: dict[int, str] = {}

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting or self._asked)

    def is_live(self, link: int, source: str) -> bool:
        return (link, source) not in self._waiting

    def fail(self, link: int) -> None:
        """What came over a link is not complete any more; what was asked over it is asked again."""
        for source in self._tables.sources(link):
            if source in self._data.reached:
                self._waiting[link, source] = _NOT_ASKED
            self._answered_to.pop((link, source), None)
        self._asked = {key: one for key, one in self._asked.items() if one.path[-1] != link}

    def forget_link(self, link: int) -> None:
        self._waiting = {key: one for key, one in self._waiting.items() if key[0] != link}

    def follow_adverts(self) -> None:
        """Advertisements came or went. A client whose interests are not all advertised has gaps, so
        it waits; when they are, what it missed is asked for."""
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
        """Whatever was asked for a client is not waited for any more."""
        gone = {number for number, client in self._client_of.items() if client == name}
        for number in gone:
            del self._client_of[number]
            self._asked.pop((number, (LOCAL,)), None)

    def resume_link(self, link: int) -> None:
        """The other side has our table now: it can send what we missed, and what others asked."""
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
        """A source has become known: pass on what was asked of it before."""
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
        # It says nothing about what others here want: the next node may still be catching up, and
        # such an answer overtakes what that one is sent again.
        if body.is_last and body.source not in self._data.reached:
            self._note_reached(link, body)
        *rest, back = body.path
        if back == LOCAL:
            self._take_for_client(body)
        else:
            # A client's question named its interests; a node's are those of the link to it.
            items = body.items if body.path[0] == LOCAL else self._wanted(back, body)
            self._ports.send(back, body._replace(path=tuple(rest), items=tuple(items)))

    def ask_again(self, link: int, source: str, after: int) -> None:
        """Something that came cannot be passed on: ask for it, and all that follows, once more."""
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
        # A question with many interests is answered in smaller portions, which take as long.
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
        """Whatever came live before an answer came before it on the same way."""
        is_complete = self.is_live(link, body.source) and not self._data.is_holding
        if link != LOCAL and is_complete:
            reached = self._data.reached
            reached[body.source] = max(reached.get(body.source, 0), body.upto)

    def _take_own(self, link: int, body: Replayed) -> None:
        if self._waiting.get((link, body.source)) != body.number:
            return  # it has been asked again since
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
