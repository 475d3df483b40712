"""The Hub: all of Penstock in one process, without Spark.

The reference for the pipeline and the test bed for everything else. In memory it lasts as long as
the process; on a home it writes the same log and the same message log as the pipeline, and either
can go on where the other stopped.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType

from penstock.catalog import Catalog, Outside
from penstock.client import (
    Changes,
    Content,
    Delivery,
    Initial,
    Notification,
    Switch,
    client_of,
)
from penstock.engine.changes import Change, Op
from penstock.engine.engine import Engine
from penstock.engine.events import change_from_mapping, decode_event, encode_change
from penstock.engine.explain import Explanation, explain
from penstock.engine.planning import Method, better_choices, explain_plan, first_choice
from penstock.errors import (
    ChangeError,
    HomeError,
    PenstockError,
    SqlError,
    SubscriptionError,
)
from penstock.joins import Placed
from penstock.joins.decomposition import Decomposition, fits
from penstock.joins.registry import DEFAULT_NAME, make_scheme
from penstock.log import (
    AnyHome,
    BatchHeader,
    Home,
    MemoryHome,
    QuarantinedEvent,
    Record,
    RecordKind,
    Tail,
)
from penstock.log.contents import SavedContents
from penstock.log.inbox import Inbox
from penstock.log.statistics import samples, usable_statistics
from penstock.messages import Message, encode_message
from penstock.registry import (
    LEASE_RAN_OUT,
    Lease,
    Leases,
    Registry,
    Withdrawal,
    renew_body,
    renewed,
    replan_body,
    replan_of,
    subscribe_body,
    subscribed,
    withdraw_body,
    withdrawn,
)
from penstock.registry.leases import Clock, ran_out, without_lease
from penstock.routing import subscribers
from penstock.sql import Query, hinted, parse_relation
from penstock.subscription import MAX_PENDING_NOTIFICATIONS, Subscription

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
    in another way (None: never). `clock` says when leases begin and whether they have run out.
    """

    def __init__(
        self,
        home: str | PathLike[str] | None = None,
        *,
        scheme: str = DEFAULT_NAME,
        reoptimise_every: int | None = REOPTIMISE_EVERY_CHANGES,
        clock: Clock = time.time,
    ) -> None:
        self._lock = threading.RLock()
        self._engine = Engine(make_scheme(scheme))
        self._live: dict[int, Subscription] = {}
        self._bound: dict[int, Query] = {}  # of the subscription that is just being made
        self._leases = Leases()
        self._run_out: set[int] = set()  # subscriptions that ended because their leases did
        self._clock = clock
        self._position = 0
        self._reoptimise_every = reoptimise_every
        self._unweighed = 0  # changes since it was last looked how queries are split
        self._broken: PenstockError | None = None
        self._closing = ExitStack()
        self._registry: Registry | None = None
        if home is None:
            self._home: AnyHome = MemoryHome()
        else:
            path = Path(home)
            self._home = Home.open(path) if path.exists() else Home.create(path)
            self._closing.enter_context(self._home.processing_lock("hub"))
            self._registry = Registry(self._home)
            self._engine.index.samples = samples(usable_statistics(path))
        self._restore()
        self.expire()

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
        with self._lock, self._home.log.appending() as tail:
            self._advance()
            self._expire(tail)
            yield tail

    # Publishing

    def execute(self, sql: str) -> None:
        """Declare a table or a stream: CREATE TABLE ..., CREATE STREAM ..."""
        relation = parse_relation(sql)
        with self._appending() as tail:
            self._engine.catalog.check_new(relation)
            tail.append([(RecordKind.DDL, sql.encode())])
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
        requested = [_as_change(change) for change in changes]
        if len(requested) > MAX_BATCH_CHANGES:
            raise ChangeError(f"a batch holds at most {MAX_BATCH_CHANGES} changes")
        # What is logged is what counts, so what is checked is what will be read back.
        bodies = [encode_change(change) for change in requested]
        with self._appending() as tail:
            self._engine.try_changes(tail.end, [decode_event(body) for body in bodies])
            if not bodies:
                return tail.end
            offset = tail.append([(RecordKind.EVENT, body) for body in bodies])
            self._advance()
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
        if payload:
            sql = hinted(sql, [payload] if isinstance(payload, str) else payload)
        with self._appending() as tail:
            query = self._engine.bind(sql)
            if decomposition is None:
                decomposition = first_choice(self._engine, query)
            _check_fits(query, decomposition)
            begins = Initial.of(initial, query)
            lease = None if lease_seconds is None else Lease.starting(self._clock(), lease_seconds)
            body = subscribe_body(sql, owner, decomposition, begins, lease)
            offset = tail.append([(RecordKind.SUBSCRIBE, body)])
            self._live[offset] = Subscription(offset, query, self._lock, decomposition, begins)
            self._bound[offset] = query
            self._advance()
            self._refresh_registry()
            return self._live[offset]

    def unsubscribe(self, subscription: Subscription | int) -> None:
        number = _id(subscription)
        with self._appending() as tail:
            self._engine.query(number)
            tail.append([(RecordKind.WITHDRAW, withdraw_body(number))])
            self._advance()
            self._refresh_registry()

    def renew(
        self, subscription: Subscription | int, lease_seconds: float | None = None
    ) -> datetime:
        """Begin a lease again, as long as it is said, or as long as it was; until when it lasts.

        A lease that has run out can be renewed as long as nobody has noticed.
        """
        number = _id(subscription)
        with self._lock, self._home.log.appending() as tail:
            self._advance()
            if number in self._run_out:
                raise ran_out(number)
            self._engine.query(number)
            held = self._leases[number]
            if held is None and lease_seconds is None:
                raise without_lease(number)
            known = held or Lease(0, 0)
            lease = known.renewed(self._clock(), lease_seconds)
            tail.append([(RecordKind.RENEW, renew_body(number, lease))])
            self._advance()
            self._refresh_registry()
            return lease.expires

    def expire(self) -> list[int]:
        """Withdraw the subscriptions whose leases have run out; their numbers. Every call that
        changes something does so too."""
        with self._lock:
            if not self._leases.run_out(self._clock()):
                return []
            with self._home.log.appending() as tail:
                self._advance()
                return self._expire(tail)

    def _expire(self, tail: Tail) -> list[int]:
        gone = self._leases.run_out(self._clock())
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
            _check_fits(self._engine.query(number), decomposition)
            self._replan(tail, {number: decomposition})

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
        with self._lock:
            self._advance()
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
            found = saved.load(number, query, quiet=initial is Initial.QUIET)
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
        with self._lock:
            relation = self.catalog.get(table)
            if relation is None:
                raise ChangeError(f"unknown table {table}")
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
        if frontier is not None:
            index = self._engine.index
            told: dict[int, list[Placed]] = {}  # where the points were that batches know of
            for run in _runs(self._home.log.read(0, frontier.end)):
                if run[0].kind is RecordKind.REPLAN and run[0].offset >= frontier.active:
                    number = replan_of(run[0]).subscription
                    told.setdefault(number, list(index.points_of(number)))
                self._take_up(run)
            self._position = frontier.end
            for number in self._engine.queries:
                if number >= frontier.active or number in told:
                    since = told[number] if number < frontier.active else None
                    waiting += index.points_of(number, since)
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
        messages = self._engine.initial(self._position, waiting)
        inboxes = self._addressed(messages)
        bad: list[QuarantinedEvent] = []
        for run in _runs(self._home.log.read(self._position, end)):
            produced = self._carry_out(run, bad)
            for number, received in self._addressed(produced).items():
                inboxes[number] += received
            messages += [one for one in produced if isinstance(one, Message)]
        header = BatchHeader(self._position, end, end)
        self._home.messages.publish(header, [encode_message(m) for m in messages], bad)
        self._position = end
        for number, received in inboxes.items():
            self._live[number].deliver(received)

    def _take_up(self, run: list[Record]) -> None:
        """Carry out records whose messages are in the message log: only the state changes."""
        record = run[0]
        match record.kind:
            case RecordKind.EVENT:
                self._engine.absorb((one.offset, one.body) for one in run)
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
                outcome = self._engine.events((one.offset, one.body) for one in run)
                for offset, raw, error in outcome.refused:
                    reason = (error.primary, error.detail, error.hint)
                    bad.append(QuarantinedEvent(offset, raw, *reason))
                return outcome.messages
        return []

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


def _earlier(inbox: Inbox, client: Content | Changes, last: BatchHeader) -> list[Notification]:
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
    return subscription.id if isinstance(subscription, Subscription) else subscription


def _check_fits(query: Query, chosen: Decomposition | None) -> None:
    if chosen is not None and not fits(query, chosen):
        raise SubscriptionError(
            "a decomposition that is none of the query",
            hint="each node is filtered by a node it is joined with, over conditions it has",
        )


def _as_change(change: Change | Mapping[str, Outside]) -> Change:
    if isinstance(change, Change):
        return change
    return change_from_mapping(change)
