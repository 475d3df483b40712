"""An index over the interests of many links in one space: which links does a message concern?

Plain gear: up to 1,000 interests are scanned or, after enough queries between two changes, kept as
bit masks. Fast gear: beyond that, interests are in a few segments, each a tree of flat arrays; new
ones are kept separately and become a segment when there are enough of them, and segments of similar
size are merged, so an interest is built into a tree O(log n) times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from penstock.messages import Message
from penstock.predicates.intervals import Interval
from penstock.predicates.masks import IntervalMasks, bits
from penstock.routing.interests import Interest, SpaceShape, concerns
from penstock.routing.probes import (
    Probe,
    Sides,
    admits,
    cover_probe,
    is_approximate,
    lies_within,
    message_probes,
    sides_of,
)

if TYPE_CHECKING:
    from penstock.routing.interest_segments import Segment

PLAIN_INTERESTS = 1_000
"""Up to this many interests the plain gear is used, without kernels: 20 us a message with masks."""
OPEN_INTERESTS = 128
"""New interests that the fast gear keeps outside of segments: scanning them takes 30 us."""
SCANS_BEFORE_MASKS = 8
"""Building masks of 1,000 interests takes as long as this many scans."""
MERGE_RATIO = 4
"""A segment is merged with the one before it unless that one is this many times larger."""
ALL_LINKS = -1


class InterestIndex:
    """Members have names (numbers) and each belongs to a link (a small number). Not thread-safe."""

    def __init__(self, shape: SpaceShape) -> None:
        self.shape = shape
        self._members: dict[int, tuple[Interest, int]] = {}
        self._open = _OpenMembers()
        self._segments: list[Segment] = []
        self._dimensions: dict[int, int] = {}
        """The number of members that bound each dimension."""
        self._largest_link = 0

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, name: int) -> bool:
        return name in self._members

    def __getitem__(self, name: int) -> Interest:
        return self._members[name][0]

    def members(self) -> Iterator[tuple[int, Interest, int]]:
        for name, (interest, link) in self._members.items():
            yield name, interest, link

    def link(self, name: int) -> int:
        return self._members[name][1]

    def add(self, name: int, interest: Interest, link: int = 0) -> None:
        self.remove(name)
        self._members[name] = (interest, link)
        sides = sides_of(interest, self.shape)
        self._count(sides, 1)
        self._open.add(name, sides, link)
        most = OPEN_INTERESTS if self._segments else PLAIN_INTERESTS
        if len(self._open) > most:
            self._close()

    def add_many(self, members: Iterable[tuple[int, Interest, int]]) -> None:
        """Bulk `add` of new members: they become one segment."""
        for name, interest, link in members:
            self._members[name] = (interest, link)
            sides = sides_of(interest, self.shape)
            self._count(sides, 1)
            self._open.add(name, sides, link)
        if len(self._open) > PLAIN_INTERESTS:
            self._close()

    def remove(self, name: int) -> Interest | None:
        member = self._members.pop(name, None)
        if member is None:
            return None
        self._count(sides_of(member[0], self.shape), -1)
        if not self._open.remove(name):
            for number, segment in enumerate(self._segments):
                if segment.strike_out(name):
                    if 2 * segment.alive < len(segment):
                        self._replace(number, segment)
                    break
        return member[0]

    def links(self, messages: Sequence[Message]) -> list[int]:
        """For each message of this space, the links it concerns, as a bit set."""
        probes: list[Probe] = []
        asked: list[int] = []
        for number, message in enumerate(messages):
            for probe in message_probes(message, self.shape, self._dimensions):
                probes.append(probe)
                asked.append(number)
        found = [0] * len(messages)
        if self._open:
            for number, probe in zip(asked, probes, strict=True):
                found[number] |= self._open.links(probe)
        if self._segments and probes:
            self._add_segment_links(probes, asked, found)
        for number, message in enumerate(messages):
            if found[number] and is_approximate(message):
                found[number] = self._exact_links(message)
        return found

    def names(self, message: Message, links: int = ALL_LINKS) -> list[int]:
        """The members that a message concerns."""
        probes = list(message_probes(message, self.shape, self._dimensions))
        found = list(self._admitting(probes, links)) if probes else []
        if is_approximate(message):
            base = self.shape.base
            return [name for name in found if concerns(message, self[name], base)]
        return found

    def covering(self, interest: Interest, links: int = ALL_LINKS) -> int | None:
        """A member of the given links that covers an interest, if there is one."""
        probe = cover_probe(sides_of(interest, self.shape), self._dimensions)
        return next(self._admitting([probe], links, 1), None)

    def covered(self, interest: Interest, links: int = ALL_LINKS) -> list[int]:
        """All members of the given links that an interest covers."""
        outer = sides_of(interest, self.shape)
        found = self._open.within(outer, links)
        for segment in self._segments:
            found += segment.within(outer, links, len(segment))
        return found

    def meeting(self, interest: Interest, links: int = ALL_LINKS) -> list[int]:
        """All members of the given links that intersect an interest."""
        sides = sides_of(interest, self.shape)
        probe: Probe = {d: (i.high, i.low) for d, i in sides.items()}
        return [n for n in self._admitting([probe], links) if self[n].meets(interest)]

    def _admitting(
        self, probes: Sequence[Probe], links: int, most: int | None = None
    ) -> Iterator[int]:
        """The members that admit one of the probes, each once."""
        if len(probes) == 1:
            yield from self._open.admitting(probes[0], links)
        else:
            yield from dict.fromkeys(n for p in probes for n in self._open.admitting(p, links))
        for segment in self._segments:
            yield from segment.admitting(probes, links, len(segment) if most is None else most)

    def _exact_links(self, message: Message) -> int:
        found = 0
        for name in self.names(message):
            found |= 1 << self.link(name)
        return found

    def _add_segment_links(
        self, probes: Sequence[Probe], asked: Sequence[int], found: list[int]
    ) -> None:
        import numpy as np

        words = self._largest_link // 64 + 1
        links = np.zeros((len(found), words), np.uint64)
        rows = np.array(asked, np.int64)
        for segment in self._segments:
            segment.add_links(probes, rows, links)
        for word in range(words):
            for number, mask in enumerate(links[:, word].tolist()):
                if mask:
                    found[number] |= mask << 64 * word

    def _count(self, sides: Sides, by: int) -> None:
        counts = self._dimensions
        for dimension in sides:
            counts[dimension] = counts.get(dimension, 0) + by
            if not counts[dimension]:
                del counts[dimension]

    def _replace(self, number: int, segment: Segment) -> None:
        living = segment.living()
        self._segments[number : number + 1] = [self._segment(living)] if living else []

    def _close(self) -> None:
        names = self._open.names()
        while self._segments and self._segments[-1].alive < MERGE_RATIO * len(names):
            names += self._segments.pop().living()
        self._segments.append(self._segment(names))
        self._open = _OpenMembers()

    def _segment(self, names: Iterable[int]) -> Segment:
        from penstock.routing.interest_segments import Segment  # imports kernels

        members = {}
        for name in names:
            interest, link = self._members[name]
            members[name] = (sides_of(interest, self.shape), link)
            self._largest_link = max(self._largest_link, link)
        return Segment(members)

    @property
    def nbytes(self) -> int:
        """The size of the trees, without the interests themselves."""
        return sum(segment.nbytes for segment in self._segments)


class _OpenMembers:
    """A few interests that are scanned, or kept as masks if they are queried often."""

    def __init__(self) -> None:
        self._members: dict[int, tuple[Sides, int]] = {}
        self._masks: _Masks | None = None
        self._scans = 0

    def __len__(self) -> int:
        return len(self._members)

    def names(self) -> list[int]:
        return list(self._members)

    def add(self, name: int, sides: Sides, link: int) -> None:
        self._members[name] = (sides, link)
        self._masks, self._scans = None, 0

    def remove(self, name: int) -> bool:
        if self._members.pop(name, None) is None:
            return False
        self._masks, self._scans = None, 0
        return True

    def links(self, probe: Probe) -> int:
        masks = self._current_masks()
        if masks is not None:
            return masks.links(masks.admitting(probe))
        found = 0
        for sides, link in self._members.values():
            if not found >> link & 1 and admits(sides, probe):
                found |= 1 << link
        return found

    def admitting(self, probe: Probe, links: int) -> Iterator[int]:
        masks = self._current_masks()
        if masks is not None:
            yield from masks.names_of(masks.admitting(probe) & masks.of_links(links))
            return
        for name, (sides, link) in self._members.items():
            if links >> link & 1 and admits(sides, probe):
                yield name

    def within(self, outer: Sides, links: int) -> list[int]:
        return [
            name
            for name, (sides, link) in self._members.items()
            if links >> link & 1 and lies_within(sides, outer)
        ]

    def _current_masks(self) -> _Masks | None:
        if self._masks is None and self._members:
            self._scans += 1
            if self._scans > SCANS_BEFORE_MASKS:
                self._masks = _Masks(self._members)
        return self._masks


class _Masks:
    """Bit masks; a member is the bit of its number."""

    def __init__(self, members: dict[int, tuple[Sides, int]]) -> None:
        self._names = list(members)
        by_dimension: dict[int, dict[int, Interval]] = {}
        self._by_link: dict[int, int] = {}
        for number, (sides, link) in enumerate(members.values()):
            self._by_link[link] = self._by_link.get(link, 0) | 1 << number
            for dimension, interval in sides.items():
                by_dimension.setdefault(dimension, {})[number] = interval
        self._everyone = (1 << len(members)) - 1
        count = len(members)
        self._dimensions = {d: IntervalMasks(of, count) for d, of in by_dimension.items()}

    def admitting(self, probe: Probe) -> int:
        found = self._everyone
        for dimension, masks in self._dimensions.items():
            asked = probe.get(dimension)
            if asked is not None:
                found &= masks.covering(*asked)
                if not found:
                    break
        return found

    def links(self, members: int) -> int:
        found = 0
        if members:
            for link, own in self._by_link.items():
                if own & members:
                    found |= 1 << link
        return found

    def of_links(self, links: int) -> int:
        if links == ALL_LINKS:
            return self._everyone
        found = 0
        for link, own in self._by_link.items():
            if links >> link & 1:
                found |= own
        return found

    def names_of(self, members: int) -> Iterator[int]:
        return (self._names[number] for number in bits(members))
