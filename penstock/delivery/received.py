"""A subscription followed remotely: batches are reassembled from messages.

Messages must be given in the order of their sequence numbers. A batch is complete when both of its
marks have arrived; if a batch is sent again, what was received of it before is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto

from penstock.client import BEGINNING, ChangesOnlyClient, ContentRow, News
from penstock.delivery.batches import SubscriptionBatches
from penstock.delivery.descriptions import Description
from penstock.delivery.marks import BEGIN, MARKS, Mark, end_sequence, mark_of
from penstock.errors import NetworkError
from penstock.messages import Message, encode_message
from penstock.storage import BatchHeader, compacted_away

MAX_BATCH_BYTES = 1 << 30
"""Maximum bytes of the messages of one batch for one subscription; it must fit into memory, like
its content."""


class Step(Enum):
    """The result of a received message."""

    TAKEN = auto()
    BATCH = auto()
    """A batch is complete: `apply` it."""
    DESCRIBE = auto()
    """The subscription has changed with this batch: it must be described again, and the batch be
    sent again, from `cursor` on."""
    AGAIN = auto()
    """The batch is not the one that was started: it must be sent again, from `cursor` on."""


class ReceivedSubscription:
    """The notifications and the content of one subscription. Not thread-safe."""

    def __init__(self, described: Description, since: int = BEGINNING) -> None:
        """Batches up to the offset `since` are applied but not reported."""
        self._described = described
        self._since = since
        self.client = described.registration().new_client()
        self.cursor = described.start
        """The sequence number up to which complete batches were applied."""
        self.position = BEGINNING
        """The offset at which the last of them ended: the cursor in the public sense."""
        self._log = _OneBatch()
        self._batches = SubscriptionBatches(self._log, described.registration())

    @property
    def described(self) -> Description:
        return self._described

    def describe(self, described: Description) -> None:
        """Continue with a newer description."""
        self._described = described
        last = self._batches.last
        chosen = None if isinstance(self.client, ChangesOnlyClient) else self.client.chosen
        self._batches = SubscriptionBatches(self._log, described.registration())
        if last is not None:
            self._batches.resume(last, chosen)

    def take(self, sequence: int, message: Message) -> Step:
        """Process the next message. NetworkError if batches are too large or cannot be read."""
        if sequence <= self.cursor:
            return Step.TAKEN  # a repetition
        if message.space != MARKS.space:
            self._log.add(message)
            return Step.TAKEN
        mark = mark_of(message)
        if mark.part == BEGIN:
            self._log.begin(mark)
            is_news = mark.header.active > self._described.known_to
            is_mine = is_news and mark.concerns(self._described.id)
            return Step.DESCRIBE if is_mine else Step.TAKEN
        if not self._log.is_begun_by(mark):
            return Step.AGAIN
        if mark.is_base and self._batches.last is not None:
            raise compacted_away(self.position, mark.header.end)
        self._log.end()
        return Step.BATCH

    def apply(self) -> News | None:
        """The changes of the completed batch, if they are to be reported."""
        news, before = None, self.position
        for header, deliveries in self._batches.new():
            notifications = self.client.apply(deliveries)
            self.position = header.end
            if header.end > self._since:
                news = News(before, header.end, notifications)
        self.cursor = end_sequence(self._log.take())
        return news

    def rows(self) -> list[ContentRow]:
        self._described.initial.check_content(self._described.id)
        assert not isinstance(self.client, ChangesOnlyClient)
        return self.client.rows()


class _OneBatch:
    """The batch being received, as a message log for `SubscriptionBatches`."""

    def __init__(self) -> None:
        self.began: Mark | None = None
        self._messages: list[bytes] = []
        self._nbytes = 0
        self._is_whole = False

    def begin(self, mark: Mark) -> None:
        self.began, self._messages, self._nbytes, self._is_whole = mark, [], 0, False

    def is_begun_by(self, mark: Mark) -> bool:
        began = self.began
        return began is not None and (began.header, began.is_base) == (mark.header, mark.is_base)

    def add(self, message: Message) -> None:
        data = encode_message(message)
        self._nbytes += len(data)
        if self._nbytes > MAX_BATCH_BYTES:
            raise NetworkError(
                "a batch has too many messages for one subscription",
                detail=f"limit: {MAX_BATCH_BYTES:,} bytes",
            )
        self._messages.append(data)

    def end(self) -> None:
        self._is_whole = True

    def take(self) -> BatchHeader:
        assert self.began is not None
        header = self.began.header
        self.began, self._messages, self._is_whole = None, [], False
        return header

    # For `SubscriptionBatches`.

    @property
    def frontier(self) -> BatchHeader | None:
        return self.began.header if self._is_whole and self.began is not None else None

    @property
    def base(self) -> BatchHeader | None:
        return self.frontier if self.began is not None and self.began.is_base else None

    def batches(self, after: BatchHeader | None = None) -> Iterator[BatchHeader]:
        if (header := self.frontier) is not None:
            yield header

    def read(self, header: BatchHeader) -> list[bytes]:
        return self._messages
