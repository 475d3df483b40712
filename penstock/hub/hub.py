"""The Hub: all of Penstock in one process, without Spark.

The reference for the pipeline and the test bed for everything else. In memory it lasts as long as
the process; on a home it writes the same log and the same message log as the pipeline, and either
can go on where the other stopped.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType

from penstock.arguments import (
    flag,
    listed,
    shown,
    subscription_id,
    text,
    whole_number,
)
from penstock.catalog import Catalog, Outside
from penstock.client import Initial, News, Notification, Snapshot
from penstock.client.sizes import notification_bytes
from penstock.delivery import SubscriptionReader
from penstock.delivery.registration import recorded, registered
from penstock.delivery.subscription import (
    MAX_PENDING_BYTES,
    MAX_PENDING_NOTIFICATIONS,
    Subscription,
    reopen_subscription,
)
from penstock.errors import ChangeError, HomeError, PenstockError
from penstock.flow.changes import Change, Op
from penstock.flow.events import change_from_mapping, decode_event, encode_change
from penstock.flow.explain import Explanation, explain
from penstock.flow.planning import Method, better_choices, explain_plan, first_choice
from penstock.hub.engine_state import EngineState
from penstock.hub.processor import Processor
from penstock.hub.replan_schedule import REOPTIMISE_EVERY_CHANGES, ReplanSchedule
from penstock.joins import Scheme
from penstock.joins.registry import DEFAULT_NAME, make_scheme
from penstock.registry import Candidate, Clock, Registry, commands
from penstock.spaces import Decomposition
from penstock.storage import (
    AnyHome,
    Home,
    MemoryHome,
    QuarantinedEvent,
    RecordKind,
    claim_family,
    home_path,
    samples,
    usable_statistics,
)

MAX_BATCH_CHANGES = 1_000_000


class Hub:
    """Standing queries in one process.

    >>> with Hub() as hub:
    ...     hub.execute("CREATE TABLE stocks (id BIGINT PRIMARY KEY, symbol VARCHAR, per DOUBLE)")
    ...     sub = hub.subscribe("SELECT symbol, per FROM stocks WHERE per BETWEEN 45 AND 70")
    ...     _ = hub.insert("stocks", {"id": 4, "symbol": "GOOG", "per": 52.1})
    ...     sub.content()
    [{'symbol': 'GOOG', 'per': 52.1}]

    All methods may be called from several threads; each call sees whole batches only. `scheme`
    names the way joins are turned into messages; contents are the same with each. After so many
    changes as `reoptimise_every` says, the Hub looks whether queries should be split into semijoins
    in another way (None: never). `clock` says when leases begin and whether they have run out. A
    home that is not there is made: for its owner alone, or with `group_access` for its group, too.
    """

    def __init__(
        self,
        home: str | PathLike[str] | None = None,
        *,
        scheme: str = DEFAULT_NAME,
        reoptimise_every: int | None = REOPTIMISE_EVERY_CHANGES,
        clock: Clock = time.time,
        group_access: bool = False,
    ) -> None:
        if reoptimise_every is not None:
            reoptimise_every = whole_number(reoptimise_every, "reoptimise_every", PenstockError)
        group_access = flag(group_access, "group_access", PenstockError)
        if not callable(clock):
            raise PenstockError(f"a clock is a function like time.time, not {shown(clock)}")
        self._schedule = ReplanSchedule(reoptimise_every)
        self._closing = ExitStack()
        self._registry: Registry | None = None
        self._home: AnyHome = MemoryHome()
        make = partial(make_scheme, scheme)
        state = EngineState(make)
        try:
            if home is not None:
                path = home_path(home)
                self._home = _hold_home(path, make(), self._closing, group_access=group_access)
                self._registry = Registry(self._home)
                state.engine.index.samples = samples(usable_statistics(path))
            self._processor = Processor(self._home, self._registry, state, clock)
            self._processor.restore()
            self.expire()
        except BaseException:
            self._closing.close()  # or the home stays locked as long as somebody has the error
            raise

    def __enter__(self) -> Hub:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the home. Everything acknowledged is already on disk."""
        with self._processor.lock:
            self._processor.close()
            self._closing.close()

    # Publishing

    def execute(self, sql: str) -> None:
        """Declare a table or a stream: CREATE TABLE ..., CREATE STREAM ..."""
        command = commands.define(sql)
        with self._processor.appending() as tail:
            self._processor.state.engine.catalog.check_new(command.result)
            self._processor.commit(tail, command)

    def insert(self, table: str, row: Mapping[str, Outside]) -> int:
        """Insert a row, or append an event to a stream; returns the offset of the change."""
        return self.apply([Change(table, Op.INSERT, row)])

    def update(self, table: str, row: Mapping[str, Outside]) -> int:
        """Change the given columns of the row that has the given key."""
        return self.apply([Change(table, Op.UPDATE, row)])

    def upsert(self, table: str, row: Mapping[str, Outside]) -> int:
        """Insert the row, or put it in the place of the one that has its key."""
        return self.apply([Change(table, Op.UPSERT, row)])

    def delete(self, table: str, key: Mapping[str, Outside]) -> int:
        """Delete the row that has the given key."""
        return self.apply([Change(table, Op.DELETE, key)])

    def apply(self, changes: Iterable[Change | Mapping[str, Outside]]) -> int:
        """Make several changes as one batch: all or none, and readers see all or none.

        A change is a `Change` or a mapping like a published line: table, op, row. Returns the
        offset of the first one.
        """
        given = listed(changes, "the changes of a batch", ChangeError, most=MAX_BATCH_CHANGES)
        requested = [_as_change(change) for change in given]
        # What is logged is what counts, so what is checked is what will be read back.
        bodies = [encode_change(change) for change in requested]
        processor, state = self._processor, self._processor.state
        with processor.appending() as tail:
            state.engine.try_changes(tail.end, [decode_event(body) for body in bodies])
            if not bodies:
                return tail.end
            offset = tail.append([(RecordKind.EVENT, body) for body in bodies])
            processor.advance()
            state.check_applied(range(offset, offset + len(bodies)))
            self._schedule.count(len(bodies))
            if self._schedule.is_due(len(state.engine.queries)):
                self._schedule.restart()
                better = better_choices(state.engine, Method.SIMULATION)
                processor.commit(tail, commands.replan(state, better))
            return offset

    # Subscribing

    def subscribe(
        self,
        sql: str,
        owner: str | None = None,
        *,
        decomposition: Decomposition | None = None,
        payload: str | Sequence[str] = (),
        initial: str = Initial.CONTENT,
        lease_seconds: float | None = None,
    ) -> Subscription:
        """Register a standing query. It starts with what its SQL returns now; with `initial="none"`
        it is told of changes only, and has no content.

        How a query over several tables is split into semijoins is chosen here, unless it is given.
        `payload` names bulky columns of a query over one table: they are sent when the subscription
        does not have them yet, not again with every change of the row. With a lease it ends by
        itself, unless it is renewed.
        """
        (sql,) = commands.check_statements([sql], payload)
        processor, state = self._processor, self._processor.state
        with processor.appending() as tail:
            query = state.engine.bind(sql)
            terms = commands.make_terms(
                owner, decomposition, initial, lease_seconds, processor.now()
            )
            choose = partial(first_choice, state.engine, query)
            command = commands.subscribe([Candidate(sql, lambda: query, choose)], terms)
            (said,) = command.result
            number = tail.append(command.entries)
            processor.live.add(
                Subscription(number, query, processor.lock, said.decomposition, said.initial)
            )
            state.expect(number, query)
            processor.catch_up()
            state.check_not_suspended(number)
            return processor.live[number]

    def unsubscribe(self, subscription: Subscription | int) -> None:
        number = _id(subscription)
        with self._processor.appending() as tail:
            self._processor.commit(tail, commands.unsubscribe(self._processor.state, [number]))

    def renew(
        self, subscription: Subscription | int, lease_seconds: float | None = None
    ) -> datetime:
        """Begin a lease again, as long as it is said, or as long as it was; until when it lasts.

        It ends no earlier than it would have, unless less time is asked for than it had. A lease
        that has run out can be renewed as long as nobody has noticed.
        """
        number = _id(subscription)
        processor = self._processor
        with processor.at_end() as tail:
            command = commands.renew(processor.state, [number], lease_seconds, processor.now())
            return processor.commit(tail, command)[number].expires

    def expire(self) -> list[int]:
        """Withdraw the subscriptions whose leases have run out; their numbers. Every call that
        changes something does so too."""
        processor = self._processor
        with processor.lock:
            if not processor.state.run_out(processor.now(), 1):
                return []
            with processor.at_end() as tail:
                return processor.expire(tail)

    def replan(self, subscription: Subscription | int, decomposition: Decomposition) -> None:
        """Split a subscription's query in another way from now on. Its content stays the same."""
        number = _id(subscription)
        with self._processor.appending() as tail:
            command = commands.replan(self._processor.state, {number: decomposition})
            self._schedule.restart()
            self._processor.commit(tail, command)

    def reoptimise(self, method: str = Method.SIMULATION) -> dict[int, Decomposition]:
        """Split queries in another way where that promises to save a fifth of what they cost, given
        the tables and the changes as they are; returns the subscriptions and their new ways.

        `method` says how costs are estimated: selective, uniform, simulation.
        """
        with self._processor.appending() as tail:
            state = self._processor.state
            better = better_choices(state.engine, Method.of(method))
            self._schedule.restart()
            return self._processor.commit(tail, commands.replan(state, better))

    # Reading

    def subscription(self, number: int) -> Subscription:
        """A subscription by its id, for instance one made before this Hub was opened."""
        number, live = _id(number), self._processor.live
        with self._processor.reading() as engine:
            self._processor.state.check_not_suspended(number)
            engine.query(number)
            if number not in live:
                assert isinstance(self._home, Home)  # in memory, every subscription is live
                assert self._registry is not None
                registration = registered(self._registry, self._registry.subscription(number))
                live.add(reopen_subscription(self._home, registration, self._processor.lock))
            return live[number]

    def subscriptions(self) -> dict[int, str]:
        """The SQL of all subscriptions, by id."""
        with self._processor.reading() as engine:
            return {number: query.sql for number, query in engine.queries.items()}

    def snapshot(self, subscription: Subscription | int) -> Snapshot:
        """The content of a subscription, and the cursor from which `news` tells what changes then.

        SubscriptionError if it was made with `initial="none"`: it has notifications only.
        """
        with self._processor.lock:
            live = self.subscription(_id(subscription))
            return Snapshot(live.content(), self._processor.position)

    def news(self, subscription: Subscription | int, cursor: int) -> News:
        """What a subscription was told since a cursor, whoever took it then: to go on from a
        snapshot, also in another process and after a crash.

        It is read from the message log, from the subscription's beginning on; `notifications` of a
        `Subscription` is the way to be told again and again. Very much comes in parts: go on from
        the cursor of each, until there is nothing.
        """
        number, cursor = _id(subscription), whole_number(cursor, "a cursor", HomeError)
        with self._processor.reading() as engine:
            registration = recorded(self._home, number, engine.query(number))
            reader = SubscriptionReader(self._home, registration, cursor)
            told: list[Notification] = []
            taken_bytes = 0
            for part in reader.new():
                told += part.notifications
                taken_bytes += sum(map(notification_bytes, part.notifications))
                if len(told) >= MAX_PENDING_NOTIFICATIONS or taken_bytes >= MAX_PENDING_BYTES:
                    break
            return News(cursor, max(cursor, reader.cursor), told)

    def explain(
        self, subscription: Subscription | int, change: Change | Mapping[str, Outside]
    ) -> Explanation:
        """Why a change would, or would not, reach a subscription, given the tables as they are."""
        number = _id(subscription)
        with self._processor.reading() as engine:
            query = engine.query(number)
            decoded = decode_event(encode_change(_as_change(change)))
            found = explain(
                number, query, decoded, engine.catalog, engine.rows, self._processor.position + 1
            )
            return replace(found, filters=explain_plan(engine, number))

    @property
    def catalog(self) -> Catalog:
        """The tables and streams that exist."""
        with self._processor.reading() as engine:
            return engine.catalog

    def rows(self, table: str) -> list[dict[str, Outside]]:
        """All rows of a table."""
        table = text(table, "the name of a table", ChangeError)
        with self._processor.reading() as engine:
            relation = engine.catalog.get(table)
            if relation is None:
                raise ChangeError(f"unknown table {table:.60}")
            return [relation.show_row(row) for _, row in engine.rows.rows(relation)]

    def quarantine(self) -> list[QuarantinedEvent]:
        """Events that others published and that could not be carried out."""
        with self._processor.reading():
            return list(self._home.quarantine.entries())


def _hold_home(path: Path, scheme: Scheme, closing: ExitStack, *, group_access: bool) -> Home:
    """A home on disk, made if there is none, that nobody else processes until `closing`."""
    if not os.path.lexists(path):
        Home.create(path, group_access=group_access)
    home = Home.open(path)
    closing.enter_context(home.processing_lock("hub"))
    claim_family(home, scheme.family, scheme.name)
    return home


def _id(subscription: Subscription | int) -> int:
    if isinstance(subscription, Subscription):
        return subscription.id
    return subscription_id(subscription)


def _as_change(change: object) -> Change:
    if isinstance(change, Change):
        change = {"table": change.table, "op": change.op, "row": change.row}
    if not isinstance(change, Mapping):
        raise ChangeError(f"a change is a Change or a mapping, not {shown(change)}")
    return change_from_mapping(change)
