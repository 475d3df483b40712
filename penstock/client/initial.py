"""The initial content of a subscription.

A subscription without initial content gets the same notifications as one with the same query gets
after its initial content. Over one table that needs no state: a message carries the old and the new
row. A join needs state: a change can join rows that existed before, and the server sends only rows
that the subscriber cannot have yet. So over several tables the initial rows are sent and stored,
but not reported.
"""

from __future__ import annotations

from enum import StrEnum

from penstock.arguments import text
from penstock.errors import SubscriptionError
from penstock.query import Query


class Initial(StrEnum):
    """How a subscription starts."""

    CONTENT = "content"
    """With notifications of all rows that its query returns."""
    NONE = "none"
    """Without initial content; it never holds rows: a notification comes from one message."""
    SILENT = "quiet"
    """With all rows that it needs, but without notifications of them."""

    @classmethod
    def of(cls, wanted: str, query: Query) -> Initial:
        """From the subscriber's wish, "content" or "none"."""
        wanted = text(wanted, "what a subscription starts with", SubscriptionError)
        if wanted not in (cls.CONTENT, cls.NONE):
            raise SubscriptionError(
                f"a subscription cannot start with {wanted[:60]!r}",
                hint="say content (what its query returns now) or none (changes only)",
            )
        return cls.SILENT if wanted == cls.NONE and len(query.nodes) > 1 else cls(wanted)

    @property
    def wanted(self) -> str:
        """The subscriber's wish, "content" or "none"."""
        return self.CONTENT if self is self.CONTENT else self.NONE

    def check_content(self, subscription: int) -> None:
        """SubscriptionError unless the subscription has a content to show."""
        if self is not self.CONTENT:
            raise SubscriptionError(
                f"subscription {subscription} has no content",
                detail="it wanted changes only (initial=none)",
                hint="read its notifications (penstock tail), or subscribe with initial=content",
            )
