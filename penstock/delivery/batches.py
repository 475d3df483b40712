"""The messages of one subscription, batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from penstock.client import Delivery, Initial, Switch
from penstock.delivery.registration import Registration
from penstock.messages import INITIAL_STEP, Message, Position, SpaceFilter, decode_message
from penstock.spaces import Decomposition, Replan, space_ids
from penstock.storage import BatchHeader


class ReadableBatches(Protocol):
    """The part of a `BatchLog` that reading needs."""

    @property
    def frontier(self) -> BatchHeader | None: ...

    @property
    def base(self) -> BatchHeader | None: ...

    def batches(self, after: BatchHeader | None = None) -> Iterator[BatchHeader]: ...

    def read(self, header: BatchHeader) -> list[bytes]: ...


class SubscriptionBatches:
    """The messages of a subscription's spaces from its first batch on.

    A batch counts if the subscription was active in it. In a Hub's batch, which may hold the
    subscription's own record, only messages from that record on are meant for it. A subscription
    without initial content is active in the batch that holds its record, whether a Hub or a
    pipeline made it.
    """

    def __init__(self, batches: ReadableBatches, registration: Registration) -> None:
        self._batches = batches
        self._registration = registration
        self._subscription = registration.id
        self._spaces = self._spaces_of(registration.decomposition)
        self._asked_to = registration.id + 1
        self._coming: list[Replan] = []  # recorded earlier, but not active in any batch yet
        self.last: BatchHeader | None = None
        """The last batch read."""
        self.examined = 0
        """Batches and messages examined so far: the cost of reading."""

    def resume(self, last: BatchHeader, chosen: Decomposition | None) -> None:
        """Continue after a batch, with the decomposition that the subscription had at its end."""
        self.last = last
        self._spaces = self._spaces_of(chosen)
        self._asked_to, self._coming = max(self._subscription + 1, last.active), []

    def new(self) -> Iterator[tuple[BatchHeader, list[Delivery]]]:
        """The batches published since the last one read, each with its messages in order."""
        for header in self._batches.batches(self.last):
            if not self.is_active_in(header):
                continue
            switches = self._switches(header)
            spaces = self._spaces.union(*(self._spaces_of(s.decomposition) for s in switches))
            mine: list[Delivery] = [
                message
                for message in self._messages(header, spaces)
                if message.space in spaces and message.position.offset >= self._subscription
            ]
            if switches:
                self._spaces = self._spaces_of(switches[-1].decomposition)
            self.last = header
            yield header, sorted([*mine, *switches], key=lambda one: one.position)

    def is_active_in(self, header: BatchHeader) -> bool:
        return self._subscription < active_before(header, self._registration.initial)

    def _messages(self, header: BatchHeader, spaces: frozenset[int]) -> Iterator[Message]:
        """The messages of a batch; most of those of other spaces are skipped."""
        messages = self._batches.read(header)
        self.examined += 1 + len(messages)
        is_base = header == self._batches.base
        for data in filter(SpaceFilter(spaces).may_pass, messages):
            yield as_read(decode_message(data), is_base=is_base)

    def _switches(self, header: BatchHeader) -> list[Switch]:
        """Queries all replans up to the end of the message log at once: every batch of a Hub makes
        later records active, and one query per batch would be slow."""
        if header.active > self._asked_to:
            frontier = self._batches.frontier
            high = header.active if frontier is None else max(header.active, frontier.active)
            self._coming += self._registration.replans(self._asked_to, high)
            self._asked_to = high
        mine = [replan for replan in self._coming if replan.offset < header.active]
        del self._coming[: len(mine)]
        return switches_in(header, mine)

    def _spaces_of(self, chosen: Decomposition | None) -> frozenset[int]:
        return space_ids(self._registration.query, chosen)


def active_before(header: BatchHeader, initial: Initial) -> int:
    """Subscriptions of this kind recorded before this offset are active in a batch."""
    return max(header.active, header.end) if initial is Initial.NONE else header.active


def as_read(message: Message, *, is_base: bool) -> Message:
    """A message as clients apply it. Messages of a base replace a compacted past: they are initial
    content, not changes."""
    if not is_base:
        return message
    return message._replace(position=Position(message.position.offset, INITIAL_STEP))


def switches_in(header: BatchHeader, replans: Iterable[Replan]) -> list[Switch]:
    """The switches of one subscription in the batch that makes these replans active: at their own
    records if the batch holds them; for the last one before the batch, at its start."""
    ordered = list(replans)
    before = [replan for replan in ordered if replan.offset < header.start]
    return [Switch.at(header.start, replan) for replan in before[-1:]] + [
        Switch.at(replan.offset, replan) for replan in ordered[len(before) :]
    ]
