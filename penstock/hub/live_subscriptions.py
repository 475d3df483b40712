"""Subscriptions that are open in this process."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from penstock.client import Delivery, Switch
from penstock.delivery.subscription import Subscription
from penstock.errors import SubscriptionError
from penstock.flow.faults import describe_fault, is_fault
from penstock.flow.index import Index
from penstock.routing import subscribers


class LiveSubscriptions:
    """Not thread-safe: for the Hub, under its lock."""

    def __init__(self) -> None:
        self._live: dict[int, Subscription] = {}

    def __getitem__(self, number: int) -> Subscription:
        return self._live[number]

    def __contains__(self, number: int) -> bool:
        return number in self._live

    def add(self, subscription: Subscription) -> None:
        self._live[subscription.id] = subscription

    def end(self, number: int, why: SubscriptionError) -> None:
        """No more messages will arrive for it, if it is live."""
        live = self._live.pop(number, None)
        if live is not None:
            live.end(why)

    def address(self, deliveries: Iterable[Delivery], index: Index) -> dict[int, list[Delivery]]:
        """The deliveries by live subscription, as of now."""
        addressed: defaultdict[int, list[Delivery]] = defaultdict(list)
        for one in deliveries:
            if isinstance(one, Switch):
                numbers = {one.subscription}
            else:
                numbers = subscribers(one, index.space(one.space))
            for number in numbers & self._live.keys():
                addressed[number].append(one)
        return addressed

    def deliver(self, addressed: dict[int, list[Delivery]]) -> None:
        """A content that cannot be built ends only its own subscription."""
        for number, received in addressed.items():
            if number not in self._live:
                continue
            try:
                self._live[number].deliver(received)
            except Exception as error:
                if not is_fault(error):
                    raise
                why = f"the content of subscription {number} cannot be built"
                self.end(number, SubscriptionError(why, detail=describe_fault(error)))
