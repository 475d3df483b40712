"""The registry: tables, streams and subscriptions of a home, derived from its log.

The log is the truth. Every change is validated, appended to the log, and then applied to the
databases; after a crash in between, the next catch-up repairs them. Only valid records are
appended, so applying them cannot fail, except for those of another release.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from sqlite3 import Connection
from typing import TYPE_CHECKING, TypeVar

from penstock.arguments import listed, offset, shown, subscription_ids
from penstock.catalog import Catalog
from penstock.client import Initial
from penstock.errors import CorruptionError, SubscriptionError
from penstock.flow.faults import SetAside
from penstock.query import calls_operators
from penstock.registry import commands
from penstock.registry.commands import MAX_SUBSCRIPTIONS_AT_ONCE, Candidate, Command
from penstock.registry.database import DerivedDatabase, remove_database
from penstock.registry.decomposition_choice import Chooser
from penstock.registry.installed_operators import declaring_installed
from penstock.registry.leases import Clock, read_clock
from penstock.registry.log_changes import LogChanges, read_changes
from penstock.registry.lookup import Lookup
from penstock.registry.plans import decode_plan
from penstock.registry.registry_rows import (
    Binder,
    replan_row,
    row_of,
    set_aside_row,
    stored_as,
)
from penstock.registry.schema import CATALOG, REGISTRY, replans, set_aside, subscriptions
from penstock.registry.stored_catalog import StoredCatalog
from penstock.registry.stored_subscription import StoredSubscription
from penstock.registry.tickets import OWNER, Owner, Tickets
from penstock.spaces import Decomposition
from penstock.storage import AnyHome, Home, Tail, set_aside_entry

_Result = TypeVar("_Result")

if TYPE_CHECKING:
    from penstock.sql import ShapeBinder

_RENEW = "UPDATE subscriptions SET lease_seconds = ?, expires_ms = ? WHERE id = ?"
_END = "UPDATE subscriptions SET withdrawn_at = ?, ended_by = ? WHERE id = ?"
_SUSPEND = "UPDATE subscriptions SET suspended = ? WHERE id = ?"


# Many methods: one for each operation on subscriptions, most of them a few lines.
class Registry(Lookup):
    """Safe for several threads and processes at once; each sees committed data.

    Opening catches up with the log. A process that only follows another one, such as a worker of
    the pipeline, passes `catch_up=False` and reads what that one has applied. `clock` determines
    when leases begin and whether they have run out.
    """

    def __init__(self, home: AnyHome, *, catch_up: bool = True, clock: Clock = time.time) -> None:
        self._home = home
        self._log = home.log
        self._clock = clock
        self._of_thread = threading.local()
        self._tickets = Tickets(home, self.ticket_hash_of)
        super().__init__(
            StoredCatalog(home.catalog_db, shared=home.shared),
            DerivedDatabase(home.registry_db, REGISTRY, shared=home.shared),
        )
        if catch_up:
            self.catch_up()

    def close(self) -> None:
        self._catalog.database.close()
        self._database.close()

    def __enter__(self) -> Registry:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    # -- following the log ------------------------------------------------------------------------

    @property
    def applied(self) -> int:
        """Every record before this offset has been applied."""
        with self._database.reading() as connection:
            return self._database.applied(connection)

    def catch_up(self, to: int | None = None) -> None:
        """Apply the records before `to`, or all, unless another process already has."""
        self._catch_up(self._log.end if to is None else offset(to), None)

    def _catch_up(self, to: int, binder: Binder | None) -> None:
        if self._must_apply(self._catalog.database, to):
            with self._catalog.database.writing() as connection:
                self._catalog.apply(connection, self._log, to)
        while self._must_apply(self._database, to):
            # Binding takes long, so it is done before the lock is taken. If another process has
            # applied some of it meanwhile, `_write` skips that.
            changes = read_changes(self._log, self.applied, to, binder or self._binder())
            with self._database.writing() as connection:
                self._write(connection, changes, to)

    def _binder(self) -> Binder:
        """For one call. Learned statement shapes are kept for the next call: relations are only
        ever added, so bindings stay valid."""
        self.catalog()  # always the same object, now up to date
        return Binder(self._shapes)

    def _shapes(self) -> ShapeBinder:
        """Lazy: most catch-ups find no statement, and need no parser."""
        shapes: ShapeBinder | None = getattr(self._of_thread, "shapes", None)
        if shapes is None:
            from penstock.sql import ShapeBinder

            shapes = self._of_thread.shapes = ShapeBinder(self.catalog())
        return shapes

    def _must_apply(self, database: DerivedDatabase, to: int) -> bool:
        with database.reading() as connection:
            applied = database.applied(connection)
        if applied > to and applied > self._log.end:
            raise database.ahead_of(self._log, applied)
        return applied < to

    def _write(self, connection: Connection, changes: LogChanges, to: int) -> None:
        applied = self._database.applied(connection)
        if applied >= to or applied < changes.start:  # a rebuilt file starts over
            return
        added = (row_of(stored) for stored in changes.added if stored.id >= applied)
        subscriptions.insert(connection, added)
        moved = (replan_row(replan) for replan in changes.replanned if replan.offset >= applied)
        replans.insert(connection, moved)
        leases = ((*one, number) for at, number, one in changes.leases if at >= applied)
        connection.executemany(_RENEW, leases)
        ended = ((at, gone.reason, gone.id) for at, gone in changes.ended if at >= applied)
        connection.executemany(_END, ended)
        aside = {one.offset: one for at, one in changes.aside if at >= applied}
        if aside:
            self._put_aside(connection, list(aside.values()))
        self._database.set_applied(connection, to)

    def _put_aside(self, connection: Connection, aside: list[SetAside]) -> None:
        """A record may be set aside twice, by independent processes."""
        offsets = [(one.offset,) for one in aside]
        connection.executemany("DELETE FROM set_aside WHERE offset = ?", offsets)
        set_aside.insert(connection, map(set_aside_row, aside))
        suspended = ((one.primary, one.offset) for one in aside)
        connection.executemany(_SUSPEND, suspended)  # does not affect other records
        connection.executemany("DELETE FROM replans WHERE offset = ?", offsets)

    # -- changing ---------------------------------------------------------------------------------

    def define(self, sql: str) -> int:
        """Declare a table, a stream or an operator; the offset of its record."""
        command = commands.define(sql)
        with self._log.appending() as tail:
            self.catch_up(tail.end)
            self.catalog().check_new(command.result)
            first = tail.append(command.entries)
        self.catch_up(first + 1)
        return first

    def subscribe(
        self,
        sql: str,
        owner: str | None = None,
        *,
        chosen: Decomposition | None = None,
        initial: str = Initial.CONTENT,
        lease_seconds: float | None = None,
    ) -> StoredSubscription:
        """Register a query with the decomposition chosen for it.

        `initial` is "content", or "none" for changes only. With a lease the subscription ends
        unless it is renewed; None is the default of the home, infinity no lease. The result has the
        ticket, which is not stored anywhere.
        """
        return self._subscribe([sql], owner, chosen, initial, lease_seconds)[0]

    def subscribe_many(
        self,
        statements: Sequence[str],
        owner: str | None = None,
        *,
        payload: str | Sequence[str] = (),
        initial: str = Initial.CONTENT,
        lease_seconds: float | None = None,
    ) -> list[StoredSubscription]:
        """Register all of these queries, or none: the error is that of the first refused one.
        `payload` names bulky columns of queries over one table, which are sent apart from their
        rows."""
        texts = listed(
            statements, "the statements", SubscriptionError, most=MAX_SUBSCRIPTIONS_AT_ONCE
        )
        return self._subscribe(texts, owner, None, initial, lease_seconds, payload)

    def _subscribe(
        self,
        given: Sequence[object],
        owner: str | None,
        chosen: Decomposition | None,
        initial: str,
        lease_seconds: float | None,
        payload: str | Sequence[str] = (),
        tickets: Sequence[tuple[str | None, bytes | None]] | None = None,
    ) -> list[StoredSubscription]:
        statements = commands.check_statements(given, payload)
        self.catch_up()
        # Relations are only ever added, so what binds now binds at every later offset, and binding
        # need not hold the append lock.
        catalog = self.catalog()
        binder = self._binder()
        plans = declaring_installed(lambda: binder.plans(statements), self.define)
        if catalog.operators:
            self._check_constants(plans, catalog)
        chooser = Chooser(self._home, catalog)
        candidates = [
            Candidate(sql, partial(decode_plan, plan, catalog), partial(chooser.choose, plan))
            for sql, plan in zip(statements, plans, strict=True)
        ]
        default = self._home.default_lease_seconds
        terms = commands.make_terms(owner, chosen, initial, lease_seconds, self._now(), default)
        issued = self._tickets.issue(len(statements)) if tickets is None else tickets
        command = commands.subscribe(candidates, terms, (one for _, one in issued))
        first = self._log.append(command.entries)
        self._catch_up(first + len(plans), binder)
        made = enumerate(zip(command.result, plans, issued, strict=True), first)
        return [
            stored_as(number, one, plan, ticket=ticket) for number, (one, plan, (ticket, _)) in made
        ]

    def _check_constants(self, plans: Iterable[bytes], catalog: Catalog) -> None:
        """OperatorError if a query calls an operator with constants that it does not accept."""
        queries = (decode_plan(one, catalog) for one in set(plans))
        asking = [one for one in queries if calls_operators(one)]
        if asking:
            from penstock.registry.operator_runtime import HomeOperators

            operators = HomeOperators(self.catalog)
            for query in asking:
                operators.check_constants(query)
            operators.close()

    def replan(self, chosen: Mapping[int, Decomposition]) -> None:
        """Change the decompositions of subscriptions; those withdrawn by now are left out."""
        if not isinstance(chosen, Mapping):
            raise SubscriptionError(f"decompositions come by subscription, not {shown(chosen)}")
        with self._log.appending() as tail:
            self.catch_up(tail.end)
            stored = {one: self.subscription(one, withdrawn=True) for one in chosen}
            there = {n: chosen[n] for n, one in stored.items() if one.withdrawn_at is None}
            end = _append(tail, commands.replan(self, there))
        self.catch_up(end)

    def withdraw(self, subscription: int) -> int:
        """End a subscription; returns the offset of its WITHDRAW record."""
        return self.withdraw_many([subscription])

    def withdraw_many(self, ids: Sequence[int], *, tickets: Sequence[str] | Owner = OWNER) -> int:
        """End all of these subscriptions, or none; returns the offset of the first WITHDRAW record.
        TicketError if tickets are given and do not match."""
        ids = subscription_ids(ids, MAX_SUBSCRIPTIONS_AT_ONCE)
        with self._log.appending() as tail:
            self.catch_up(tail.end)
            self._tickets.check(ids, tickets)
            first = tail.end
            end = _append(tail, commands.unsubscribe(self, ids))
        self.catch_up(end)
        return first

    def renew(
        self,
        ids: Sequence[int],
        lease_seconds: float | None = None,
        *,
        tickets: Sequence[str] | Owner = OWNER,
    ) -> list[StoredSubscription]:
        """Renew the leases of all of these subscriptions, or of none: for the given duration, or
        the same as before. A lease never ends earlier, unless a shorter duration is requested. A
        lease that has run out can be renewed until the subscription is withdrawn for it.
        TicketError if tickets are given and do not match."""
        ids = subscription_ids(ids, MAX_SUBSCRIPTIONS_AT_ONCE)
        with self._log.appending() as tail:
            self.catch_up(tail.end)
            self._tickets.check(ids, tickets)
            end = _append(tail, commands.renew(self, ids, lease_seconds, self._now()))
        self.catch_up(end)
        return [self.subscription(number, withdrawn=True) for number in ids]

    def expire(self) -> list[int]:
        """Withdraw subscriptions whose leases have run out; for the process that processes the
        home.

        Call it after catching up, and again for the rest if there were very many.
        """
        if not self.run_out(self._now(), 1):
            return []
        with self._log.appending() as tail:
            self.catch_up(tail.end)  # a renewal may just have been recorded
            command = commands.expire(self, self._now())
            end = _append(tail, command)
        self.catch_up(end)
        return command.result

    def resubscribe(self, subscription: int) -> StoredSubscription:
        """Subscribe again what is suspended, or lacks rows on which operators failed: under a new
        id, with the same ticket and lease; the old one is withdrawn."""
        stored = self.subscription(subscription)
        if not stored.suspended and not self._lacks_rows(stored.id):
            raise SubscriptionError(
                f"subscription {subscription} is not suspended, and no operator failed on its rows",
                detail="there is nothing to replay",
            )
        lease_seconds = math.inf if stored.lease is None else stored.lease.seconds
        (again,) = self._subscribe(
            [stored.sql],
            stored.owner,
            stored.decomposition,
            stored.initial,
            lease_seconds,
            tickets=[(None, stored.ticket_hash)],
        )
        self.withdraw(subscription)
        return again

    def _lacks_rows(self, subscription: int) -> bool:
        from penstock.registry.left_out import rows_left_out

        return isinstance(self._home, Home) and subscription in rows_left_out(self._home.path, self)

    def set_aside(self, found: Sequence[SetAside]) -> None:
        """Record in the log that these records are not processed, unless that is recorded
        already."""
        what, most = "the records to set aside", MAX_SUBSCRIPTIONS_AT_ONCE
        entries = {}
        for one in listed(found, what, SubscriptionError, most=most):
            if not isinstance(one, SetAside):
                raise SubscriptionError(f"a record is set aside by a SetAside, not {shown(one)}")
            entries[offset(one.offset)] = set_aside_entry(one)
        with self._log.appending() as tail:
            self.catch_up(tail.end)
            known = self.records_set_aside()
            new = [entry for number, entry in entries.items() if number not in known]
            end = tail.append(new) + len(new)
        self.catch_up(end)

    def _now(self) -> float:
        return read_clock(self._clock)

    # -- starting over ----------------------------------------------------------------------------

    def rebuild(self) -> None:
        """Derive both databases from the log again.

        Each is rebuilt in one transaction, which replaces the old content at its end. (Not by
        renaming files: SQLite's journal belongs to the name, so another process that has the old
        file open would write its journal into the new one.)
        """
        end = self._log.end
        with self._catalog.database.writing() as connection:
            self._catalog.database.clear(connection)
            self._catalog.apply(connection, self._log, end)
        changes = read_changes(self._log, 0, end, self._binder())
        with self._database.writing() as connection:
            self._database.clear(connection)
            self._write(connection, changes, end)


def _append(tail: Tail, command: Command[_Result]) -> int:
    """Append a command's records; returns the new end of the log."""
    entries = command.entries
    return tail.append(entries) + len(entries) if entries else tail.end


def rebuild(home: AnyHome) -> None:
    """Rebuild the catalog and the registry of a home from its log, even if SQLite cannot read the
    existing files."""
    for path, tables in ((home.catalog_db, CATALOG), (home.registry_db, REGISTRY)):
        if path is not None:
            try:
                database = DerivedDatabase(path, tables, shared=home.shared)
                database.check()
                database.close()
            except CorruptionError:
                remove_database(path)
    with Registry(home, catch_up=False) as registry:
        registry.rebuild()
