"""All messages of a home in one order, with marks: the feed of the broker at the message log.

Files are read on demand; one line per batch and the last few batches are kept in memory.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator

from penstock.catalog import Catalog
from penstock.client import Initial
from penstock.delivery.descriptions import Description
from penstock.delivery.marks import (
    BEGIN,
    END,
    MARKS,
    MAX_NAMED,
    Mark,
    begin_sequence,
    end_sequence,
    mark_message,
    place_in_batch,
)
from penstock.errors import CompactedError, SubscriptionError
from penstock.messages import Message, decode_message
from penstock.network.shapes import shapes_of
from penstock.routing.interests import SpaceShape
from penstock.spaces import Placed, Replan, Space, place
from penstock.storage import BatchHeader, Home

RECORDS_AT_ONCE = 50_000
"""Records of the log whose subscriptions are looked up together: some 50 MB of plans."""
_READINGS = 10
"""Each reading fails only if another compaction finishes meanwhile, which takes longer."""
KEPT_BATCHES = 4
"""Readers that catch up read the same few batches, portion by portion."""


class MessageFeed:
    """Takes no lock: a Hub or a pipeline may process the home meanwhile. Not thread-safe.

    `advance` looks for new batches; until then they are not read, so that only announced messages
    can be read.
    """

    def __init__(self, home: Home) -> None:
        from penstock.registry import Registry

        self._home = home
        self._registry = Registry(home)
        self._spaces: dict[int, Space] = {}
        self._mentioned: dict[int, set[int]] = {}
        self._seen_to = 0
        self._changes = _Changes()
        self._base = home.messages.base
        self._headers = _Headers()
        self._kept: OrderedDict[BatchHeader, list[bytes]] = OrderedDict()

    @property
    def end(self) -> int:
        """The sequence number of the last mark."""
        last = self._headers.last
        return 0 if last is None else end_sequence(last)

    def advance(self) -> list[SpaceShape]:
        """Look for new batches and subscriptions; returns the new spaces."""
        first = [] if self._seen_to else [MARKS]
        try:
            new = list(self._home.messages.batches(self._headers.last))
        except CompactedError:
            self._read_headers()
            new = []
        # Afterwards, so that every record that these batches make active is applied.
        self._registry.catch_up()
        found = self._follow_registry()
        self._headers.extend(new)
        return first + found

    def read(self, after: int, most: int) -> list[tuple[int, Message]]:
        """The messages and marks after a sequence number: at most `most`, fewer only at the end. A
        reader that is still before a base gets the base from its beginning."""
        for _ in range(_READINGS):
            try:
                found = self._read(after, most)
            except CompactedError:
                self._read_headers()
                continue
            # A base has the header of a batch, but other messages.
            if self._home.messages.base == self._base:
                return found
            self._read_headers()
        return self._read(after, most)

    def describe(self, subscription: int) -> Description:
        """What a remote reader needs; SubscriptionError if there is no such subscription."""
        self._registry.catch_up()
        stored = self._registry.subscription(subscription)
        query = stored.query(self._registry.catalog())
        known_to = self._registry.applied
        replans = self._registry.replans(subscription, subscription, known_to)
        first = self._headers.first_active(subscription, stored.initial)
        start = self.end if first is None else begin_sequence(first) - 1
        return Description(
            subscription,
            query,
            stored.decomposition,
            stored.initial,
            tuple((one.offset, one.decomposition) for one in replans),
            start,
            self.end,
            known_to,
        )

    def mentioned(self, space: int) -> set[int]:
        """The columns of a space that conditions of a subscription use, or have used."""
        return self._mentioned.get(space, set())

    def catalog(self) -> Catalog:
        return self._registry.catalog()

    def close(self) -> None:
        self._registry.close()

    def _follow_registry(self) -> list[SpaceShape]:
        fresh: dict[int, Space] = {}
        end = self._registry.applied
        while self._seen_to < end:
            high = min(end, self._seen_to + RECORDS_AT_ONCE)
            changes = self._registry.changes_between(self._seen_to, high)
            for one in changes.added:
                query = one.query(self._registry.catalog())
                fresh |= self._placed_spaces(place(query, one.id, one.decomposition))
            for replan in changes.replanned:
                fresh |= self._spaces_of(replan)
            self._changes.add((one.offset, one.subscription) for one in changes.replanned)
            self._changes.add((one.withdrawn_at or 0, one.id) for one in changes.withdrawn)
            self._seen_to = high
        new = [space for number, space in fresh.items() if number not in self._spaces]
        self._spaces |= fresh
        return list(shapes_of(new, self._registry.catalog()).values())

    def _spaces_of(self, replan: Replan) -> dict[int, Space]:
        try:
            query = self._registry.query_of(replan.subscription)
        except SubscriptionError:
            return {}  # withdrawn since: nobody will follow it
        return self._placed_spaces(place(query, replan.subscription, replan.decomposition))

    def _placed_spaces(self, placed: Iterable[Placed]) -> dict[int, Space]:
        found = {}
        for one in placed:
            found[one.space.id] = one.space
            mentioned = self._mentioned.setdefault(one.space.id, set())
            mentioned.update(column for column, _ in one.point.base)
        return found

    def _read_headers(self) -> None:
        """Read all of them again, because the message log was compacted."""
        self._kept.clear()
        self._base = self._home.messages.base
        self._headers = _Headers()
        self._headers.extend(self._home.messages.batches())

    def _read(self, after: int, most: int) -> list[tuple[int, Message]]:
        found: list[tuple[int, Message]] = []
        for header, before in self._headers.following(after):
            is_base = header == self._base
            for sequence, message in self._batch(header, before, after, is_base):
                found.append((sequence, message))
                if len(found) == most:
                    return found
        return found

    def _batch(
        self, header: BatchHeader, before: int, after: int, is_base: bool
    ) -> Iterator[tuple[int, Message]]:
        """The messages of a batch after a sequence number, with its marks."""
        first, done = begin_sequence(header), place_in_batch(after, header)
        changed = self._changes.between(before, header.active)
        if done < 0:
            yield first, mark_message(Mark(header, BEGIN, is_base, changed))
        messages = self._messages(header)
        for number in range(max(done, 0), len(messages)):
            yield first + number + 1, decode_message(messages[number])
        yield end_sequence(header), mark_message(Mark(header, END, is_base, changed))

    def _messages(self, header: BatchHeader) -> list[bytes]:
        found = self._kept.get(header)
        if found is None:
            found = self._kept[header] = self._home.messages.read(header)
            if len(self._kept) > KEPT_BATCHES:
                self._kept.popitem(last=False)
        return found


class _Headers:
    """All batches, 24 bytes each: homes may have millions."""

    def __init__(self) -> None:
        self._starts, self._ends, self._active = array("q"), array("q"), array("q")

    @property
    def last(self) -> BatchHeader | None:
        return self._at(len(self._ends) - 1) if self._ends else None

    def extend(self, headers: Iterable[BatchHeader]) -> None:
        for header in headers:
            self._starts.append(header.start)
            self._ends.append(header.end)
            self._active.append(header.active)

    def following(self, after: int) -> Iterator[tuple[BatchHeader, int]]:
        """The batches that do not end before a sequence number, each with its predecessor's
        `active`."""
        places = range(len(self._ends))
        first = bisect_right(places, after, key=lambda i: end_sequence(self._at(i)))
        for place_ in range(first, len(self._ends)):
            yield self._at(place_), self._active[place_ - 1] if place_ else 0

    def first_active(self, subscription: int, initial: Initial) -> BatchHeader | None:
        """The first batch in which a subscription is active."""
        bounds = self._active
        if initial is Initial.NONE:
            bounds = array("q", map(max, self._active, self._ends))
        first = bisect_right(bounds, subscription)
        return self._at(first) if first < len(bounds) else None

    def _at(self, place_: int) -> BatchHeader:
        return BatchHeader(self._starts[place_], self._ends[place_], self._active[place_])


class _Changes:
    """Which subscriptions were replanned or withdrawn by which records."""

    def __init__(self) -> None:
        self._offsets, self._subscriptions = array("q"), array("q")

    def add(self, changes: Iterable[tuple[int, int]]) -> None:
        for offset, subscription in sorted(changes):
            place_ = bisect_right(self._offsets, offset)
            self._offsets.insert(place_, offset)
            self._subscriptions.insert(place_, subscription)

    def between(self, low: int, high: int) -> tuple[int, ...] | None:
        """Those of [low, high); None if there are too many to name."""
        first, last = bisect_left(self._offsets, low), bisect_left(self._offsets, high)
        if last - first > MAX_NAMED:
            return None
        return tuple(sorted(set(self._subscriptions[first:last])))
