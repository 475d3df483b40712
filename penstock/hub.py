"""The Hub: all of Penstock in one process, without Spark.

The reference for the pipeline and the test bed for everything else. In memory it lasts as long as
the process; on a home it writes the same log and the same message log as the pipeline, and either
can go on where the other stopped.
"""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from penstock.arguments import (
    flag,
    listed,
    shown,
    statement,
    subscription_id,
    text,
    whole_number,
)
from penstock.catalog import Catalog, Outside
from penstock.client import (
    ChangesOnlyClient,
    Content,
    Delivery,
    Initial,
    News,
    Notification,
    Snapshot,
    Switch,
    client_of,
)
from penstock.client.sizes import notification_bytes
from penstock.delivery.inbox import Inbox
from penstock.delivery.saved_contents import SavedContents
from penstock.errors import (
    ChangeError,
    HomeError,
    PenstockError,
    RecordError,
    SqlError,
    SubscriptionError,
)
from penstock.flow.attempts import culprits_of_events, culprits_of_initial
from penstock.flow.changes import Change, Op
from penstock.flow.engine import Engine
from penstock.flow.events import change_from_mapping, decode_event, encode_change
from penstock.flow.explain import Explanation, explain
from penstock.flow.faults import SetAside, describe_fault, is_fault
from penstock.flow.planning import Method, better_choices, explain_plan, first_choice
from penstock.joins.decomposition import fitting
from penstock.joins.scheme_registry import DEFAULT_NAME, make_scheme
from penstock.messages import Message, encode_message
from penstock.registry import (
    LEASE_RAN_OUT,
    Lease,
    Leases,
    Registry,
    Withdrawal,
    owner_name,
    renew_body,
    renewed,
    replan_body,
    replan_of,
    statement_bytes,
    subscribe_body,
    subscribed,
    withdraw_body,
    withdrawn,
)
from penstock.registry.leases import Clock, ran_out, read_clock, renewed_lease
from penstock.registry.reading import reader_of
from penstock.registry.subscriptions import suspended
from penstock.routing import subscribers
from penstock.spaces import Decomposition, Placed
from penstock.sql import MAX_COLUMNS, Query, hinted, parse_relation
from penstock.storage import (
    AnyHome,
    BatchHeader,
    Home,
    MemoryHome,
    QuarantinedEvent,
    Record,
    RecordKind,
    Tail,
)
from penstock.storage.families import claim_family
from penstock.storage.home import home_path
from penstock.storage.set_aside import (
    events_not_applied,
    refusal,
    set_aside_entry,
    set_aside_in,
    suspects_among,
)
from penstock.storage.statistics import samples, usable_statistics
from penstock.subscription import MAX_PENDING_BYTES, MAX_PENDING_NOTIFICATIONS, Subscription

