"""The tables of one broker: advertisements by link, interests by link, and the offers to links.

SRT: the advertisements by link. PRT: the interests by link, in one index per space. Each link is
sent an *offer*: the interests from all other links that an advertisement from that link meets,
without covered ones, and merged if so configured; and the advertisements from all other links,
covered and merged perfectly within each source. To the receiver, all of an offer comes from one
last hop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.errors import NetworkError
from penstock.messages import Message
from penstock.network.link_tables import Entry, LinkTable, entry_name
from penstock.routing.covering import Changed
from penstock.routing.interest_index import InterestIndex
from penstock.routing.interests import Interest, Shapes, check_interest, name_of, shape_of
from penstock.routing.merging.measures import Measure, ObservedMeasures
from penstock.routing.merging.policies import every
from penstock.routing.merging.table import MergeSettings, MergeTable

LOCAL = 0
"""The link to the node's own clients; links to neighbours have higher numbers."""


@dataclass(frozen=True, slots=True)
class RoutingSettings:
    covers: bool = True
    merging: MergeSettings | None = None
    measures: Mapping[int, Measure] = field(default_factory=dict)
    """By space: the distribution of publications; without one, only perfect mergers are made."""
    observes: bool = False
    """Whether each node measures on the messages it receives, once there are enough of them."""


@dataclass(slots=True)
class OfferChange:
    """Changes of an offer: entries to send, then names to withdraw."""

    link: int
    added: list[Entry] = field(default_factory=list)
    removed: list[tuple[int, Entry]] = field(default_factory=list)


class _Offer:
    """The offer to one link. Interests that several links share are reference-counted."""

    def __init__(
        self, shapes: Shapes, settings: RoutingSettings, measures: Mapping[int, Measure]
    ) -> None:
        self._shapes = shapes
        self._covers = settings.covers
        self.interests = MergeTable(
            shapes, settings.merging, covers=settings.covers, measures=measures
        )
        self._wanted: Counter[int] = Counter()
        self._adverts: dict[str, MergeTable] = {}
        self._advertised: Counter[tuple[str, int]] = Counter()
        self.table = LinkTable()

    def want(self, interests: Iterable[tuple[int, Interest]]) -> Changed:
        fresh = []
        for name, interest in interests:
            self._wanted[name] += 1
            if self._wanted[name] == 1:
                fresh.append((name, interest))
        return self.interests.insert_many(fresh)

    def unwant(self, name: int) -> Changed:
        self._wanted[name] -= 1
        if self._wanted[name]:
            return Changed()
        del self._wanted[name]
        return self.interests.remove(name)

    def advertise(self, source: str, interest: Interest) -> Changed:
        name = name_of(interest)
        self._advertised[source, name] += 1
        if self._advertised[source, name] > 1:
            return Changed()
        table = self._adverts.get(source)
        if table is None:
            settings = MergeSettings(every(1))
            table = MergeTable(self._shapes, settings, covers=self._covers)
            self._adverts[source] = table
        return _both(table.insert(name, interest), table.merge_if_due())

    def unadvertise(self, source: str, interest: Interest) -> Changed:
        name = name_of(interest)
        self._advertised[source, name] -= 1
        if self._advertised[source, name]:
            return Changed()
        del self._advertised[source, name]
        table = self._adverts[source]
        return _both(table.remove(name), table.merge_if_due())


