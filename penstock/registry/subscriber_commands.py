"""What subscribers may ask for who have no access to the home's files: for a service to hand on.

Subscribing needs nothing and returns a ticket; renewing and withdrawing need it. (Publishing needs
none: events are anonymous.)
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

    Tickets come by the ids of their subscriptions. TicketError if one does not fit: it is the same
    whether there is no such subscription, or it has another ticket, or none, and nothing is done.
    The owner key of the home fits every subscription.
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
        """Register a query; its `id` and its `ticket`, which is kept nowhere."""
        (made,) = self._registry.subscribe_many(
            [sql], owner, payload=payload, initial=initial, lease_seconds=lease_seconds
        )
        return made

    def renew(
        self, tickets: Mapping[int, str], lease_seconds: float | None = None
    ) -> dict[int, Lease | None]:
        """Begin all of these leases again, or none; those that there are then."""
        ids, given = _by_id(tickets)
        renewed = self._registry.renew(ids, lease_seconds, tickets=given)
        return {one.id: one.lease for one in renewed}

    def unsubscribe(self, tickets: Mapping[int, str]) -> int:
        """End all of these subscriptions, or none; the offset of the first record that says so."""
        ids, given = _by_id(tickets)
        return self._registry.withdraw_many(ids, tickets=given)


def _by_id(tickets: Mapping[int, str]) -> tuple[list[int], list[str]]:
    if not isinstance(tickets, Mapping):
        raise TicketError(f"tickets come by subscription, not as {type(tickets).__name__}")
    return list(tickets), list(tickets.values())
