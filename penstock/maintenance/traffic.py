"""Traffic of a home: what was sent, and what a naive server would have sent.

A naive server works out every change of every subscription's content and sends it to that
subscriber: as many rows as there are changed rows in all contents together. Here these are really
produced, by clients that are fed from the message log, and counted with their bytes in the same
binary encoding that messages have.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TypeVar

from penstock.client import Content, Delivery, Initial, Notification, Switch
from penstock.delivery.inbox import switches
from penstock.flow.index import Index
from penstock.messages import Message, decode_message
from penstock.packing import pack
from penstock.registry import Registry, SubscriptionChanges
from penstock.routing import subscribers
from penstock.spaces import Replan
from penstock.storage import BatchHeader, Home

_T = TypeVar("_T")


@dataclass
class Traffic:
    """Counts over a whole message log. Bytes are of encoded messages and rows, without addresses
    and without what a network adds."""

    messages: int = 0
    message_bytes: int = 0
    deliveries: int = 0
    """Messages times the subscriptions each was meant for."""
    delivery_bytes: int = 0
    rows: int = 0
    """Changed rows of contents: what a naive server would have sent."""
    row_bytes: int = 0
    told: set[int] = field(default_factory=set)
    """Subscriptions whose content ever changed."""


class Clients:
    """All subscribers of a home that have a content, or only some, fed from the message log."""

    def __init__(self, home: Home, only: Collection[int] | None = None) -> None:
        self._home = home
        self._only = only
        self._registry = Registry(home)
        self._index = Index(self._registry.catalog())
        self._asked_to = 0
        self._coming = SubscriptionChanges([], [], [])  # that no batch has made active so far
        self.contents: dict[int, Content] = {}
        self.traffic = Traffic()

    def take_in(
        self,
        on_batch: Callable[[BatchHeader], None] | None = None,
        last: BatchHeader | None = None,
    ) -> None:
        """Deliver the message log, up to a batch or as far as it goes."""
        for header in self._home.messages.batches():
            if last is not None and header > last:
                return
            switched = self._follow(header)
            for subscription, received in self._inboxes(header, switched).items():
                for notification in self.contents[subscription].apply(received):
                    self._count(notification)
            if on_batch is not None:
                on_batch(header)

    def _follow(self, header: BatchHeader) -> list[Switch]:
        """Make those clients exist that a batch is meant for; returns who switches in it."""
        changes = self._changes_before(header.active)
        if changes.added:
            catalog = self._registry.catalog()
        for added in changes.added:
            if self._only is not None and added.id not in self._only:
                continue
            if added.initial is Initial.NONE:
                continue
            query = added.query(catalog)
            self._index.add(added.id, query, added.decomposition)
            self.contents[added.id] = Content(added.id, query, added.decomposition)
        for gone in changes.withdrawn:
            self._index.remove(gone.id)
            self.contents.pop(gone.id, None)
        replans: dict[int, list[Replan]] = {}
        for replan in changes.replanned:
            if replan.subscription in self.contents:
                replans.setdefault(replan.subscription, []).append(replan)
        return [switch for mine in replans.values() for switch in switches(header, mine)]

    def _changes_before(self, active: int) -> SubscriptionChanges:
        """What became active with a batch. Every batch of a Hub makes later records active, so they
        are not asked for one by one."""
        coming = self._coming
        if active > self._asked_to:
            frontier = self._home.messages.frontier
            high = active if frontier is None else max(active, frontier.active)
            found = self._registry.changes_between(self._asked_to, high)
            coming.added.extend(found.added)
            coming.withdrawn.extend(found.withdrawn)
            coming.replanned.extend(found.replanned)
            self._asked_to = high
        return SubscriptionChanges(
            _taken(coming.added, active, lambda one: one.id),
            _taken(coming.withdrawn, active, lambda one: one.withdrawn_at or 0),
            _taken(coming.replanned, active, lambda one: one.offset),
        )

    def _inboxes(self, header: BatchHeader, switched: list[Switch]) -> dict[int, list[Delivery]]:
        inboxes: dict[int, list[Delivery]] = {}
        sized: list[tuple[Delivery, int]] = [(switch, 0) for switch in switched]
        for one, size in sorted([*sized, *self._messages(header)], key=lambda p: p[0].position):
            if isinstance(one, Switch):
                query = self.contents[one.subscription].query
                self._index.replan(one.subscription, query, one.decomposition)
                inboxes.setdefault(one.subscription, []).append(one)
                continue
            subscriptions = self._addressed(one)
            for subscription in subscriptions:
                inboxes.setdefault(subscription, []).append(one)
            self.traffic.messages += 1
            self.traffic.message_bytes += size
            self.traffic.deliveries += len(subscriptions)
            self.traffic.delivery_bytes += size * len(subscriptions)
        return inboxes

    def _addressed(self, message: Message) -> set[int]:
        """Who gets a message. In a Hub's batch, which may hold the record of a subscription, only
        what comes from that record on is meant for it."""
        if not self._index.knows(message.space):
            return set()
        found = subscribers(message, self._index.space(message.space))
        return {one for one in found & self.contents.keys() if one <= message.position.offset}

    def _messages(self, header: BatchHeader) -> list[tuple[Message, int]]:
        return [(decode_message(data), len(data)) for data in self._home.messages.read(header)]

    def _count(self, notification: Notification) -> None:
        self.traffic.rows += 1
        self.traffic.row_bytes += row_bytes(notification)
        self.traffic.told.add(notification.subscription)


def _taken(coming: list[_T], active: int, offset_of: Callable[[_T], int]) -> list[_T]:
    """Those whose records are before an offset, which are the first, taken from a list."""
    taken = list(takewhile(lambda one: offset_of(one) < active, coming))
    del coming[: len(taken)]
    return taken


def row_bytes(notification: Notification) -> int:
    """The size of the change of one row: its key, and its values unless it is gone."""
    row = notification.after
    values = None if row is None else [_plain(value) for value in row.values()]
    return len(pack([notification.offset, notification.key, values]))


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, int | float | str) else str(value)
