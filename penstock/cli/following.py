"""One subscription of a home, followed through the message log.

Nothing here takes the home's lock: any number of readers may follow while a pipeline or a Hub
processes the home.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.cli.output import count
from penstock.client import Changes, ContentRow, Delivery, Initial, Notification, client_of
from penstock.joins.decomposition import Replan
from penstock.log import Home
from penstock.log.contents import SavedContents
from penstock.log.inbox import Inbox
from penstock.log.interfaces import compacted_away
from penstock.registry import Registry
from penstock.sql import Query

EVERYTHING = 1 << 62
"""Beyond all offsets."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a home has been processed, as one subscription sees it."""

    processed: int
    log_end: int
    active: bool
    """Whether a batch has made the subscription active: before, its content is empty."""

    @property
    def waiting(self) -> int:
        """Records of the log that no batch has processed yet."""
        return self.log_end - self.processed

    @property
    def complete(self) -> bool:
        return self.active and not self.waiting

    def remark(self, home: Home) -> str:
        """What a reader should know about an answer; empty if it is up to date."""
        if self.complete:
            return ""
        what = []
        if not self.active:
            what.append("the subscription is not active yet: it starts with the next batch")
        if self.waiting:
            what.append(f"{count(self.waiting, 'record')} of the log not processed yet")
        then = "" if is_processed(home) else f" (penstock run {home.path} --once)"
        return "; ".join(what) + then


class Follower:
    """The content of one subscription, brought forward as batches are published.

    `known` is an offset up to which nobody needs to be told what changed: from there back, a saved
    content may stand for the messages.
    """

    def __init__(self, home: Home, subscription: int, *, known: int = -1) -> None:
        self._home = home
        self._saved = SavedContents(home)
        self._registry = Registry(home)
        self.subscription = self._registry.subscription(subscription)
        query = self.subscription.query(self._registry.catalog())
        chosen, initial = self.subscription.decomposition, self.subscription.initial
        self._client = client_of(subscription, query, chosen, initial)
        self._inbox = Inbox(home.messages, subscription, query, chosen, self._replans, initial)
        self._resume(query, known)
        self._processed = 0
        self.columns = [output.label for output in query.outputs]

    def _resume(self, query: Query, known: int) -> None:
        if isinstance(self._client, Changes):
            return
        quiet = self.subscription.initial is Initial.QUIET
        found = self._saved.load(self.subscription.id, query, quiet=quiet, before=known + 1)
        if found is not None:
            self._client = found.content
            self._inbox.resume(found.last, found.content.chosen)

    def advance(self) -> list[Notification]:
        """Take in the batches published since the last call; what they changed."""
        notifications: list[Notification] = []
        for deliveries in self._deliveries():
            notifications += self._client.apply(deliveries)
        return notifications

    def catch_up(self) -> None:
        """The same for those who want the content alone; saves it if this took long."""
        for deliveries in self._deliveries():
            if not isinstance(self._client, Changes):
                self._client.absorb(deliveries)
        self._saved.save_if_worth_it(self._client, self._inbox)

    def _deliveries(self) -> Iterator[list[Delivery]]:
        # Asked first: what is published while we read may or may not be taken in this time.
        frontier = self._home.messages.frontier
        for _, deliveries in self._inbox.new():
            yield deliveries
        reached = [header.end for header in (frontier, self._inbox.last) if header is not None]
        self._processed = max(reached, default=0)

    def rows(self) -> list[ContentRow]:
        """SubscriptionError if it has no content, because it wanted changes only."""
        self.subscription.initial.check_content(self.subscription.id)
        assert not isinstance(self._client, Changes)
        return self._client.rows()

    def progress(self) -> Progress:
        """How far that got which has been taken in."""
        return Progress(self._processed, self._home.log.end, active=self._inbox.last is not None)

    def _replans(self, low: int, high: int) -> list[Replan]:
        self._registry.catch_up(high)
        return self._registry.replans(self.subscription.id, low, high)

    def check_reachable(self, after: int) -> None:
        """HomeError if what changed behind an offset can no longer be told."""
        base = self._home.messages.base
        if base is not None and self.subscription.id < base.active and 0 <= after < base.end - 1:
            raise compacted_away(after + 1, base.end)

    def check_still_there(self) -> None:
        """SubscriptionError if it has been withdrawn in the meantime."""
        self._registry.catch_up()
        self._registry.subscription(self.subscription.id)


def is_processed(home: Home) -> bool:
    """Whether a pipeline or a Hub is at work on the home."""
    return home.processed_by() is not None
