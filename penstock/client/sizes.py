"""A quick estimate of the memory of what is queued for a subscriber.

Only texts can be large: everything else is counted as a constant.
"""

from __future__ import annotations

from collections.abc import Iterable
from sys import getsizeof

from penstock.client.content import ContentRow, Delivery, Notification
from penstock.messages import Message

OBJECT_BYTES = 400
"""A message or a notification without its values: the object, its id, its key, its dictionaries."""
VALUE_BYTES = 32
"""A number, a date, or the slot of a value in a row."""


def delivery_bytes(delivery: Delivery) -> int:
    if not isinstance(delivery, Message):
        return OBJECT_BYTES
    old = () if delivery.old is None else (value for _, value in delivery.old)
    return OBJECT_BYTES + _values_bytes(delivery.row or ()) + _values_bytes(old)


def notification_bytes(notification: Notification) -> int:
    return OBJECT_BYTES + _row_bytes(notification.before) + _row_bytes(notification.after)


def _row_bytes(row: ContentRow | None) -> int:
    return 0 if row is None else _values_bytes(row.values())


def _values_bytes(values: Iterable[object]) -> int:
    return sum(getsizeof(one) if type(one) is str else VALUE_BYTES for one in values)
