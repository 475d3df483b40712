"""The client side of a subscription: content and notifications, built from messages."""

from penstock.client.content import Content, ContentRow, Delivery, Notification, Switch

__all__ = ["Content", "ContentRow", "Delivery", "Notification", "Switch"]
