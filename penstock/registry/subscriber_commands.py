"""Commands of subscribers without access to the home's files, for a service to expose.

Subscribing needs no authorisation and returns a ticket; renewing and withdrawing need it.
(Publishing needs none: events are anonymous.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.client import Initial
from penstock.errors import TicketError
from penstock.registry.leases import Lease
from penstock.registry.stored_registry import Registry
from penstock.registry.stored_subscription import StoredSubscription


class SubscriberCommands:
    """Subscribe, renew and unsubscribe by ticket. Safe for several threads, like the registry.

    Tickets are given by subscription id. TicketError if one does not match: the error is the same
    whether there is no such subscription, or it has another ticket, or none, and nothing is
    changed. The owner key of the home matches every subscription.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def subscribe(
        self,
        sql: str,
        owner: str | None = None,
        *,
        payload: str | Sequence[str] = (),
        initial: str = Initial.CONTENT,
        lease_seconds: float | None = None,
    ) -> StoredSubscription:
        """Register a query; the result has its `id` and its `ticket`, which is not stored
        anywhere."""
        (made,) = self._registry.subscribe_many(
            [sql], owner, payload=payload, initial=initial, lease_seconds=lease_seconds
        )
        return made

    def renew(
        self, tickets: Mapping[int, str], lease_seconds: float | None = None
    ) -> dict[int, Lease | None]:
        """Renew all of these leases, or none; returns the new ones."""
        ids, given = _by_id(tickets)
        renewed = self._registry.renew(ids, lease_seconds, tickets=given)
        return {one.id: one.lease for one in renewed}

    def unsubscribe(self, tickets: Mapping[int, str]) -> int:
        """End all of these subscriptions, or none; returns the offset of the first WITHDRAW
        record."""
        ids, given = _by_id(tickets)
        return self._registry.withdraw_many(ids, tickets=given)


def _by_id(tickets: Mapping[int, str]) -> tuple[list[int], list[str]]:
    if not isinstance(tickets, Mapping):
        raise TicketError(f"tickets come by subscription, not as {type(tickets).__name__}")
    return list(tickets), list(tickets.values())
