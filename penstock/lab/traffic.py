"""What was sent, and what a naive server would have sent.

A naive server works out every change of every subscription's content and sends it to that
subscriber: as many rows as there are changed rows in all contents together. Here these are really
produced, by clients that are fed from the message log, and counted with their bytes in the same
binary encoding that messages have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from penstock.client import Content, Notification
from penstock.engine.index import Index
from penstock.log import BatchHeader, Home
from penstock.messages import Message, decode_message
from penstock.packing import pack
from penstock.registry import Registry
from penstock.routing import recipients


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
    """All subscribers of a home, each with its content, fed from the message log."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._registry = Registry(home)
        self._index = Index(self._registry.catalog())
        self._active = 0
        self.contents: dict[int, Content] = {}
        self.traffic = Traffic()

    def take_in(self, on_batch: Callable[[BatchHeader], None] | None = None) -> None:
        """Deliver the whole message log."""
        for header in self._home.messages.batches():
            self._follow(header.active)
            for subscription, received in self._inboxes(header).items():
                for notification in self.contents[subscription].apply(received):
                    self._count(notification)
            if on_batch is not None:
                on_batch(header)

    def _follow(self, active: int) -> None:
        """Make those clients exist that a batch is meant for."""
        catalog = self._registry.catalog()
        changes = self._registry.changes_between(self._active, active)
        for added in changes.added:
            query = added.query(catalog)
            self._index.add(added.id, query)
            self.contents[added.id] = Content(added.id, query)
        for gone in changes.withdrawn:
            self._index.remove(gone.id)
            del self.contents[gone.id]
        self._active = active

    def _inboxes(self, header: BatchHeader) -> dict[int, list[Message]]:
        inboxes: dict[int, list[Message]] = {}
        for message, size in self._messages(header):
            found = recipients(message, self._index.space(message.space))
            subscriptions = {point.subscription for point in found}
            for subscription in subscriptions:
                inboxes.setdefault(subscription, []).append(message)
            self.traffic.messages += 1
            self.traffic.message_bytes += size
            self.traffic.deliveries += len(subscriptions)
            self.traffic.delivery_bytes += size * len(subscriptions)
        return inboxes

    def _messages(self, header: BatchHeader) -> Iterator[tuple[Message, int]]:
        sized = [(decode_message(data), len(data)) for data in self._home.messages.read(header)]
        return iter(sorted(sized, key=lambda pair: pair[0].position))

    def _count(self, notification: Notification) -> None:
        self.traffic.rows += 1
        self.traffic.row_bytes += row_bytes(notification)
        self.traffic.told.add(notification.subscription)


def row_bytes(notification: Notification) -> int:
    """The size of the change of one row: its key, and its values unless it is gone."""
    row = notification.after
    values = None if row is None else [_plain(value) for value in row.values()]
    return len(pack([notification.offset, notification.key, values]))


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, int | float | str) else str(value)
