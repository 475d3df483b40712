"""Subscriptions of a home that were made before its Hub was opened."""

from __future__ import annotations

import threading
from functools import partial

from penstock.client import ChangesOnlyClient, Content, Initial, Notification, client_of
from penstock.delivery.inbox import Inbox
from penstock.delivery.saved_contents import SavedContents
from penstock.registry import Registry
from penstock.sql import Query
from penstock.storage import BatchHeader, Home
from penstock.subscription import MAX_PENDING_NOTIFICATIONS, Subscription


def reopen_subscription(
    home: Home, registry: Registry, number: int, query: Query, lock: threading.RLock
) -> Subscription:
    """From its saved content, if there is one, and the messages since."""
    stored, saved = registry.subscription(number), SavedContents(home)
    chosen, initial = stored.decomposition, stored.initial
    replans = partial(registry.replans, number)
    open_inbox = partial(Inbox, home.messages, number, query, chosen, replans, initial)
    inbox, found = open_inbox(), None
    if initial is not Initial.NONE:
        found = saved.load(number, query, quiet=initial is Initial.SILENT)
    if found is None:
        live = Subscription(number, query, lock, chosen, initial)
    else:
        inbox.resume(found.last, found.content.chosen)
        client = client_of(number, query, chosen, initial)
        earlier = partial(_earlier, open_inbox(), client, found.last)
        live = Subscription(
            number, query, lock, chosen, initial, saved=found.content, earlier=earlier
        )
    for _, deliveries in inbox.new():
        live.deliver(deliveries)
    saved.save_if_worth_it(live.settled(), inbox)
    return live


def _earlier(
    inbox: Inbox, client: Content | ChangesOnlyClient, last: BatchHeader
) -> list[Notification]:
    """What a subscription was notified of up to the end of a batch, or more than it can keep."""
    notifications: list[Notification] = []
    for header, deliveries in inbox.new():
        notifications += client.apply(deliveries)
        if header == last or len(notifications) > MAX_PENDING_NOTIFICATIONS:
            break
    return notifications