MAX_BATCH_CHANGES = 1_000_000
REOPTIMISE_EVERY_CHANGES = 10_000
REOPTIMISE_CHANGES_PER_SUBSCRIPTION = 20
"""To look how a query of three tables should be split takes 0.6 ms: 30 microseconds per change."""
MAX_RUN_EVENTS = 10_000
"""So many events of the log are matched at once, to bound memory."""


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
        self._lock = threading.RLock()
        self._make_scheme = partial(make_scheme, scheme)
        self._engine = Engine(self._make_scheme())
        self._live: dict[int, Subscription] = {}
        self._bound: dict[int, Query] = {}  # of the subscription that is just being made
        self._leases = Leases()
        self._run_out: set[int] = set()  # subscriptions that ended because their leases did
        self._clock = clock
        self._position = 0
        self._reoptimise_every = reoptimise_every
        self._unweighed = 0  # changes since it was last looked how queries are split
        self._broken: PenstockError | None = None
        self._tail: Tail | None = None  # while this Hub holds the log's append lock
        self._aside: dict[int, SetAside] = {}  # records that led to faults
        self._not_applied: dict[int, ChangeError] = {}  # events that are in quarantine
        self._closing = ExitStack()
        self._registry: Registry | None = None
        self._home: AnyHome = MemoryHome()
        try:
            if home is not None:
                self._home = self._settle_in(home_path(home), group_access)
            self._restore()
            self.expire()
        except BaseException:
            self._closing.close()  # or the home stays locked as long as somebody has the error
            raise

    def _settle_in(self, path: Path, group_access: bool) -> Home:
        """Take hold of a home on disk."""
        if not os.path.lexists(path):
            Home.create(path, group_access=group_access)
        home = Home.open(path)
        self._closing.enter_context(home.processing_lock("hub"))
        scheme = self._make_scheme()
        claim_family(home, scheme.family, scheme.name)
        self._registry = Registry(home)
        self._engine.index.samples = samples(usable_statistics(path))
        return home

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
        with self._lock:
            self._broken = HomeError("this hub is closed")
            self._closing.close()

    @contextmanager
    def _appending(self) -> Iterator[Tail]:
        """The end of the log, with everything before it done, for nobody else to append to."""
        with self._at_end() as tail:
            self._expire(tail)
            yield tail

    @contextmanager
    def _at_end(self) -> Iterator[Tail]:
        """The same, whether or not leases have run out."""
        with self._lock, self._home.log.appending() as tail:
            self._tail = tail
            try:
                self._advance()
                yield tail
            finally:
                self._tail = None

    # Publishing

    def execute(self, sql: str) -> None:
        """Declare a table or a stream: CREATE TABLE ..., CREATE STREAM ..."""
        sql = statement(sql)
        relation, body = parse_relation(sql), statement_bytes(sql)
        with self._appending() as tail:
            self._engine.catalog.check_new(relation)
            tail.append([(RecordKind.DDL, body)])
            self._advance()
            self._refresh_registry()

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
        with self._appending() as tail:
            self._engine.try_changes(tail.end, [decode_event(body) for body in bodies])
            if not bodies:
                return tail.end
            offset = tail.append([(RecordKind.EVENT, body) for body in bodies])
            self._advance()
            self._check_applied(range(offset, offset + len(bodies)))
            self._unweighed += len(bodies)
            if self._is_time_to_reoptimise():
                self._replan(tail, better_choices(self._engine, Method.SIMULATION))
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
        sql, owner = statement(sql), owner_name(owner)
        columns = _payload_columns(payload)
        if columns:
            sql = hinted(sql, columns)
        with self._appending() as tail:
            query = self._engine.bind(sql)
            if decomposition is None:
                decomposition = first_choice(self._engine, query)
            else:
                decomposition = fitting(query, decomposition)
            begins = Initial.of(initial, query)
            lease = None if lease_seconds is None else Lease.starting(self._now(), lease_seconds)
            body = subscribe_body(sql, owner, decomposition, begins, lease)
            offset = tail.append([(RecordKind.SUBSCRIBE, body)])
            self._live[offset] = Subscription(offset, query, self._lock, decomposition, begins)
            self._bound[offset] = query
            self._advance()
            self._refresh_registry()
            self._check_not_suspended(offset)
            return self._live[offset]

    def unsubscribe(self, subscription: Subscription | int) -> None:
        number = _id(subscription)
        with self._appending() as tail:
            if number not in self._aside:  # one that is suspended can be withdrawn, too
                self._engine.query(number)
            tail.append([(RecordKind.WITHDRAW, withdraw_body(number))])
            self._advance()
            self._refresh_registry()

    def renew(
        self, subscription: Subscription | int, lease_seconds: float | None = None
    ) -> datetime:
        """Begin a lease again, as long as it is said, or as long as it was; until when it lasts.

        It ends no earlier than it would have, unless less time is asked for than it had. A lease
        that has run out can be renewed as long as nobody has noticed.
        """
        number = _id(subscription)
        with self._at_end() as tail:
            if number in self._run_out:
                raise ran_out(number)
            self._engine.query(number)
            lease = renewed_lease(number, self._leases[number], self._now(), lease_seconds)
            tail.append([(RecordKind.RENEW, renew_body(number, lease))])
            self._advance()
            self._refresh_registry()
            return lease.expires

    def expire(self) -> list[int]:
        """Withdraw the subscriptions whose leases have run out; their numbers. Every call that
        changes something does so too."""
        with self._lock:
            if not self._leases.run_out(self._now()):
                return []
            with self._at_end() as tail:
                return self._expire(tail)

    def _now(self) -> float:
        return read_clock(self._clock)

    def _expire(self, tail: Tail) -> list[int]:
        gone = self._leases.run_out(self._now())
        if gone:
            bodies = [withdraw_body(number, LEASE_RAN_OUT) for number in gone]
            tail.append([(RecordKind.WITHDRAW, body) for body in bodies])
            self._advance()
            self._refresh_registry()
        return gone

    def replan(self, subscription: Subscription | int, decomposition: Decomposition) -> None:
        """Split a subscription's query in another way from now on. Its content stays the same."""
        number = _id(subscription)
        with self._appending() as tail:
            chosen = fitting(self._engine.query(number), decomposition)
            self._replan(tail, {number: chosen})

    def reoptimise(self, method: str = Method.SIMULATION) -> dict[int, Decomposition]:
        """Split queries in another way where that promises to save a fifth of what they cost, given
        the tables and the changes as they are; returns the subscriptions and their new ways.

        `method` says how costs are estimated: selective, uniform, simulation.
        """
        with self._appending() as tail:
            better = better_choices(self._engine, Method.of(method))
            self._replan(tail, better)
            return better

    def _is_time_to_reoptimise(self) -> bool:
        """It takes time for each subscription, so with many of them it is done less often."""
        if self._reoptimise_every is None:
            return False
        enough = REOPTIMISE_CHANGES_PER_SUBSCRIPTION * len(self._engine.queries)
        return self._unweighed >= max(self._reoptimise_every, enough)

    def _replan(self, tail: Tail, chosen: Mapping[int, Decomposition]) -> None:
        self._unweighed = 0
        if chosen:
            bodies = [replan_body(number, one) for number, one in chosen.items()]
            tail.append([(RecordKind.REPLAN, body) for body in bodies])
            self._advance()
            self._refresh_registry()

    def subscription(self, number: int) -> Subscription:
        """A subscription by its id, for instance one made before this Hub was opened."""
        number = _id(number)
        with self._lock:
            self._advance()
            self._check_not_suspended(number)
            query = self._engine.query(number)
            if number not in self._live:
                self._live[number] = self._revived(number, query)
            return self._live[number]

    def _revived(self, number: int, query: Query) -> Subscription:
        """A subscription that was made before this Hub was opened: from its saved content, if there
        is one, and the messages since."""
        assert isinstance(self._home, Home)  # in memory, every subscription is live
        assert self._registry is not None
        stored, saved = self._registry.subscription(number), SavedContents(self._home)
        chosen, initial = stored.decomposition, stored.initial
        replans = partial(self._registry.replans, number)
        opened = partial(Inbox, self._home.messages, number, query, chosen, replans, initial)
        inbox, found = opened(), None
        if initial is not Initial.NONE:
            found = saved.load(number, query, quiet=initial is Initial.SILENT)
        if found is None:
            live = Subscription(number, query, self._lock, chosen, initial)
        else:
            inbox.resume(found.last, found.content.chosen)
            client = client_of(number, query, chosen, initial)
            earlier = partial(_earlier, opened(), client, found.last)
            live = Subscription(
                number, query, self._lock, chosen, initial, saved=found.content, earlier=earlier
            )
        for _, deliveries in inbox.new():
            live.deliver(deliveries)
        saved.save_if_worth_it(live.settled(), inbox)
        return live

    def subscriptions(self) -> dict[int, str]:
        """The SQL of all subscriptions, by id."""
        with self._lock:
            self._advance()
            return {number: query.sql for number, query in self._engine.queries.items()}

    # Reading by cursors

    def snapshot(self, subscription: Subscription | int) -> Snapshot:
        """The content of a subscription, and the cursor from which `news` tells what changes then.

        SubscriptionError if it was made with `initial="none"`: it has notifications only.
        """
        with self._lock:
            live = self.subscription(_id(subscription))
            return Snapshot(live.content(), self._position)

    def news(self, subscription: Subscription | int, cursor: int) -> News:
        """What a subscription was told since a cursor, whoever took it then: to go on from a
        snapshot, also in another process and after a crash.

        It is read from the message log, from the subscription's beginning on; `notifications` of a
        `Subscription` is the way to be told again and again. Very much comes in parts: go on from
        the cursor of each, until there is nothing.
        """
        number, cursor = _id(subscription), whole_number(cursor, "a cursor", HomeError)
        with self._lock:
            self._advance()
            reader = reader_of(self._home, number, self._engine.query(number), cursor)
            told: list[Notification] = []
            taken_bytes = 0
            for part in reader.new():
                told += part.notifications
                taken_bytes += sum(map(notification_bytes, part.notifications))
                if len(told) >= MAX_PENDING_NOTIFICATIONS or taken_bytes >= MAX_PENDING_BYTES:
                    break
            return News(cursor, max(cursor, reader.cursor), told)

    # Looking

    def explain(
        self, subscription: Subscription | int, change: Change | Mapping[str, Outside]
    ) -> Explanation:
        """Why a change would, or would not, reach a subscription, given the tables as they are."""
        number = _id(subscription)
        with self._lock:
            self._advance()
            query = self._engine.query(number)
            decoded = decode_event(encode_change(_as_change(change)))
            found = explain(
                number, query, decoded, self._engine.catalog, self._engine.rows, self._position + 1
            )
            return replace(found, filters=explain_plan(self._engine, number))

    @property
    def catalog(self) -> Catalog:
        """The tables and streams that exist."""
        with self._lock:
            self._advance()
            return self._engine.catalog

    def rows(self, table: str) -> list[dict[str, Outside]]:
        """All rows of a table."""
        table = text(table, "the name of a table", ChangeError)
        with self._lock:
            relation = self.catalog.get(table)
            if relation is None:
                raise ChangeError(f"unknown table {table:.60}")
            return [relation.show_row(row) for _, row in self._engine.rows.rows(relation)]

    def quarantine(self) -> list[QuarantinedEvent]:
        """Events that others published and that could not be carried out."""
        with self._lock:
            self._advance()
            return list(self._home.quarantine.entries())

    # Following the log

    def _restore(self) -> None:
        """Bring the engine to where the message log ends, then go on from there."""
        frontier = self._home.messages.frontier
        waiting: list[Placed] = []
        self._aside = set_aside_in(self._home.log)
        self._not_applied = events_not_applied(self._home)
        if frontier is not None:
            told: dict[int, list[Placed]] = {}  # where the points were that batches know of
            for run in _runs(self._home.log.read(0, frontier.end)):
                if run[0].kind is RecordKind.REPLAN and run[0].offset >= frontier.active:
                    with suppress(RecordError):
                        number = replan_of(run[0]).subscription
                        told.setdefault(number, list(self._engine.index.points_of(number)))
                self._restore_run(run)
            self._position = frontier.end
            for number in self._engine.queries:
                if number >= frontier.active or number in told:
                    since = told[number] if number < frontier.active else None
                    waiting += self._engine.index.points_of(number, since)
        self._advance(waiting)
        self._refresh_registry()

    def _advance(self, waiting: Sequence[Placed] = ()) -> None:
        """Process what the log holds beyond our position, as one batch of the message log.

        `waiting` are points that no batch has made active yet.
        """
        if self._broken is not None:
            raise self._broken
        end = self._home.log.end
        if end == self._position and not waiting:
            return
        try:
            self._process(end, waiting)
        except BaseException:
            self._broken = HomeError(
                "this hub stopped in the middle of a batch", hint="open the home again"
            )
            raise

    def _process(self, end: int, waiting: Sequence[Placed]) -> None:
        runs = _runs(self._home.log.read(self._position, end))
        produced = [self._produce_initial(waiting), *map(self._produce, runs)]
        messages = [message for one in produced for message in one.encoded]
        bad = [event for one in produced for event in one.bad]
        self._home.messages.publish(BatchHeader(self._position, end, end), messages, bad)
        self._position = end
        for one in produced:
            for number, received in one.addressed.items():
                self._deliver(number, received)

    def _deliver(self, number: int, received: list[Delivery]) -> None:
        """A content that cannot be built is the trouble of its subscription alone."""
        live = self._live.get(number)
        if live is None:
            return
        try:
            live.deliver(received)
        except Exception as error:
            if not is_fault(error):
                raise
            del self._live[number]
            why = f"the content of subscription {number} cannot be built"
            live.end(SubscriptionError(why, detail=describe_fault(error)))

    def _produce(self, run: list[Record]) -> _Produced:
        """Carry out a run of events, or one record of another kind. A record that leads to a fault
        is set aside, and the others are carried out without it."""
        while True:
            bad: list[QuarantinedEvent] = []
            try:
                return self._produced(self._carry_out(run, bad), bad)
            except Exception as error:
                if not is_fault(error):
                    raise
                self._leave_out_culprits(run, error)

    def _restore_run(self, run: list[Record]) -> None:
        """The same for records whose messages are in the message log."""
        while True:
            try:
                return self._take_up(run)
            except Exception as error:
                if not is_fault(error):
                    raise
                self._leave_out_culprits(run, error)

    def _leave_out_culprits(self, run: list[Record], error: Exception) -> None:
        """Set aside the records to blame for a fault; the engine is then where the run begins."""
        self._replay(run[0].offset)
        found = self._culprits(run, error)
        if not found:  # it fails as a whole, and every part of it succeeds
            raise error
        self._set_aside(found)
        self._replay(run[0].offset)

    def _produce_initial(self, waiting: Sequence[Placed]) -> _Produced:
        """What points start with that no batch has made active yet."""
        while True:
            try:
                return self._produced(self._engine.initial(self._position, waiting), [])
            except Exception as error:
                if not is_fault(error):
                    raise
                make = self._make_scheme
                found = culprits_of_initial(self._engine, self._position, waiting, make)
                self._set_aside(found)
                self._replay(self._position)
                waiting = [one for one in waiting if one.point.id.subscription not in self._aside]

    def _produced(self, made: Sequence[Delivery], bad: list[QuarantinedEvent]) -> _Produced:
        encoded = [encode_message(one) for one in made if isinstance(one, Message)]
        return _Produced(encoded, self._addressed(made), bad)

    def _replay(self, end: int) -> None:
        """Begin with a new engine and bring it to an offset: a fault leaves it in between."""
        samples_before = self._engine.index.samples
        self._engine = Engine(self._make_scheme())
        self._engine.index.samples = samples_before
        for run in _runs(self._home.log.read(0, end)):
            self._take_up(run)

    def _culprits(self, run: list[Record], error: Exception) -> list[SetAside]:
        """The records to blame for a fault of a run; the engine is where the run begins."""
        record = run[0]
        match record.kind:
            case RecordKind.EVENT:
                events = [(one.offset, one.body) for one in run if not self._is_refused(one.offset)]
                suspects = suspects_among(self._aside.values())
                return culprits_of_events(self._engine, events, self._make_scheme, suspects)
            case RecordKind.WITHDRAW if not isinstance(error, RecordError):
                return [SetAside(withdrawn(record.body).id, describe_fault(error))]
        return [SetAside(record.offset, describe_fault(error))]

    def _set_aside(self, found: list[SetAside]) -> None:
        """Say in the log which records are not processed."""
        entries = [set_aside_entry(one) for one in found]
        if self._tail is not None:
            self._tail.append(entries)
        else:
            self._home.log.append(entries)
        for one in found:
            self._aside[one.offset] = one
            self._not_applied[one.offset] = refusal(one)
            live = self._live.pop(one.offset, None)
            if live is not None:
                live.end(suspended(one))

    def _is_refused(self, offset: int) -> bool:
        return offset in self._not_applied

    def _check_applied(self, offsets: range) -> None:
        """ChangeError if processing one of these events failed."""
        for offset in offsets:
            if offset in self._aside:
                error = refusal(self._aside[offset])
                raise ChangeError(
                    error.primary,
                    detail=f"the event at offset {offset} is in quarantine; the others are applied",
                    hint=error.hint,
                )

    def _check_not_suspended(self, number: int) -> None:
        if number in self._aside:
            raise suspended(self._aside[number])

    def _take_up(self, run: list[Record]) -> None:
        """Carry out records whose messages are in the message log: only the state changes."""
        record = run[0]
        if record.offset in self._aside and record.kind is not RecordKind.EVENT:
            return
        match record.kind:
            case RecordKind.EVENT:
                accepted = [one for one in run if not self._is_refused(one.offset)]
                self._engine.absorb((one.offset, one.body) for one in accepted)
            case RecordKind.SUBSCRIBE:
                self._enrol(record)
            case RecordKind.REPLAN:
                replan = replan_of(record)
                if replan.subscription in self._engine.queries:
                    self._engine.move(replan)
            case _:
                self._carry_out(run, [])

    def _carry_out(self, run: list[Record], bad: list[QuarantinedEvent]) -> Sequence[Delivery]:
        """Carry out a run of events, or one record of another kind."""
        record = run[0]
        if record.offset in self._aside and record.kind is not RecordKind.EVENT:
            return []
        match record.kind:
            case RecordKind.DDL:
                self._engine.define(record.offset, record.body.decode())
            case RecordKind.SUBSCRIBE:
                return self._engine.initial(record.offset, self._enrol(record))
            case RecordKind.WITHDRAW:
                self._withdraw(withdrawn(record.body))
            case RecordKind.RENEW:
                self._leases.note(*renewed(record.body))
            case RecordKind.REPLAN:
                replan = replan_of(record)
                if replan.subscription in self._engine.queries:  # others no longer bind
                    return [Switch.at(record.offset, replan), *self._engine.replan(replan)]
            case RecordKind.EVENT:
                return self._carry_out_events(run, bad)
        return []

    def _carry_out_events(
        self, run: list[Record], bad: list[QuarantinedEvent]
    ) -> Sequence[Message]:
        accepted = [one for one in run if not self._is_refused(one.offset)]
        outcome = self._engine.events((one.offset, one.body) for one in accepted)
        refused = {offset: error for offset, _, error in outcome.refused}
        for one in run if refused or len(accepted) < len(run) else ():
            error = refused.get(one.offset) or self._not_applied.get(one.offset)
            if error is not None:
                bad.append(QuarantinedEvent(one.offset, one.body, *error.reason()))
        return outcome.messages

    def _enrol(self, record: Record) -> list[Placed]:
        """Make the subscription of a record active; its points."""
        query, said = self._bound.pop(record.offset, None), subscribed(record.body)
        try:
            query = query or self._engine.bind(said.sql)
        except SqlError:
            return []  # accepted by an older release; the registry lists it as broken
        self._leases.note(record.offset, said.lease)
        changes_only = said.initial is Initial.NONE
        chosen = said.decomposition
        return self._engine.enrol(record.offset, query, chosen, changes_only=changes_only)

    def _withdraw(self, gone: Withdrawal) -> None:
        number = gone.id
        self._leases.note(number, None)
        if number in self._engine.queries:  # others no longer bind, or are suspended
            self._engine.withdraw(number)
        live = self._live.pop(number, None)
        why = SubscriptionError(f"subscription {number} was withdrawn")
        if gone.reason == LEASE_RAN_OUT:
            self._run_out.add(number)
            why = ran_out(number)
        if live is not None:
            live.end(why)

    def _addressed(self, deliveries: Iterable[Delivery]) -> defaultdict[int, list[Delivery]]:
        """The deliveries by the live subscriptions that get them, as of now."""
        inboxes: defaultdict[int, list[Delivery]] = defaultdict(list)
        for one in deliveries:
            if isinstance(one, Switch):
                numbers = {one.subscription}
            else:
                numbers = subscribers(one, self._engine.index.space(one.space))
            for number in numbers & self._live.keys():
                inboxes[number].append(one)
        return inboxes

    def _refresh_registry(self) -> None:
        """Keep the databases that other processes read in step with the log."""
        if self._registry is not None:
            self._registry.catch_up()


