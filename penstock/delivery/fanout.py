"""Reading many subscriptions at once: every message is decoded once and routed by its region."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from penstock.client import (
    BEGINNING,
    ChangesOnlyClient,
    Content,
    Delivery,
    Initial,
    Notification,
    Switch,
    client_of,
)
from penstock.delivery.batches import active_before, as_read, switches_in
from penstock.messages import Message, decode_message
from penstock.routing.table import RoutingTable
from penstock.spaces import Replan, place
from penstock.storage import BatchHeader, Home

if TYPE_CHECKING:
    from penstock.registry import StoredSubscription

_T = TypeVar("_T")

OnRoute: TypeAlias = Callable[[int, int], None]
"""Called for every message with its size in bytes and the number of subscriptions that get it."""


class Cut(NamedTuple):
    """The changes of one batch for all subscriptions: afterwards they are all at the same
    cursor."""

    since: int
    cursor: int
    notifications: dict[int, list[Notification]]
    """By subscription; those without any are left out."""


class FanOut:
    """The subscriptions of a home, or some of them, with one cursor for all.

    Takes no lock. A subscription is added with the batch that makes it active, and removed with the
    one that covers its withdrawal. Contents are built from the beginning; cuts before the cursor
    are applied but not reported. Not thread-safe.
    """

    def __init__(
        self,
        home: Home,
        cursor: int = BEGINNING,
        *,
        only: Collection[int] | None = None,
        on_route: OnRoute | None = None,
    ) -> None:
        from penstock.registry import Registry, SubscriptionChanges

        self._home = home
        self._only = only
        self._on_route = on_route
        self._since = cursor
        self._registry = Registry(home)
        self._table = RoutingTable(self._registry.catalog())
        self._asked_to = 0
        self._coming = SubscriptionChanges([], [], [])  # not active in any batch yet
        self._last: BatchHeader | None = None
        self.clients: dict[int, Content | ChangesOnlyClient] = {}
        """The active subscriptions."""

    @property
    def cursor(self) -> int:
        """The end of the last applied batch."""
        return BEGINNING if self._last is None else self._last.end

    @property
    def contents(self) -> dict[int, Content]:
        """The active subscriptions with a content."""
        return {n: one for n, one in self.clients.items() if isinstance(one, Content)}

    def new(self, last: BatchHeader | None = None) -> Iterator[Cut]:
        """The changes of the batches since the last call, one by one; up to the batch `last`."""
        for header in self._home.messages.batches(self._last):
            if last is not None and header > last:
                return
            before, switches = self.cursor, self._follow(header)
            changed = {
                number: notifications
                for number, received in self._route(header, switches).items()
                if (notifications := self.clients[number].apply(received))
            }
            self._last = header
            if header.end > self._since:
                yield Cut(before, header.end, changed)

    def _follow(self, header: BatchHeader) -> list[Switch]:
        """Add and remove clients as a batch makes records active; returns its switches."""
        self._ask(header)
        coming = self._coming
        for added in _take(coming.added, lambda one: one.id < active_before(header, one.initial)):
            self._add(added)
        for gone in _take(coming.withdrawn, lambda one: (one.withdrawn_at or 0) < header.active):
            self._table.remove(gone.id)
            self.clients.pop(gone.id, None)
        replans: dict[int, list[Replan]] = {}
        for replan in _take(coming.replanned, lambda one: one.offset < header.active):
            if replan.subscription in self.clients:
                replans.setdefault(replan.subscription, []).append(replan)
        return [switch for mine in replans.values() for switch in switches_in(header, mine)]

    def _ask(self, header: BatchHeader) -> None:
        """Query all changes up to the end of the message log at once: every batch of a Hub makes
        later records active, and one query per batch would be slow."""
        high = max(header.active, header.end)
        if high <= self._asked_to:
            return
        frontier = self._home.messages.frontier
        if frontier is not None:
            high = max(high, frontier.active, frontier.end)
        self._registry.catch_up(high)
        found = self._registry.changes_between(self._asked_to, high)
        self._coming.added.extend(found.added)
        self._coming.withdrawn.extend(found.withdrawn)
        self._coming.replanned.extend(found.replanned)
        self._asked_to = high

    def _add(self, stored: StoredSubscription) -> None:
        number, chosen = stored.id, stored.decomposition
        if self._only is not None and number not in self._only:
            return
        query = stored.query(self._registry.catalog())
        changes_only = stored.initial is Initial.NONE
        self._table.put(number, place(query, number, chosen, changes_only=changes_only))
        self.clients[number] = client_of(number, query, chosen, stored.initial)

    def _route(self, header: BatchHeader, switches: list[Switch]) -> dict[int, list[Delivery]]:
        """The messages and switches of a batch by subscription, in the order of positions."""
        routed: dict[int, list[Delivery]] = {}
        is_base = header == self._home.messages.base
        ordered: list[tuple[Delivery, int]] = [(switch, 0) for switch in switches]
        ordered += [
            (as_read(decode_message(data), is_base=is_base), len(data))
            for data in self._home.messages.read(header)
        ]
        for one, size in sorted(ordered, key=lambda pair: pair[0].position):
            numbers = self._recipients(one)
            for number in numbers:
                routed.setdefault(number, []).append(one)
            if self._on_route is not None and isinstance(one, Message):
                self._on_route(size, len(numbers))
        return routed

    def _recipients(self, one: Delivery) -> set[int]:
        """In a Hub's batch, which may hold the record of a subscription, only messages from that
        record on are meant for it."""
        if isinstance(one, Switch):
            query = self.clients[one.subscription].query
            self._table.put(one.subscription, place(query, one.subscription, one.decomposition))
            return {one.subscription}
        found = self._table.subscribers(one) & self.clients.keys()
        return {number for number in found if number <= one.position.offset}


def _take(coming: list[_T], is_due: Callable[[_T], bool]) -> list[_T]:
    """Remove and return the due ones from a list."""
    taken = [one for one in coming if is_due(one)]
    if taken:
        coming[:] = [one for one in coming if not is_due(one)]
    return taken
