"""The registry: tables, streams and subscriptions of a home, as far as its log says.

The log is the truth. Every change is checked, appended to the log, and then applied to the
databases; a crash in between is repaired by the next one who catches up. Records are only appended
once they are valid, so applying them cannot fail, except for those of another release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, func, insert, select, update

from penstock.catalog import Catalog
from penstock.client import Initial
from penstock.errors import CorruptionError, SubscriptionError
from penstock.joins.decomposition import Decomposition, Replan
from penstock.log import AnyHome, RecordKind
from penstock.registry.binding import (
    Binder,
    check_fits,
    from_rows,
    initial_of,
    replan_row,
    replans_from_rows,
    row_of,
    stored_as,
)
from penstock.registry.catalogs import StoredCatalog
from penstock.registry.choosing import Chooser
from penstock.registry.database import DerivedDatabase, remove_database
from penstock.registry.records import (
    Subscribed,
    replan_body,
    replan_of,
    statement_bytes,
    subscribe_body,
    withdraw_body,
    withdrawn_id,
)
from penstock.registry.subscriptions import StoredSubscription, SubscriptionChanges
from penstock.registry.tables import CATALOG, REGISTRY, replans, subscriptions
from penstock.sql import parse_relation

MAX_SUBSCRIPTIONS_AT_ONCE = 100_000  # one frame of the log, so that all or none are accepted

_IDS_AT_ONCE = 500
_SUBSCRIBES = frozenset({RecordKind.SUBSCRIBE, RecordKind.WITHDRAW, RecordKind.REPLAN})


class Registry:
    """Safe for several threads and processes at once; each sees what is committed.

    Opening catches up with the log. A process that only follows another one, such as a worker of
    the pipeline, passes `catch_up=False` and reads what that one has applied.
    """

    def __init__(self, home: AnyHome, *, catch_up: bool = True) -> None:
        self._home = home
        self._log = home.log
        self._catalog = StoredCatalog(home.catalog_db, shared=home.shared)
        self._database = DerivedDatabase(home.registry_db, REGISTRY, shared=home.shared)
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
        """Apply the records before `to`, or all there are, unless somebody else already has."""
        self._catch_up(self._log.end if to is None else to, None)

    def _catch_up(self, to: int, binder: Binder | None) -> None:
        if self._must_apply(self._catalog.database, to):
            with self._catalog.database.writing() as connection:
                self._catalog.apply(connection, self._log, to)
        while self._must_apply(self._database, to):
            # Binding takes long, so it is done before the lock is taken. Should somebody else
            # have applied some of it meanwhile, `_write` leaves that out.
            changes = self._read(self.applied, to, binder or Binder(self.catalog()))
            with self._database.writing() as connection:
                self._write(connection, changes, to)

    def _must_apply(self, database: DerivedDatabase, to: int) -> bool:
        with database.reading() as connection:
            applied = database.applied(connection)
        if applied > to and applied > self._log.end:
            raise CorruptionError(
                f"the log ends at offset {self._log.end}, but {applied} records were there before",
                detail=f"{database.path or 'the registry'} has seen them",
                hint="restore the log from a backup; or, if they are really gone for good, "
                "go on without them: penstock rebuild HOME",
            )
        return applied < to

    def _read(self, start: int, end: int, binder: Binder) -> _LogChanges:
        added: list[StoredSubscription] = []
        withdrawn: list[tuple[int, int]] = []
        replanned: list[Replan] = []
        for record in self._log.read(start, end, _SUBSCRIBES) if start < end else ():
            if record.kind is RecordKind.SUBSCRIBE:
                added.append(binder.stored(record))
            elif record.kind is RecordKind.REPLAN:
                replanned.append(replan_of(record))
            else:
                withdrawn.append((withdrawn_id(record.body), record.offset))
        return _LogChanges(start, added, withdrawn, replanned)

    def _write(self, connection: Connection, changes: _LogChanges, to: int) -> None:
        applied = self._database.applied(connection)
        if applied >= to or applied < changes.start:  # a file that was made anew starts over
            return
        rows = [row_of(stored) for stored in changes.added if stored.id >= applied]
        if rows:
            connection.execute(insert(subscriptions), rows)
        moved = [replan_row(replan) for replan in changes.replanned if replan.offset >= applied]
        if moved:
            connection.execute(insert(replans), moved)
        for subscription, offset in changes.withdrawn:
            if offset >= applied:
                one = update(subscriptions).where(subscriptions.c.id == subscription)
                connection.execute(one.values(withdrawn_at=offset))
        self._database.set_applied(connection, to)

    # -- looking ----------------------------------------------------------------------------------

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
            still = columns.withdrawn_at.is_(None) | (columns.withdrawn_at >= active)
            wanted = wanted.where(columns.id < active, still)
        if not include_broken:
            wanted = wanted.where(columns.broken == "")
        with self._database.reading() as connection:
            return from_rows(connection.execute(wanted).all())

    def count(self, low: int = 0) -> int:
        """How many subscriptions recorded from `low` on are neither withdrawn nor broken."""
        columns = subscriptions.c
        counted = select(func.count()).select_from(subscriptions).where(columns.id >= low)
        there = counted.where(columns.withdrawn_at.is_(None), columns.broken == "")
        with self._database.reading() as connection:
            return int(connection.execute(there).scalar_one())

    def subscription(self, subscription: int, *, withdrawn: bool = False) -> StoredSubscription:
        """One subscription; SubscriptionError if there is none, or if it was withdrawn."""
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
            raise SubscriptionError(
                f"subscription {subscription} was withdrawn",
                detail=f"at offset {stored.withdrawn_at}",
            )
        return stored

    def recorded(self, low: int, high: int, most: int) -> list[StoredSubscription]:
        """The first of those that the records of [low, high) added and that can be used, even if
        they were withdrawn since; ordered by id."""
        columns = subscriptions.c
        sound = select(subscriptions).where(columns.broken == "")
        wanted = sound.where(columns.id >= low, columns.id < high).order_by(columns.id).limit(most)
        with self._database.reading() as connection:
            return from_rows(connection.execute(wanted).all())

    def changes_only(self, low: int, high: int) -> list[StoredSubscription]:
        """Those that the records of [low, high) added and that start with nothing; by id."""
        columns = subscriptions.c
        within = select(subscriptions).where(columns.id >= low, columns.id < high)
        wanted = within.where(columns.broken == "", columns.initial == Initial.NONE)
        with self._database.reading() as connection:
            return from_rows(connection.execute(wanted.order_by(columns.id)).all())

    def numbered(self, ids: Sequence[int]) -> list[StoredSubscription]:
        """The subscriptions with these ids, even if they were withdrawn since; ordered by id."""
        found: list[StoredSubscription] = []
        with self._database.reading() as connection:
            for first in range(0, len(ids), _IDS_AT_ONCE):
                some = ids[first : first + _IDS_AT_ONCE]
                wanted = select(subscriptions).where(subscriptions.c.id.in_(some))
                found += from_rows(connection.execute(wanted.order_by(subscriptions.c.id)).all())
        return found

    def recorded_count(self, low: int, high: int) -> int:
        """How many subscriptions the records of [low, high) added."""
        columns = subscriptions.c
        counted = select(func.count()).select_from(subscriptions)
        with self._database.reading() as connection:
            within = counted.where(columns.id >= low, columns.id < high)
            return int(connection.execute(within).scalar_one())

    def changes_between(self, low: int, high: int, *, added: bool = True) -> SubscriptionChanges:
        """What the records of [low, high) did to the set of subscriptions that can be used; on
        request without those that were added."""
        columns = subscriptions.c
        sound = select(subscriptions).where(columns.broken == "")
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
        wanted = _replans(low, high).where(replans.c.subscription == subscription)
        with self._database.reading() as connection:
            return replans_from_rows(connection.execute(wanted).all())

    # -- changing ---------------------------------------------------------------------------------

    def define(self, sql: str) -> int:
        """Declare a table or a stream; the offset of its record."""
        relation = parse_relation(sql)
        with self._log.appending() as tail:
            self.catch_up(tail.end)
            self.catalog().check_new(relation)
            offset = tail.append([(RecordKind.DDL, statement_bytes(sql))])
        self.catch_up(offset + 1)
        return offset

    def subscribe(
        self,
        sql: str,
        owner: str | None = None,
        *,
        chosen: Decomposition | None = None,
        initial: str = Initial.CONTENT,
    ) -> StoredSubscription:
        """Register a query, with the decomposition that was chosen for it.

        `initial` is "content", or "none" for those who want changes only.
        """
        return self._subscribe([sql], owner, [chosen], initial)[0]

    def subscribe_many(
        self,
        statements: Sequence[str],
        owner: str | None = None,
        *,
        initial: str = Initial.CONTENT,
    ) -> list[StoredSubscription]:
        """Register all of these queries, or none: the first that is refused is raised."""
        return self._subscribe(statements, owner, [None] * len(statements), initial)

    def _subscribe(
        self,
        statements: Sequence[str],
        owner: str | None,
        chosen: Sequence[Decomposition | None],
        initial: str,
    ) -> list[StoredSubscription]:
        if len(statements) > MAX_SUBSCRIPTIONS_AT_ONCE:
            raise SubscriptionError(
                f"at most {MAX_SUBSCRIPTIONS_AT_ONCE} subscriptions at once, not {len(statements)}"
            )
        self.catch_up()
        # Relations are only ever added, so what binds now binds at every later offset, and
        # nobody has to wait for the append lock meanwhile.
        catalog = self.catalog()
        binder = Binder(catalog)
        plans = binder.plans(statements)
        chooser = Chooser(self._home, catalog)
        said = [
            Subscribed(
                sql,
                owner,
                chooser.choose(plan) if one is None else one,
                initial_of(initial, plan, catalog),
            )
            for sql, plan, one in zip(statements, plans, chosen, strict=True)
        ]
        first = self._log.append([(RecordKind.SUBSCRIBE, subscribe_body(*one)) for one in said])
        self._catch_up(first + len(said), binder)
        return [
            stored_as(offset, one, plan)
            for offset, (one, plan) in enumerate(zip(said, plans, strict=True), first)
        ]

    def replan(self, chosen: Mapping[int, Decomposition]) -> None:
        """Give subscriptions other decompositions; those that are withdrawn by now are left out."""
        with self._log.appending() as tail:
            self.catch_up(tail.end)
            bodies = []
            for subscription, decomposition in chosen.items():
                stored = self.subscription(subscription, withdrawn=True)
                check_fits(stored, decomposition, self.catalog())
                if stored.withdrawn_at is None:
                    bodies.append(replan_body(subscription, decomposition))
            end = tail.end
            if bodies:
                end = tail.append([(RecordKind.REPLAN, body) for body in bodies]) + len(bodies)
        self.catch_up(end)

    def withdraw(self, subscription: int) -> int:
        """End a subscription; the offset of the record that says so."""
        with self._log.appending() as tail:
            self.catch_up(tail.end)
            self.subscription(subscription)
            offset = tail.append([(RecordKind.WITHDRAW, withdraw_body(subscription))])
        self.catch_up(offset + 1)
        return offset

    # -- starting over ----------------------------------------------------------------------------

    def rebuild(self) -> None:
        """Derive both databases from the log again.

        Each is done in one transaction, beside the old content, and replaces it at the end. (Not
        by renaming files: SQLite's journal belongs to the name, so another process that has the
        old file open would write its journal into the new one.)
        """
        end = self._log.end
        with self._catalog.database.writing() as connection:
            self._catalog.database.clear(connection)
            self._catalog.apply(connection, self._log, end)
        changes = self._read(0, end, Binder(self.catalog()))
        with self._database.writing() as connection:
            self._database.clear(connection)
            self._write(connection, changes, end)


@dataclass(frozen=True, slots=True)
class _LogChanges:
    """What the log says from `start` on: subscriptions, (subscription, offset) of withdrawals,
    other decompositions."""

    start: int
    added: list[StoredSubscription]
    withdrawn: list[tuple[int, int]]
    replanned: list[Replan]


def _replans(low: int, high: int) -> Select[Any]:
    within = select(replans).where(replans.c.offset >= low, replans.c.offset < high)
    return within.order_by(replans.c.offset)


def rebuild(home: AnyHome) -> None:
    """Make the catalog and the registry of a home again from its log, even if SQLite cannot read
    what is there."""
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