class _Produced(NamedTuple):
    """What records led to."""

    encoded: list[bytes]
    addressed: dict[int, list[Delivery]]
    """By the live subscriptions that get them."""
    bad: list[QuarantinedEvent]


def _earlier(
    inbox: Inbox, client: Content | ChangesOnlyClient, last: BatchHeader
) -> list[Notification]:
    """What a subscription was notified of up to the end of a batch, or more than it can keep."""
    notifications: list[Notification] = []
    for header, deliveries in inbox.new():
        notifications += client.apply(deliveries)
        if header == last or len(notifications) > MAX_PENDING_NOTIFICATIONS:
            break
    return notifications


def _runs(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Events that follow one another together, up to a limit; every other record alone."""
    run: list[Record] = []
    for record in records:
        if run and (record.kind is not RecordKind.EVENT or len(run) == MAX_RUN_EVENTS):
            yield run
            run = []
        if record.kind is RecordKind.EVENT:
            run.append(record)
        else:
            yield [record]
    if run:
        yield run


def _id(subscription: Subscription | int) -> int:
    if isinstance(subscription, Subscription):
        return subscription.id
    return subscription_id(subscription)


def _payload_columns(payload: str | Sequence[str]) -> list[str]:
    if isinstance(payload, str):
        payload = [payload] if payload else []
    named = listed(payload, "the columns of a payload", SubscriptionError, most=MAX_COLUMNS)
    return [text(one, "the name of a column", SubscriptionError) for one in named]


def _as_change(change: object) -> Change:
    if isinstance(change, Change):
        change = {"table": change.table, "op": change.op, "row": change.row}
    if not isinstance(change, Mapping):
        raise ChangeError(f"a change is a Change or a mapping, not {shown(change)}")
    return change_from_mapping(change)
