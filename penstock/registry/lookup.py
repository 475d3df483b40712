"""What a registry knows: the subscriptions and relations that have been applied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, func, select

from penstock.arguments import (
    flag,
    number,
    offset,
    subscription_id,
    subscription_ids,
    whole_number,
)
from penstock.catalog import Catalog
from penstock.client import Initial
from penstock.errors import SubscriptionError
from penstock.flow.faults import SetAside
from penstock.query import Query
from penstock.registry.database import DerivedDatabase
from penstock.registry.leases import Lease, ran_out
from penstock.registry.records import LEASE_RAN_OUT
from penstock.registry.registry_rows import from_rows, replans_from_rows
from penstock.registry.schema import replans, set_aside, subscriptions
from penstock.registry.stored_catalog import StoredCatalog
from penstock.registry.stored_subscription import StoredSubscription, SubscriptionChanges
from penstock.spaces import Replan

MAX_NUMBERED = 1 << 24  # beyond what one process can keep subscriptions in memory for
_IDS_AT_ONCE = 500
_SOUND = (subscriptions.c.broken == "") & (subscriptions.c.suspended == "")


class Lookup:
    """Safe for several threads and processes at once; each sees what is committed."""

    def __init__(self, catalog: StoredCatalog, database: DerivedDatabase) -> None:
        self._catalog = catalog
        self._database = database

    def catalog(self) -> Catalog:
        """The tables and streams that have been applied. It grows as this registry catches up."""
        return self._catalog.load()

    def subscriptions(
        self, active: int | None = None, *, include_broken: bool = False
    ) -> list[StoredSubscription]:
        """Those that are not withdrawn, or those that were active at an offset; ordered by id."""
        columns = subscriptions.c
        wanted = select(subscriptions).order_by(columns.id)
        if active is None:
            wanted = wanted.where(columns.withdrawn_at.is_(None))
        else:
            active = offset(active)
            still = columns.withdrawn_at.is_(None) | (columns.withdrawn_at >= active)
            wanted = wanted.where(columns.id < active, still)
        if not flag(include_broken, "include_broken", SubscriptionError):
            wanted = wanted.where(_SOUND)
        with self._database.reading() as connection:
            return from_rows(connection.execute(wanted).all())

    def count(self, low: int = 0) -> int:
        """How many subscriptions recorded from `low` on can be used."""
        columns, low = subscriptions.c, offset(low)
        counted = select(func.count()).select_from(subscriptions).where(columns.id >= low)
        there = counted.where(columns.withdrawn_at.is_(None), _SOUND)
        with self._database.reading() as connection:
            return int(connection.execute(there).scalar_one())

    def subscription(self, subscription: int, *, withdrawn: bool = False) -> StoredSubscription:
        """One subscription; SubscriptionError if there is none, or if it was withdrawn."""
        subscription = subscription_id(subscription)
        withdrawn = flag(withdrawn, "withdrawn", SubscriptionError)
        wanted = select(subscriptions).where(subscriptions.c.id == subscription)
        with self._database.reading() as connection:
            found = from_rows(connection.execute(wanted).all())
        if not found:
            raise SubscriptionError(
                f"there is no subscription {subscription}",
                hint="the id is the number that subscribing gave",
            )
        stored = found[0]
        if stored.withdrawn_at is not None and not withdrawn:
            if stored.ended_by == LEASE_RAN_OUT:
                raise ran_out(subscription)
            raise SubscriptionError(
                f"subscription {subscription} was withdrawn",
                detail=f"at offset {stored.withdrawn_at}",
            )
        return stored

    def check_present(self, subscription: int) -> None:
        """SubscriptionError if there is no such subscription, or if it was withdrawn."""
        self.subscription(subscription)

    def lease_of(self, subscription: int) -> Lease | None:
        """The lease of a subscription that is not withdrawn."""
        return self.subscription(subscription).lease

    def query_of(self, subscription: int) -> Query:
        """The query of a subscription that is not withdrawn and can be used."""
        return self.subscription(subscription).query(self.catalog())

    def ended(self) -> list[StoredSubscription]:
        """Those that were withdrawn, for whatever reason; by id."""
        gone = select(subscriptions).where(subscriptions.c.withdrawn_at.is_not(None))
        with self._database.reading() as connection:
            return from_rows(connection.execute(gone.order_by(subscriptions.c.id)).all())

    def run_out(self, now: float, most: int) -> list[int]:
        """Some subscriptions whose leases have run out and that are still there; the longest
        overdue first."""
        columns, most = subscriptions.c, _limit(most)
        now_ms = number(now, "a time", SubscriptionError) * 1000
        there = select(columns.id).where(columns.withdrawn_at.is_(None))
        overdue = there.where(columns.expires_ms <= now_ms).order_by(columns.expires_ms)
        with self._database.reading() as connection:
            return list(connection.execute(overdue.limit(most)).scalars())

    def recorded(self, low: int, high: int, most: int) -> list[StoredSubscription]:
        """The first of those that the records of [low, high) added and that can be used, even if
        they were withdrawn since; ordered by id."""
        columns, low, high, most = subscriptions.c, offset(low), offset(high), _limit(most)
        sound = select(subscriptions).where(_SOUND)
        wanted = sound.where(columns.id >= low, columns.id < high).order_by(columns.id).limit(most)
        with self._database.reading() as connection:
            return from_rows(connection.execute(wanted).all())

    def changes_only(self, low: int, high: int) -> list[StoredSubscription]:
        """Those that the records of [low, high) added and that start with nothing; by id."""
        columns, low, high = subscriptions.c, offset(low), offset(high)
        within = select(subscriptions).where(columns.id >= low, columns.id < high)
        wanted = within.where(_SOUND, columns.initial == Initial.NONE)
        with self._database.reading() as connection:
            return from_rows(connection.execute(wanted.order_by(columns.id)).all())

    def numbered(self, ids: Sequence[int]) -> list[StoredSubscription]:
        """The subscriptions with these ids, even if they were withdrawn since; ordered by id."""
        ids = subscription_ids(ids, MAX_NUMBERED)
        found: list[StoredSubscription] = []
        with self._database.reading() as connection:
            for first in range(0, len(ids), _IDS_AT_ONCE):
                some = ids[first : first + _IDS_AT_ONCE]
                wanted = select(subscriptions).where(subscriptions.c.id.in_(some))
                found += from_rows(connection.execute(wanted.order_by(subscriptions.c.id)).all())
        return found

    def recorded_count(self, low: int, high: int) -> int:
        """How many subscriptions the records of [low, high) added."""
        columns, low, high = subscriptions.c, offset(low), offset(high)
        counted = select(func.count()).select_from(subscriptions)
        with self._database.reading() as connection:
            within = counted.where(columns.id >= low, columns.id < high)
            return int(connection.execute(within).scalar_one())

    def changes_between(self, low: int, high: int, *, added: bool = True) -> SubscriptionChanges:
        """What the records of [low, high) did to the set of subscriptions that can be used; on
        request without those that were added."""
        columns, low, high = subscriptions.c, offset(low), offset(high)
        added = flag(added, "added", SubscriptionError)
        sound = select(subscriptions).where(_SOUND)
        fresh = sound.where(columns.id >= low, columns.id < high).order_by(columns.id)
        gone = sound.where(columns.withdrawn_at >= low, columns.withdrawn_at < high)
        with self._database.reading() as connection:
            return SubscriptionChanges(
                from_rows(connection.execute(fresh).all()) if added else [],
                from_rows(connection.execute(gone.order_by(columns.withdrawn_at)).all()),
                replans_from_rows(connection.execute(_replans(low, high)).all()),
            )

    def replans(self, subscription: int, low: int, high: int) -> list[Replan]:
        """The decompositions that the records of [low, high) give a subscription, in order."""
        number = subscription_id(subscription)
        wanted = _replans(offset(low), offset(high)).where(replans.c.subscription == number)
        with self._database.reading() as connection:
            return replans_from_rows(connection.execute(wanted).all())

    def records_set_aside(self, low: int = 0, high: int | None = None) -> dict[int, SetAside]:
        """The records of [low, high) that led to faults and are not processed."""
        wanted = select(set_aside).where(set_aside.c.offset >= offset(low))
        if high is not None:
            wanted = wanted.where(set_aside.c.offset < offset(high))
        with self._database.reading() as connection:
            found = connection.execute(wanted.order_by(set_aside.c.offset)).all()
        return {row[0]: SetAside(*row) for row in found}

    def suspended(self) -> list[int]:
        """Subscriptions that led to faults, even if they were withdrawn since; by id."""
        wanted = select(subscriptions.c.id).where(subscriptions.c.suspended != "")
        with self._database.reading() as connection:
            return list(connection.execute(wanted.order_by(subscriptions.c.id)).scalars())

    def count_set_aside(self) -> int:
        with self._database.reading() as connection:
            return int(connection.exec_driver_sql("SELECT count(*) FROM set_aside").scalar_one())


def _limit(most: object) -> int:
    return whole_number(most, "how many are wanted at most", SubscriptionError)


def _replans(low: int, high: int) -> Select[Any]:
    within = select(replans).where(replans.c.offset >= low, replans.c.offset < high)
    return within.order_by(replans.c.offset)
