"""The client side of a subscription: content and notifications, built from messages."""

from penstock.client.beginning import Initial
from penstock.client.changes import Changes, client_of
from penstock.client.content import Content, ContentRow, Delivery, Notification, Switch
from penstock.client.cursors import BEGINNING, News, Snapshot

__all__ = [
    "BEGINNING",
    "Changes",
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
