"""The client of a changes-only subscription over one table. It holds no rows."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog import Row
from penstock.client.content import (
    Content,
    Delivery,
    Notification,
    notified,
    own_points,
    row_view,
)
from penstock.client.initial import Initial
from penstock.client.own_points import OwnPoints
from penstock.messages import INITIAL_STEP, Message
from penstock.query import Query
from penstock.spaces import Decomposition, place


class ChangesOnlyClient:
    """Notifications, each from one message: the row before and after.

    Messages to such a subscription carry all columns of the old row.
    """

    def __init__(self, subscription: int, query: Query) -> None:
        self.subscription = subscription
        self.query = query
        self._show = row_view(query)
        self._base = query.nodes[0].relation
        self._points = own_points(query, place(query, subscription))

    def apply(self, deliveries: Sequence[Delivery]) -> list[Notification]:
        """The notifications of messages, which must be ordered by position."""
        notifications: list[Notification] = []
        for one in deliveries:
            if isinstance(one, Message) and one.space in self._points:
                notifications += self._notify(one, self._points[one.space])
        return notifications

    def _notify(self, message: Message, points: OwnPoints) -> list[Notification]:
        if message.position.step <= INITIAL_STEP:
            return []
        before = after = None
        if points.removing(message):
            before = message.row_before(self._base)
        if points.upserting(message):
            after = message.row
        key, offset = (message.key,), message.position.offset
        return notified(self.subscription, offset, key, self._shown(before), self._shown(after))

    def _shown(self, row: Row | None) -> dict[str, object] | None:
        return None if row is None else self._show((row,))


def client_of(
    subscription: int, query: Query, chosen: Decomposition | None, initial: Initial
) -> Content | ChangesOnlyClient:
    """The client that turns the messages of a subscription into notifications."""
    if initial is Initial.NONE:
        return ChangesOnlyClient(subscription, query)
    return Content(subscription, query, chosen, quiet=initial is Initial.SILENT)
