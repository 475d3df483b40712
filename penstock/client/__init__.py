"""The client side of a subscription: content and notifications, built from messages."""

from penstock.client.beginning import Initial
from penstock.client.changes import Changes, client_of
from penstock.client.content import Content, ContentRow, Delivery, Notification, Switch

__all__ = [
    "Changes",
    "Content",
    "ContentRow",
    "Delivery",
    "Initial",
    "Notification",
    "Switch",
    "client_of",
]
