"""A network of views in one process: the source, sites and readers, with immediate delivery.

The nodes are those of the processes (`penstock.views.site_host`); the traffic of each link is
counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from penstock.views.coordinator import SiteCoordinator
from penstock.views.document_feed import DocumentFeed
from penstock.views.site_frames import encode_site_frame
from penstock.views.site_host import AT_SOURCE, Answer, Batch, Read, SiteHost
from penstock.views.sites import NodeName
from penstock.views.view_cursor import ViewCursor


@dataclass(slots=True)
class Sent:
    """The traffic."""

    bytes: Counter[str] = field(default_factory=Counter)
    """By sender; the source is AT_SOURCE."""
    rows: Counter[str] = field(default_factory=Counter)


class MemorySites:
    """All processing happens in `settle`."""

    def __init__(self, feed: DocumentFeed, coordinator: SiteCoordinator, sites: int) -> None:
        self.feed = feed
        self.coordinator = coordinator
        self.hosts: dict[str, SiteHost] = {}
        self.sent = Sent()
        self._told: dict[str, int] = {}
        self._at_source: list[tuple[str, Read]] = []
        for number in range(sites):
            name = f"site {number + 1}"
            self.hosts[name] = SiteHost()
            self.hosts[name].address = name
            coordinator.join(name, name)

    def fail(self, name: str) -> None:
        """A site fails, with everything in its memory."""
        del self.hosts[name]
        self._at_source = [one for one in self._at_source if one[0] != name]
        for host in self.hosts.values():
            host.on_lost(name)
            host.drop_reader(name)
        self.coordinator.leave(name)

    def settle(self) -> None:
        """Process until all sites have computed all documents."""
        has_moved = True
        while has_moved:
            self._tell()
            has_moved = self._ask() | self._answer()

    def read(self, views: Iterable[NodeName]) -> dict[NodeName, ViewCursor]:
        """What subscribers get that read their views now, from the sites where they are."""
        found = {}
        for view in views:
            cursor = found[view] = ViewCursor(view)
            cursor.locate(self.coordinator.place_of(view), self.feed.epoch, self.feed.end)
            while cursor.next_document < self.feed.end:
                for to, read in cursor.take_reads():
                    cursor.on_answer(self._answer_to(to, read))
        return found

    def _answer_to(self, to: str, read: Read) -> Answer:
        if to == AT_SOURCE:
            results = self.feed.read(read.view, read.from_document, read.most)
            return Batch(read.tag, tuple(results))
        self.hosts[to].on_read("reader", read)
        ((_, answer),) = self.hosts[to].take_answers()
        return answer

    def _tell(self) -> None:
        for name, host in self.hosts.items():
            if self._told.get(name) != self.coordinator.version:
                self._told[name] = self.coordinator.version
                host.on_hosting(self.coordinator.hosting_of(name))

    def _ask(self) -> bool:
        has_moved = False
        for name, host in self.hosts.items():
            for to, read in host.take_reads():
                has_moved = True
                if to == AT_SOURCE:
                    self._at_source.append((name, read))
                elif to in self.hosts:
                    self.hosts[to].on_read(name, read)
        return has_moved

    def _answer(self) -> bool:
        waiting, self._at_source = self._at_source, []
        has_moved = False
        for name, read in waiting:
            results = self.feed.read(read.view, read.from_document, read.most)
            if results:
                self._deliver(AT_SOURCE, name, Batch(read.tag, tuple(results)))
                has_moved = True
            else:
                self._at_source.append((name, read))
        for sender, host in list(self.hosts.items()):
            for to, answer in host.take_answers():
                self._deliver(sender, to, answer)
                has_moved = True
        return has_moved

    def _deliver(self, sender: str, to: str, answer: Answer) -> None:
        self.sent.bytes[sender] += len(encode_site_frame(answer))
        if isinstance(answer, Batch):
            self.sent.rows[sender] += sum(len(one.rows or ()) for one in answer.results)
        self.hosts[to].on_answer(answer)