class RoutingTables:
    """Not thread-safe. Methods return the changes to send, by link and in order."""

    def __init__(self, shapes: Shapes, settings: RoutingSettings | None = None) -> None:
        self.shapes = shapes
        self._settings = settings or RoutingSettings()
        self._measures = self._settings.measures
        self._observed: ObservedMeasures | None = None
        if self._settings.observes:
            self._measures = self._observed = ObservedMeasures(shapes, self._measures)
        self._from: dict[int, LinkTable] = {LOCAL: LinkTable()}
        self._offers: dict[int, _Offer] = {}
        self._srt: dict[int, dict[int, Entry]] = {LOCAL: {}}
        self._prt: dict[int, InterestIndex] = {}
        self._members: dict[tuple[int, int], int] = {}
        """(link, name of the interest) -> number in the index."""
        self._next_member = 0

    def add_link(self, link: int) -> OfferChange:
        """Add a neighbour; it is offered all advertisements."""
        self._from[link] = LinkTable()
        self._srt[link] = {}
        offer = self._offers[link] = _Offer(self.shapes, self._settings, self._measures)
        change = OfferChange(link)
        for entries in self._srt.values():
            for entry in entries.values():
                self._say(offer, change, entry.source, offer.advertise(*entry))
        return change

    def remove_link(self, link: int) -> list[OfferChange]:
        """Remove a neighbour for good, with all entries that came from it."""
        del self._offers[link]
        changes = []
        for name, _ in self._from[link]:
            changes += self.remove(link, name)
        del self._from[link], self._srt[link]
        return changes

    def table(self, link: int) -> LinkTable:
        """The entries received over a link."""
        return self._from[link]

    def offered(self, link: int) -> LinkTable:
        """The entries sent over a link."""
        return self._offers[link].table

    def prt_size(self) -> int:
        return sum(map(len, self._prt.values()))

    def add(self, link: int, entry: Entry) -> list[OfferChange]:
        """Add an advertisement or an interest; NetworkError if it is invalid."""
        try:
            check_interest(entry.interest, self.shapes)
        except NetworkError:
            self._from[link].refuse(entry)
            raise
        if not self._from[link].add(entry):
            return []
        return self._advertise(link, entry) if entry.source else self._subscribe(link, entry)

    def add_many(self, link: int, entries: Iterable[Entry]) -> list[OfferChange]:
        """Bulk `add` of interests, for filling tables for the first time."""
        fresh = [entry.interest for entry in entries if self._from[link].add(entry)]
        by_space: dict[int, list[tuple[int, Interest, int]]] = {}
        for interest in fresh:
            self._members[link, name_of(interest)] = self._next_member
            by_space.setdefault(interest.space, []).append((self._next_member, interest, link))
            self._next_member += 1
        for space, members in by_space.items():
            self._index(space).add_many(members)
        changes = []
        for other, offer in self._offers.items():
            if other != link:
                change = OfferChange(other)
                met = [(name_of(i), i) for i in fresh if self._is_advertised(other, i)]
                self._say(offer, change, "", offer.want(met))
                changes.append(change)
        return _said(changes)

    def remove(self, link: int, name: int) -> list[OfferChange]:
        """Remove the entry with this name; does nothing if it is not held."""
        entry = self._from[link].remove(name)
        if entry is None:
            return []
        return self._unadvertise(link, entry) if entry.source else self._unsubscribe(link, entry)

    def links_of(self, messages: Sequence[Message], came_from: int) -> list[int]:
        """For each message the links that want it, as a bit set, without the link it came from."""
        kept = -1 if came_from == LOCAL else ~(1 << came_from)
        found = [0] * len(messages)
        by_space: dict[int, list[int]] = {}
        for number, message in enumerate(messages):
            by_space.setdefault(message.space, []).append(number)
        for space, numbers in by_space.items():
            index = self._prt.get(space)
            if index is None:
                continue
            for number, links in zip(
                numbers, index.links([messages[n] for n in numbers]), strict=True
            ):
                found[number] = links & kept
        return found

    def came(self, link: int, message: Message, is_needed: bool) -> list[OfferChange]:
        """Count a message that arrived over a link against the merging budget of that link."""
        if self._observed is not None:
            self._observed.observe(message)
        offer = self._offers.get(link)
        if offer is None or not offer.interests.mergers:
            return []
        change = OfferChange(link)
        self._say(offer, change, "", offer.interests.count(message, is_needed))
        return [change]

    def merge_if_due(self) -> list[OfferChange]:
        changes = []
        for link, offer in self._offers.items():
            change = OfferChange(link)
            advertised = [entry.interest for entry in self._srt[link].values()]
            self._say(offer, change, "", offer.interests.merge_if_due(advertised))
            changes.append(change)
        return _said(changes)

    def merged_table(self, link: int) -> MergeTable:
        """The covering and merging table of a link."""
        return self._offers[link].interests

    def sources(self, link: int) -> set[str]:
        """The sources whose advertisements came over a link."""
        return {entry.source for entry in self._srt[link].values()}

    def advertised_by(self, source: str) -> list[Interest]:
        entries = [entry for own in self._srt.values() for entry in own.values()]
        return [entry.interest for entry in entries if entry.source == source]

    def link_to(self, source: str) -> int | None:
        """The link over which a source is reached."""
        return next((link for link in self._from if source in self.sources(link)), None)

    def _subscribe(self, link: int, entry: Entry) -> list[OfferChange]:
        interest = entry.interest
        name = name_of(interest)
        index = self._index(interest.space)
        self._members[link, name] = self._next_member
        index.add(self._next_member, interest, link)
        self._next_member += 1
        changes = []
        for other, offer in self._offers.items():
            if other != link and self._is_advertised(other, interest):
                change = OfferChange(other)
                self._say(offer, change, "", offer.want([(name, interest)]))
                changes.append(change)
        return _said(changes)

    def _unsubscribe(self, link: int, entry: Entry) -> list[OfferChange]:
        interest = entry.interest
        name = name_of(interest)
        self._index(interest.space).remove(self._members.pop((link, name)))
        changes = []
        for other, offer in self._offers.items():
            if other != link and self._is_advertised(other, interest):
                change = OfferChange(other)
                self._say(offer, change, "", offer.unwant(name))
                changes.append(change)
        return _said(changes)

    def _advertise(self, link: int, entry: Entry) -> list[OfferChange]:
        self._srt[link][entry_name(entry)] = entry
        changes = []
        for other, offer in self._offers.items():
            change = OfferChange(other)
            if other == link:
                fresh = self._met_by(entry, link)
                self._say(offer, change, "", offer.want(fresh))
            else:
                self._say(offer, change, entry.source, offer.advertise(*entry))
            changes.append(change)
        return _said(changes)

    def _unadvertise(self, link: int, entry: Entry) -> list[OfferChange]:
        del self._srt[link][entry_name(entry)]
        changes = []
        for other, offer in self._offers.items():
            change = OfferChange(other)
            if other == link:
                for name, _ in self._met_by(entry, link):
                    self._say(offer, change, "", offer.unwant(name))
            else:
                self._say(offer, change, entry.source, offer.unadvertise(*entry))
            changes.append(change)
        return _said(changes)

    def _met_by(self, advert: Entry, link: int) -> list[tuple[int, Interest]]:
        """The interests from other links that only this advertisement of the link meets: adding it
        adds them to the offer, removing it removes them."""
        index = self._prt.get(advert.interest.space)
        if index is None:
            return []
        others = [e.interest for e in self._srt[link].values() if e != advert]
        found = []
        for member in index.meeting(advert.interest):
            interest = index[member]
            if index.link(member) != link and not any(o.meets(interest) for o in others):
                found.append((name_of(interest), interest))
        return found

    def _is_advertised(self, link: int, interest: Interest) -> bool:
        return any(entry.interest.meets(interest) for entry in self._srt[link].values())

    def _index(self, space: int) -> InterestIndex:
        index = self._prt.get(space)
        if index is None:
            index = self._prt[space] = InterestIndex(shape_of(self.shapes, space))
        return index

    def _say(self, offer: _Offer, change: OfferChange, source: str, changed: Changed) -> None:
        for interest in changed.added.values():
            entry = Entry(source, interest)
            if offer.table.add(entry):
                change.added.append(entry)
        for interest in changed.removed.values():
            entry = Entry(source, interest)
            name = entry_name(entry)
            if offer.table.remove(name) is not None:
                change.removed.append((name, entry))


def _said(changes: list[OfferChange]) -> list[OfferChange]:
    return [change for change in changes if change.added or change.removed]


def _both(one: Changed, other: Changed) -> Changed:
    for name, interest in other.added.items():
        one.add(name, interest)
    for name, interest in other.removed.items():
        one.remove(name, interest)
    return one


def interests_of(table: LinkTable) -> Iterator[Interest]:
    return (entry.interest for _, entry in table if not entry.source)
