"""The client side of a subscription: content and notifications, built from messages."""

from penstock.client.changes_only import ChangesOnlyClient, client_of
from penstock.client.content import Content, ContentRow, Delivery, Notification, Switch
from penstock.client.cursors import BEGINNING, News, Snapshot
from penstock.client.initial import Initial

__all__ = [
    "BEGINNING",
    "ChangesOnlyClient",
    "Content",
    "ContentRow",
    "Delivery",
    "Initial",
    "News",
    "Notification",
    "Snapshot",
    "Switch",
    "client_of",
]
