"""Traffic of a home: what was sent, compared with a naive server.

A naive server computes every change of every subscription's content and sends it to that
subscriber: as many rows as there are changed rows in all contents together. Here these are actually
produced, by clients fed from the message log, and counted with their bytes in the binary encoding
of messages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.client import Content, Notification
from penstock.delivery import FanOut
from penstock.garbage import without_garbage
from penstock.packing import pack
from penstock.storage import Home

_PLAIN = frozenset({int, float, str, bool, type(None)})
"""Types whose values are counted directly; almost all rows have no others."""


@dataclass
class Traffic:
    """Counts over a whole message log. Bytes are of encoded messages and rows, without addresses
    and network overhead."""

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
    """All subscribers of a home, fed from the message log, and their traffic."""

    def __init__(self, home: Home) -> None:
        self.traffic = Traffic()
        self._fan_out = FanOut(home, on_route=self._count_message)

    @property
    def contents(self) -> dict[int, Content]:
        return self._fan_out.contents

    def take_in(self, on_batch: Callable[[int], None] | None = None) -> None:
        """Deliver the message log; `on_batch` is called with the end of every batch."""
        with without_garbage():
            for cut in self._fan_out.new():
                for notifications in cut.notifications.values():
                    for notification in notifications:
                        self._count_row(notification)
                if on_batch is not None:
                    on_batch(cut.cursor)

    def _count_message(self, size: int, subscriptions: int) -> None:
        self.traffic.messages += 1
        self.traffic.message_bytes += size
        self.traffic.deliveries += subscriptions
        self.traffic.delivery_bytes += size * subscriptions

    def _count_row(self, notification: Notification) -> None:
        self.traffic.rows += 1
        self.traffic.row_bytes += row_bytes(notification)
        self.traffic.told.add(notification.subscription)


def row_bytes(notification: Notification) -> int:
    """The size of the change of one row: its key, and its values unless it is gone."""
    row = notification.after
    values = None if row is None else list(row.values())
    if values is not None and not _PLAIN.issuperset(map(type, values)):
        values = [_plain(value) for value in values]
    return len(pack([notification.offset, notification.key, values]))


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, int | float | str) else str(value)
