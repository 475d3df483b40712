"""A subscription as the registry stores it."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from penstock.catalog import Catalog
from penstock.client import Initial
from penstock.errors import CorruptionError, SubscriptionError
from penstock.flow.faults import SetAside
from penstock.query import Query
from penstock.registry.damage import rebuild_hint
from penstock.registry.leases import Lease
from penstock.registry.plans import decode_plan
from penstock.registry.records import Subscribed
from penstock.spaces import Decomposition, Replan


@dataclass(frozen=True, slots=True)
class StoredSubscription:
    """One registered SELECT. Its id is the offset of its record in the log.

    `broken` says why a subscription of an older release no longer binds, `suspended` which fault it
    led to; it is then kept, without messages, until it is withdrawn. `decomposition` is the initial
    one; None stands for the plain rule. `lease` is the current one; `ended_by` says why it was
    withdrawn. `ticket` is set only in the result of subscribing.
    """

    id: int
    sql: str
    owner: str | None
    withdrawn_at: int | None
    plan: bytes
    broken: str
    decomposition: Decomposition | None = None
    initial: Initial = Initial.CONTENT
    lease: Lease | None = None
    ended_by: str = ""
    suspended: str = ""
    ticket_hash: bytes | None = field(default=None, repr=False)
    ticket: str | None = field(default=None, repr=False, compare=False)

    @property
    def said(self) -> Subscribed:
        """The content of its record, with the current lease."""
        return Subscribed(
            self.sql, self.owner, self.decomposition, self.initial, self.lease, self.ticket_hash
        )

    def query(self, catalog: Catalog) -> Query:
        if self.suspended:
            raise suspended(SetAside(self.id, self.suspended))
        if self.broken:
            raise SubscriptionError(
                f"subscription {self.id} cannot be used by this release",
                detail=self.broken,
                hint="withdraw it and subscribe again",
            )
        try:
            return decode_plan(self.plan, catalog)
        except (LookupError, TypeError, ValueError, msgspec.MsgspecError) as error:
            raise CorruptionError(
                f"catalog.db is damaged: it does not have what subscription {self.id} reads",
                detail=f"{type(error).__name__}: {error}; it is derived, so nothing is lost",
                hint=rebuild_hint(),
            ) from error


def suspended(why: SetAside) -> SubscriptionError:
    """The error for a subscription that led to a fault, and gets no more messages."""
    return SubscriptionError(
        f"subscription {why.offset} is suspended",
        detail=f"processing it failed: {why.primary}",
        hint="a release without this fault can subscribe it again: "
        f"penstock quarantine HOME replay {why.offset}",
    )


@dataclass(frozen=True, slots=True)
class SubscriptionChanges:
    """The changes of the set of subscriptions in a range of the log.

    A subscription that was added and withdrawn within the range is in both lists. Replans are in
    the order of the log.
    """

    added: list[StoredSubscription]
    withdrawn: list[StoredSubscription]
    replanned: list[Replan]
