"""A subscription in the process of its Hub: the content and the pending notifications."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from functools import partial

from penstock.client import (
    ChangesOnlyClient,
    Content,
    ContentRow,
    Delivery,
    Initial,
    Notification,
    client_of,
)
from penstock.client.sizes import delivery_bytes, notification_bytes
from penstock.delivery.batches import SubscriptionBatches
from penstock.delivery.registration import Registration
from penstock.delivery.saved_contents import SavedContents
from penstock.errors import SubscriptionError
from penstock.query import Query
from penstock.spaces import Decomposition
from penstock.storage import BatchHeader, BatchLog, Home

MAX_INBOX_MESSAGES = 256
"""Messages are applied to the content lazily: on access, or when this many have arrived."""
MAX_INBOX_BYTES = 1 << 20  # or when they take about 1 MiB
MAX_PENDING_NOTIFICATIONS = 100_000
MAX_PENDING_BYTES = 256 << 20
"""256 MiB: rows before and after all changes of the largest append to the log (128 MiB)."""


class Subscription:
    """One standing query: its current content, and the changes since the last call.

    Made by `Hub.subscribe`. Safe to use from several threads, like the Hub itself.
    """

    def __init__(
        self,
        subscription_id: int,
        query: Query,
        lock: threading.RLock,
        chosen: Decomposition | None = None,
        initial: Initial = Initial.CONTENT,
        *,
        ticket: str | None = None,
        saved: Content | None = None,
        earlier: Callable[[], list[Notification]] | None = None,
    ) -> None:
        """`ticket`: set if it was just made. `saved`: the content to continue from; `earlier`
        returns the notifications that led to it, on request."""
        self.id = subscription_id
        self.ticket = ticket
        self.query = query
        self._initial = initial
        self._client = saved or client_of(subscription_id, query, chosen, initial)
        self._earlier = earlier
        self._lock = lock
        self._inbox: list[Delivery] = []
        self._inbox_bytes = 0
        self._pending: deque[Notification] = deque()
        self._pending_bytes = 0
        self._missed = ""  # what exceeded the limit, if notifications were dropped
        self._ended: SubscriptionError | None = None

    @property
    def sql(self) -> str:
        return self.query.sql

    @property
    def warnings(self) -> tuple[str, ...]:
        """Oddities of the query, for instance that it can never match."""
        return self.query.warnings

    def __repr__(self) -> str:
        return f"Subscription({self.id}, {self.sql!r})"

    def content(self) -> list[ContentRow]:
        """The current result of the query, with the columns named as in the SELECT.

        SubscriptionError if it was made with `initial="none"`: it has notifications only.
        """
        with self._lock:
            self._take_in()
            self._initial.check_content(self.id)
            assert not isinstance(self._client, ChangesOnlyClient)
            return self._client.rows()

    def notifications(self) -> list[Notification]:
        """The changes since the last call; at first, since the content was empty.

        With `initial="none"`, at first: since it was made.
        """
        with self._lock:
            self._take_in()
            self._take_in_earlier()
            if self._missed:
                too_much, self._missed = self._missed, ""
                raise SubscriptionError(
                    f"subscription {self.id} missed notifications",
                    detail=f"more than {too_much} were waiting",
                    hint="start again from content(); the next call returns what changes from now",
                )
            taken = list(self._pending)
            self._forget_pending()
            return taken

    def deliver(self, deliveries: list[Delivery]) -> None:
        """Accept messages in the order of their positions. For the Hub."""
        self._inbox += deliveries
        self._inbox_bytes += sum(map(delivery_bytes, deliveries))
        if len(self._inbox) > MAX_INBOX_MESSAGES or self._inbox_bytes > MAX_INBOX_BYTES:
            self._take_in()

    def end(self, why: SubscriptionError) -> None:
        """No more messages will arrive. For the Hub."""
        self._ended = why

    def settled(self) -> Content | ChangesOnlyClient:
        """The client, with all messages applied. For the Hub."""
        self._take_in()
        return self._client

    def _take_in_earlier(self) -> None:
        if self._earlier is not None:
            earlier, self._earlier = self._earlier(), None
            self._pending.extendleft(reversed(earlier))
            self._keep_pending_within_limits()

    def _take_in(self) -> None:
        if self._ended is not None:
            raise self._ended
        if not self._inbox:
            return
        self._inbox.sort(key=lambda one: one.position)
        changed = self._client.apply(self._inbox)
        self._inbox, self._inbox_bytes = [], 0
        if self._missed:
            return  # the next call of notifications() reports it
        self._pending.extend(changed)
        self._pending_bytes += sum(map(notification_bytes, changed))
        self._keep_pending_within_limits()

    def _keep_pending_within_limits(self) -> None:
        if len(self._pending) > MAX_PENDING_NOTIFICATIONS:
            self._missed = f"{MAX_PENDING_NOTIFICATIONS:,}"
        elif self._pending_bytes > MAX_PENDING_BYTES:
            self._missed = f"{MAX_PENDING_BYTES:,} bytes"
        if self._missed:
            self._forget_pending()

    def _forget_pending(self) -> None:
        self._pending.clear()
        self._pending_bytes = 0


def reopen_subscription(
    home: Home, registration: Registration, lock: threading.RLock
) -> Subscription:
    """A subscription made before its Hub was opened: built from its saved content, if there is one,
    and the messages since."""
    number, query = registration.id, registration.query
    chosen, initial = registration.decomposition, registration.initial
    batches, saved = SubscriptionBatches(home.messages, registration), SavedContents(home)
    found = None if initial is Initial.NONE else saved.load(registration)
    if found is None:
        live = Subscription(number, query, lock, chosen, initial)
    else:
        batches.resume(found.last, found.content.chosen)
        earlier = partial(_notifications_to, home.messages, registration, found.last)
        live = Subscription(
            number, query, lock, chosen, initial, saved=found.content, earlier=earlier
        )
    for _, deliveries in batches.new():
        live.deliver(deliveries)
    saved.save_if_worth_it(live.settled(), batches)
    return live


def _notifications_to(
    messages: BatchLog, registration: Registration, last: BatchHeader
) -> list[Notification]:
    """The notifications of a subscription up to the end of a batch, or one batch more than it may
    keep pending."""
    client = registration.new_client()
    notifications: list[Notification] = []
    for header, deliveries in SubscriptionBatches(messages, registration).new():
        notifications += client.apply(deliveries)
        if header == last or len(notifications) > MAX_PENDING_NOTIFICATIONS:
            break
    return notifications
