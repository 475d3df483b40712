"""Reads the notifications of one subscription from the message log, from any cursor on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.arguments import whole_number
from penstock.client import BEGINNING, ChangesOnlyClient, Content, ContentRow, Initial, News
from penstock.delivery.batches import SubscriptionBatches
from penstock.delivery.registration import Registration, registered
from penstock.delivery.saved_contents import SavedContents
from penstock.errors import CompactedError, HomeError
from penstock.storage import AnyHome, BatchLog, Home, compacted_away

END = 1 << 62
"""Greater than all offsets."""


@dataclass(frozen=True, slots=True)
class ReadProgress:
    """How far a home has been processed, as one subscription sees it."""

    processed: int
    log_end: int
    active: bool
    """Whether a batch has made the subscription active: before that, its content is empty."""

    @property
    def waiting(self) -> int:
        """Records of the log that no batch has processed yet."""
        return self.log_end - self.processed

    @property
    def complete(self) -> bool:
        return self.active and not self.waiting


_READINGS = 10
"""Each reading fails only if another compaction finishes meanwhile, which takes longer."""


class SubscriptionReader:
    """The notifications and the content of one subscription, batch by batch.

    Takes no lock: any number of readers may follow a home while a Hub or a pipeline processes it.
    The content is always built from the beginning or from a saved content; batches before the
    cursor are applied but not reported. A cursor inside a batch means the start of that batch: some
    notifications are repeated, with the same ids. Not thread-safe.
    """

    def __init__(
        self,
        home: AnyHome,
        subscription: int | Registration,
        cursor: int | None = None,
        *,
        skip_to: int | None = None,
    ) -> None:
        """`cursor` None: from the beginning, or from the base of a compacted home. Changes before
        `skip_to` (by default the cursor) need not be reported, so that reading may start from a
        saved content."""
        self._home = home
        if isinstance(subscription, Registration):
            self.registration, self._registry = subscription, None
        else:
            from penstock.registry import Registry

            # Open as long as the reader: replans are looked up as they become active.
            self._registry = Registry(home)
            stored = self._registry.subscription(subscription)
            self.registration = registered(self._registry, stored)
        self.client = self.registration.new_client()
        self.batches = SubscriptionBatches(home.messages, self.registration)
        self.cursor = BEGINNING
        """The end of the last applied batch."""
        self._processed = 0
        self._since = BEGINNING if cursor is None else _known_cursor(cursor, home.messages)
        if cursor is not None and self._compacted_to() > self._since:
            raise self._compacted()
        self._resume(self._since if skip_to is None else skip_to)

    @property
    def active(self) -> bool:
        """Whether a batch that was read has made the subscription active."""
        return self.batches.last is not None

    @property
    def lost_before(self) -> int:
        """Changes before this offset can no longer be reported; 0 if all can."""
        return 0 if self._since else self._compacted_to()

    def new(self) -> Iterator[News]:
        """The changes of the batches published since the last call, one by one."""
        # Read first: a batch published while we read may or may not be applied this time.
        frontier = self._home.messages.frontier
        for header, deliveries in self.batches.new():
            notifications = self.client.apply(deliveries)
            before, self.cursor = self.cursor, header.end
            if header.end > self._since:
                yield News(before, self.cursor, notifications)
        self._processed = max(0 if frontier is None else frontier.end, self.cursor)

    def catch_up(self) -> None:
        """Apply the batches published since the last call, when only the content is wanted; saves
        the content if that was much work.

        If a compaction finishes during reading, reading starts again: the content is the same.
        """
        for _ in range(_READINGS):
            try:
                return self._catch_up()
            except CompactedError:
                self.client = self.registration.new_client()
                self.batches = SubscriptionBatches(self._home.messages, self.registration)
                self.cursor = BEGINNING
        return self._catch_up()

    def _catch_up(self) -> None:
        frontier = self._home.messages.frontier
        for header, deliveries in self.batches.new():
            if isinstance(self.client, ChangesOnlyClient):
                self.client.apply(deliveries)
            else:
                self.client.absorb(deliveries)
            self.cursor = header.end
        self._processed = max(0 if frontier is None else frontier.end, self.cursor)
        if isinstance(self._home, Home):
            SavedContents(self._home).save_if_worth_it(self.client, self.batches)

    def rows(self) -> list[ContentRow]:
        """The content at the cursor. SubscriptionError if the subscription has none, because it
        gets changes only."""
        self.registration.initial.check_content(self.registration.id)
        assert not isinstance(self.client, ChangesOnlyClient)
        return self.client.rows()

    def progress(self) -> ReadProgress:
        """How far the home was processed when it was last read."""
        return ReadProgress(self._processed, self._home.log.end, active=self.active)

    def check_reachable(self, offset: int) -> None:
        """HomeError if changes from an offset on can no longer be reported."""
        base = self._home.messages.base
        if base is not None and self.registration.id < base.active and 0 < offset < base.end:
            raise compacted_away(offset, base.end)

    def check_registered(self) -> None:
        """SubscriptionError if the subscription has been withdrawn in the meantime."""
        if self._registry is not None:
            self._registry.catch_up()
            self._registry.subscription(self.registration.id)

    def _resume(self, limit: int) -> None:
        if not isinstance(self._home, Home) or not isinstance(self.client, Content):
            return
        found = SavedContents(self._home).load(self.registration, before=limit)
        if found is not None:
            self.client, self.cursor = found.content, found.last.end
            self.batches.resume(found.last, found.content.chosen)

    def _compacted_to(self) -> int:
        """A subscription with content, read from the beginning, starts with the content of the
        base; one with changes only has missed those that the base replaces."""
        base = self._home.messages.base
        if base is None or not self.batches.is_active_in(base):
            return 0
        if self.registration.initial is Initial.CONTENT and self._since == BEGINNING:
            return 0
        return base.end

    def _compacted(self) -> HomeError:
        error = compacted_away(self._since, self._compacted_to())
        if self.registration.initial is not Initial.CONTENT:
            error.hint = f"go on from what is still there: cursor {self._compacted_to()}"
        return error


def _known_cursor(cursor: object, batches: BatchLog) -> int:
    cursor = whole_number(cursor, "a cursor", HomeError)
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
