"""One subscription of a home, followed through the message log.

Nothing here takes the home's lock: any number of readers may follow while a pipeline or a Hub
processes the home.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.cli.output import count
from penstock.client import Changes, ContentRow, Initial, News
from penstock.errors import CompactedError
from penstock.joins.decomposition import Replan
from penstock.log import Home
from penstock.log.contents import SavedContents
from penstock.log.interfaces import compacted_away
from penstock.log.reading import Reader
from penstock.registry import Registry
from penstock.sql import Query

EVERYTHING = 1 << 62
"""Beyond all offsets."""
_READINGS = 10
"""Each is overtaken only if another compaction is done meanwhile, which takes longer."""


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

    def __init__(
        self, home: Home, subscription: int, since: int | None = None, *, known: int = -1
    ) -> None:
        """`since` is a cursor: only what happens from there on is told."""
        self._home = home
        self._saved = SavedContents(home)
        self._registry = Registry(home)
        self.subscription = self._registry.subscription(subscription)
        self._query = self.subscription.query(self._registry.catalog())
        self._reader = self._opened_reader(since)
        self._resume(self._query, known)
        self._processed = 0
        self.columns = [output.label for output in self._query.outputs]

    def _opened_reader(self, since: int | None) -> Reader:
        one = self.subscription
        chosen, initial = one.decomposition, one.initial
        return Reader(
            self._home.messages, one.id, self._query, chosen, self._replans, initial, since
        )

    def _resume(self, query: Query, known: int) -> None:
        if isinstance(self._reader.client, Changes):
            return
        quiet = self.subscription.initial is Initial.QUIET
        found = self._saved.load(self.subscription.id, query, quiet=quiet, before=known + 1)
        if found is not None:
            self._reader.resume(found.content, found.last)

    def advance(self) -> Iterator[News]:
        """Take in the batches published since the last call, one by one; what they changed."""
        # Asked first: what is published while we read may or may not be taken in this time.
        frontier = self._home.messages.frontier
        yield from self._reader.new()
        self._processed = max(0 if frontier is None else frontier.end, self.cursor)

    def catch_up(self) -> None:
        """The same for those who want the content alone; saves it if this took long.

        A compaction that overtakes the reading leaves the same content: it is read again.
        """
        for _ in range(_READINGS):
            try:
                return self._catch_up()
            except CompactedError:
                self._reader = self._opened_reader(None)
        return self._catch_up()

    def _catch_up(self) -> None:
        frontier = self._home.messages.frontier
        self._reader.catch_up()
        self._processed = max(0 if frontier is None else frontier.end, self.cursor)
        self._saved.save_if_worth_it(self._reader.client, self._reader.inbox)

    @property
    def cursor(self) -> int:
        """Where the content stands that has been taken in (`penstock.client.cursors`)."""
        return self._reader.cursor

    @property
    def lost_before(self) -> int:
        """Changes before this offset are no longer there to be told; 0 if all are."""
        return self._reader.lost_before

    def rows(self) -> list[ContentRow]:
        """SubscriptionError if it has no content, because it wanted changes only."""
        self.subscription.initial.check_content(self.subscription.id)
        assert not isinstance(self._reader.client, Changes)
        return self._reader.client.rows()

    def progress(self) -> Progress:
        """How far that got which has been taken in."""
        return Progress(self._processed, self._home.log.end, active=self._reader.active)

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
