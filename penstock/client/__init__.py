"""The client side of a subscription: content and notifications, built from messages."""

from penstock.client.content import Content, ContentRow, Notification

__all__ = ["Content", "ContentRow", "Notification"]
