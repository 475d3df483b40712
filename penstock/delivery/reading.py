"""Reading what a subscription is told from the message log, from any cursor on."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.arguments import whole_number
from penstock.client import BEGINNING, ChangesOnlyClient, Content, Initial, News, client_of
from penstock.delivery.inbox import Inbox, Replans
from penstock.errors import HomeError
from penstock.query import Query
from penstock.spaces import Decomposition
from penstock.storage.interfaces import BatchHeader, BatchLog, compacted_away


class Reader:
    """One subscription, batch by batch. Any number of readers may follow a home.

    What a content consists of is built from its beginning, whatever the cursor: batches before it
    are taken in, and not told of. A cursor inside a batch means that batch's start: some of it is
    told again, with the same ids.
    """

    def __init__(
        self,
        batches: BatchLog,
        subscription: int,
        query: Query,
        chosen: Decomposition | None,
        replans: Replans,
        initial: Initial = Initial.CONTENT,
        since: int | None = None,
    ) -> None:
        """`since` None: from the beginning, or from what is left of it."""
        self.client = client_of(subscription, query, chosen, initial)
        self.cursor = BEGINNING
        """Where the reader stands: the end of the last batch that the subscription was active
        in."""
        self._batches = batches
        self.inbox = Inbox(batches, subscription, query, chosen, replans, initial)
        self._initial = initial
        self._since = BEGINNING if since is None else _known_cursor(since, batches)
        if since is not None and self._lost_before() > self._since:
            raise self._compacted()

    @property
    def active(self) -> bool:
        """Whether a batch that was read has made the subscription active."""
        return self.inbox.last is not None

    @property
    def lost_before(self) -> int:
        """Changes before this offset are no longer there to be told; 0 if all are."""
        return 0 if self._since else self._lost_before()

    def new(self) -> Iterator[News]:
        """What the batches published since the last call have changed, one by one."""
        for header, deliveries in self.inbox.new():
            notifications = self.client.apply(deliveries)
            before, self.cursor = self.cursor, header.end
            if header.end > self._since:
                yield News(before, self.cursor, notifications)

    def resume(self, content: Content, last: BatchHeader) -> None:
        """Begin with a content that was saved at the end of a batch."""
        self.client = content
        self.inbox.resume(last, content.chosen)
        self.cursor = last.end

    def catch_up(self) -> None:
        """Take in the batches published since the last call, for those who want the content."""
        for header, deliveries in self.inbox.new():
            if isinstance(self.client, ChangesOnlyClient):
                self.client.apply(deliveries)
            else:
                self.client.absorb(deliveries)
            self.cursor = header.end

    def _lost_before(self) -> int:
        """Whoever has a content and begins with nothing is told the content that a base holds;
        whoever wants changes only has missed those that it stands for."""
        base = self._batches.base
        if base is None or not self.inbox.is_active_in(base):
            return 0
        if self._initial is Initial.CONTENT and self._since == BEGINNING:
            return 0
        return base.end

    def _compacted(self) -> HomeError:
        error = compacted_away(self._since, self._lost_before())
        if self._initial is not Initial.CONTENT:
            error.hint = f"go on from what is still there: cursor {self._lost_before()}"
        return error


def _known_cursor(since: object, batches: BatchLog) -> int:
    cursor = whole_number(since, "a cursor", HomeError)
    frontier = batches.frontier
    end = BEGINNING if frontier is None else frontier.end
    if cursor > end:
        raise HomeError(
            f"there is no cursor {cursor} yet",
            detail=f"the home has been processed up to offset {end}",
            hint="a cursor comes with a content or a notification of the same home; was it "
            "restored from a backup? Then start again from the content",
        )
    return cursor
