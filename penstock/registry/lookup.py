"""Queries on the registry: the subscriptions and relations that have been applied."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.arguments import (
    MAX_OFFSET,
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
from penstock.registry.installed_operators import operators_called
from penstock.registry.leases import Lease, ran_out
from penstock.registry.records import LEASE_RAN_OUT
from penstock.registry.registry_rows import from_rows, replans_from_rows
from penstock.registry.schema import replans, set_aside, subscriptions
from penstock.registry.stored_catalog import StoredCatalog
from penstock.registry.stored_subscription import StoredSubscription, SubscriptionChanges
from penstock.spaces import Replan

MAX_NUMBERED = 1 << 24  # more than one process can keep in memory
_IDS_AT_ONCE = 500
_SOUND = "broken = '' AND suspended = ''"
_RECORDED = "id >= ? AND id < ?"
_REPLANS = f"{replans.all_rows} WHERE offset >= ? AND offset < ?"


class Lookup:
    """Safe for several threads and processes at once; each sees committed data."""

    def __init__(self, catalog: StoredCatalog, database: DerivedDatabase) -> None:
        self._catalog = catalog
        self._database = database

    def catalog(self) -> Catalog:
        """The tables and streams that have been applied. It grows as this registry catches up."""
        return self._catalog.load()

    def subscriptions(
        self, active: int | None = None, *, include_broken: bool = False
    ) -> list[StoredSubscription]:
        """Subscriptions not withdrawn, or those that were active at an offset; ordered by id."""
        wanted, values = "withdrawn_at IS NULL", list[int]()
        if active is not None:
            wanted = "id < ? AND (withdrawn_at IS NULL OR withdrawn_at >= ?)"
            values = [offset(active)] * 2
        if not flag(include_broken, "include_broken", SubscriptionError):
            wanted += f" AND {_SOUND}"
        return self._select(f"{wanted} ORDER BY id", *values)

    def _select(self, wanted: str, *values: object) -> list[StoredSubscription]:
        """The subscriptions that satisfy a condition."""
        with self._database.reading() as connection:
            found = connection.execute(f"{subscriptions.all_rows} WHERE {wanted}", values)
            return from_rows(found)

    def _column(self, query: str, *values: object) -> list[int]:
        """The result of a query with one number per row."""
        with self._database.reading() as connection:
            return [int(number) for (number,) in connection.execute(query, values)]

    def count(self, low: int = 0) -> int:
        """How many subscriptions recorded from `low` on can be used."""
        counted = "SELECT count(*) FROM subscriptions WHERE id >= ? AND withdrawn_at IS NULL"
        return self._column(f"{counted} AND {_SOUND}", offset(low))[0]

    def subscription(self, subscription: int, *, withdrawn: bool = False) -> StoredSubscription:
        """One subscription; SubscriptionError if there is none, or if it was withdrawn."""
        subscription = subscription_id(subscription)
        withdrawn = flag(withdrawn, "withdrawn", SubscriptionError)
        stored = self._find(subscription)
        if stored is None:
            raise SubscriptionError(
                f"there is no subscription {subscription}",
                hint="the id is the number that subscribing gave",
            )
        if stored.withdrawn_at is not None and not withdrawn:
            if stored.ended_by == LEASE_RAN_OUT:
                raise ran_out(subscription)
            raise SubscriptionError(
                f"subscription {subscription} was withdrawn",
                detail=f"at offset {stored.withdrawn_at}",
            )
        return stored

    def _find(self, subscription: int) -> StoredSubscription | None:
        found = self._select("id = ?", subscription)
        return found[0] if found else None

    def ticket_hash_of(self, subscription: int) -> bytes | None:
        """Also of a withdrawn subscription; None if it has no ticket or does not exist."""
        found = self._find(subscription_id(subscription))
        return None if found is None else found.ticket_hash

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
        """Withdrawn subscriptions, whatever the reason; by id."""
        return self._select("withdrawn_at IS NOT NULL ORDER BY id")

    def run_out(self, now: float, most: int) -> list[int]:
        """Some subscriptions present whose leases have run out; the longest overdue first."""
        most, now_ms = _limit(most), number(now, "a time", SubscriptionError) * 1000
        overdue = "withdrawn_at IS NULL AND expires_ms <= ? ORDER BY expires_ms LIMIT ?"
        return self._column(f"SELECT id FROM subscriptions WHERE {overdue}", now_ms, most)

    def recorded(self, low: int, high: int, most: int) -> list[StoredSubscription]:
        """The first usable ones that the records of [low, high) added, including those withdrawn
        since; ordered by id."""
        wanted = f"{_RECORDED} AND {_SOUND} ORDER BY id LIMIT ?"
        return self._select(wanted, offset(low), offset(high), _limit(most))

    def changes_only(self, low: int, high: int) -> list[StoredSubscription]:
        """Those that the records of [low, high) added without initial content; by id."""
        wanted = f"{_RECORDED} AND {_SOUND} AND initial = ? ORDER BY id"
        return self._select(wanted, offset(low), offset(high), str(Initial.NONE))

    def numbered(self, ids: Sequence[int]) -> list[StoredSubscription]:
        """The subscriptions with these ids, including those withdrawn since; ordered by id."""
        ids = subscription_ids(ids, MAX_NUMBERED)
        found: list[StoredSubscription] = []
        with self._database.reading() as connection:
            for first in range(0, len(ids), _IDS_AT_ONCE):
                some = ids[first : first + _IDS_AT_ONCE]
                wanted = f"id IN ({', '.join('?' * len(some))}) ORDER BY id"
                query = f"{subscriptions.all_rows} WHERE {wanted}"
                found += from_rows(connection.execute(query, some))
        return found

    def recorded_count(self, low: int, high: int) -> int:
        """How many subscriptions the records of [low, high) added."""
        counted = f"SELECT count(*) FROM subscriptions WHERE {_RECORDED}"
        return self._column(counted, offset(low), offset(high))[0]

    def changes_between(self, low: int, high: int, *, added: bool = True) -> SubscriptionChanges:
        """How the records of [low, high) changed the set of usable subscriptions; optionally
        without those added."""
        within = offset(low), offset(high)
        added = flag(added, "added", SubscriptionError)
        sound = f"{subscriptions.all_rows} WHERE {_SOUND}"
        fresh = f"{sound} AND {_RECORDED} ORDER BY id"
        gone = f"{sound} AND withdrawn_at >= ? AND withdrawn_at < ? ORDER BY withdrawn_at"
        with self._database.reading() as connection:
            return SubscriptionChanges(
                from_rows(connection.execute(fresh, within)) if added else [],
                from_rows(connection.execute(gone, within)),
                replans_from_rows(connection.execute(f"{_REPLANS} ORDER BY offset", within)),
            )

    def replans(self, subscription: int, low: int, high: int) -> list[Replan]:
        """The decompositions that the records of [low, high) give a subscription, in order."""
        number = subscription_id(subscription)
        wanted = f"{_REPLANS} AND subscription = ? ORDER BY offset"
        with self._database.reading() as connection:
            found = connection.execute(wanted, (offset(low), offset(high), number))
            return replans_from_rows(found)

    def records_set_aside(self, low: int = 0, high: int | None = None) -> dict[int, SetAside]:
        """The records of [low, high) that led to faults and are not processed."""
        within = offset(low), MAX_OFFSET if high is None else offset(high)
        wanted = f"{set_aside.all_rows} WHERE offset >= ? AND offset < ? ORDER BY offset"
        with self._database.reading() as connection:
            return {row[0]: SetAside(*row) for row in connection.execute(wanted, within)}

    def operators_in_use(self) -> list[str]:
        """The operators that subscriptions call, as they were declared."""
        declared = self.catalog().operators.values()
        return [one.name for one in declared if self._is_called(one.name.lower())]

    def _is_called(self, name: str) -> bool:
        """Whether a subscription calls an operator. A search in texts would find short names by
        chance."""
        catalog, last = self.catalog(), -1
        wanted = f"id > ? AND {_SOUND} AND withdrawn_at IS NULL AND instr(lower(sql), ?) > 0"
        while some := self._select(f"{wanted} ORDER BY id LIMIT {_IDS_AT_ONCE}", last, name):
            if any(name in operators_called(one.query(catalog)) for one in some):
                return True
            last = some[-1].id
        return False

    def suspended(self) -> list[int]:
        """Subscriptions that led to faults, including those withdrawn since; by id."""
        return self._column("SELECT id FROM subscriptions WHERE suspended <> '' ORDER BY id")

    def count_set_aside(self) -> int:
        return self._column("SELECT count(*) FROM set_aside")[0]


def _limit(most: object) -> int:
    return whole_number(most, "how many are wanted at most", SubscriptionError)
