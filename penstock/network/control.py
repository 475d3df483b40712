"""Advertisements and interests between nodes: forwarded, acknowledged, compared after a failure.

Comparing tables takes one digest if nothing differs; otherwise the digests of 64 buckets, then the
names in the buckets that differ, then the missing entries.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import NetworkError
from penstock.network.acknowledgements import Acknowledgements
from penstock.network.frames import (
    Ack,
    Advertise,
    Check,
    InSync,
    Names,
    Subscribe,
    Summary,
    Unadvertise,
    Unsubscribe,
    Want,
)
from penstock.network.link_tables import Entry, entry_name
from penstock.network.ports import Ports
from penstock.network.routing_tables import LOCAL, OfferChange, RoutingTables


class ControlPlane:
    def __init__(self, ports: Ports, tables: RoutingTables) -> None:
        self._ports = ports
        self._tables = tables
        self._acks = Acknowledgements()
        self._synced: set[int] = set()
        """Links whose other side has our current table."""

    def is_synced(self, link: int) -> bool:
        return link in self._synced

    @property
    def is_synced_everywhere(self) -> bool:
        return all(link in self._synced for link in self._ports.links)

    def fail(self, link: int) -> None:
        """A session failed: frames in flight are lost; tables stay unchanged until compared."""
        self._synced.discard(link)
        for asked_by, number in self._acks.fail(link):
            self._acknowledge(asked_by, number)

    def greet(self, link: int) -> None:
        """A session was opened: send a digest, to check whether the other side has our table."""
        self._ports.send(link, Check(self._tables.offered(link).digest))

    def ask_locally(self, added: Sequence[Entry], removed: Sequence[Entry]) -> int:
        """Process requests of a client; returns the number that will be acknowledged."""
        issued = []
        for entry in added:
            issued += self.announce(self._tables.add(LOCAL, entry))
        for entry in removed:
            issued += self.announce(self._tables.remove(LOCAL, entry_name(entry)))
        number = self._acks.number()
        if self._acks.begin((LOCAL, number), issued):
            self._acknowledge(LOCAL, number)
        return number

    def subscribe(self, link: int, number: int, entry: Entry) -> None:
        """An interest or an advertisement arrived. A refused one is acknowledged immediately."""
        try:
            changes = self._tables.add(link, entry)
        except NetworkError:
            self._acknowledge(link, number)
            raise
        self._change(link, number, changes)

    def unsubscribe(self, link: int, number: int, name: int) -> None:
        """An entry was withdrawn. If it was covered here, nothing is forwarded."""
        self._change(link, number, self._tables.remove(link, name))

    def acknowledged(self, link: int, number: int) -> None:
        for asked_by, done in self._acks.done(link, number):
            self._acknowledge(asked_by, done)

    def announce(self, changes: list[OfferChange]) -> list[tuple[int, int]]:
        """Send changes of offers to their links, additions first; returns the operations."""
        issued = []
        for change in changes:
            if not self._ports.is_open(change.link):
                continue
            issued += [self._say(change.link, entry) for entry in change.added]
            for name, entry in change.removed:
                number = self._acks.issue(change.link)
                gone = (
                    Unadvertise(number, entry.source, name)
                    if entry.source
                    else Unsubscribe(number, name)
                )
                self._ports.send(change.link, gone)
                issued.append((change.link, number))
        return issued

    def check(self, link: int, body: Check) -> None:
        table = self._tables.table(link)
        same = table.digest == body.digest
        self._ports.send(link, InSync() if same else Summary(table.digests()))

    def summary(self, link: int, body: Summary) -> None:
        names = self._tables.offered(link).names_where_different(body.digests)
        self._ports.send(link, Names(names))

    def names(self, link: int, body: Names) -> None:
        """Remove entries that the other side does not have, and request the missing ones."""
        table = self._tables.table(link)
        wanted: list[int] = []
        for bucket, names in body.buckets:
            for name in table.not_among(bucket, names):
                self.announce(self._tables.remove(link, name))
            wanted += [name for name in names if name not in table]
        self._ports.send(link, Want(tuple(wanted)))

    def want(self, link: int, body: Want) -> None:
        """Send the missing entries that still exist, and start another comparison."""
        for name in body.names:
            entry = self._tables.offered(link).get(name)
            if entry is not None:
                self._say(link, entry)
        self.greet(link)

    def in_sync(self, link: int) -> None:
        self._synced.add(link)

    def _say(self, link: int, entry: Entry) -> tuple[int, int]:
        number = self._acks.issue(link)
        said = Advertise(number, *entry) if entry.source else Subscribe(number, entry.interest)
        self._ports.send(link, said)
        return link, number

    def _change(self, link: int, number: int, changes: list[OfferChange]) -> None:
        """Forward the changes of an operation; it is acknowledged when all of them are."""
        if self._acks.begin((link, number), self.announce(changes)):
            self._acknowledge(link, number)

    def _acknowledge(self, link: int, number: int) -> None:
        if link == LOCAL:
            self._ports.out.acknowledged.append(number)
        else:
            self._ports.send(link, Ack(number))
