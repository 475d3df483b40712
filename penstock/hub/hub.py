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
from datetime import datetime
from functools import partial
from os import PathLike
from pathlib import Path
from types import TracebackType

from penstock.arguments import (
    flag,
    listed,
    shown,
    whole_number,
)
from penstock.catalog import Outside
from penstock.catalog.catalog import MAX_OPERATORS
from penstock.client import Initial
from penstock.delivery.subscription import (
    Subscription,
)
from penstock.errors import ChangeError, OperatorError, PenstockError
from penstock.flow.changes import Change, Op
from penstock.flow.events import decode_event, encode_change
from penstock.flow.planning import Method, better_choices, first_choice
from penstock.hub.engine_state import EngineState
from penstock.hub.processor import Processor
from penstock.hub.reading import HubReading, as_change, id_of
from penstock.hub.replan_schedule import REOPTIMISE_EVERY_CHANGES, ReplanSchedule
from penstock.joins import Scheme
from penstock.joins.scheme_registry import DEFAULT_NAME, make_scheme
from penstock.operators import Operator
from penstock.query import calls_operators
from penstock.registry import (
    OWNER,
    Candidate,
    Clock,
    HomeOperators,
    Owner,
    Registry,
    check_signature,
    commands,
    declaring_installed,
    signature_of,
)
from penstock.spaces import Decomposition
from penstock.storage import (
    AnyHome,
    Home,
    MemoryHome,
    RecordKind,
    claim_family,
    home_path,
    samples,
    usable_statistics,
)

MAX_BATCH_CHANGES = 1_000_000


class Hub(HubReading):
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
    home that is not there is made: for its owner alone, or with `group_access` for its group, too;
    and with a default lease for subscriptions that do not say how long they last. `operators` are
    implementations of those that subscriptions of the home call, where nobody finds them by their
    declarations (see `register_operator`).
    """

    def __init__(
        self,
        home: str | PathLike[str] | None = None,
        *,
        scheme: str = DEFAULT_NAME,
        reoptimise_every: int | None = REOPTIMISE_EVERY_CHANGES,
        clock: Clock = time.time,
        group_access: bool = False,
        default_lease_seconds: float | None = None,
        operators: Iterable[Operator] = (),
    ) -> None:
        if reoptimise_every is not None:
            reoptimise_every = whole_number(reoptimise_every, "reoptimise_every", PenstockError)
        group_access = flag(group_access, "group_access", PenstockError)
        implementations = listed(operators, "the operators", OperatorError, most=MAX_OPERATORS)
        if not callable(clock):
            raise PenstockError(f"a clock is a function like time.time, not {shown(clock)}")
        self._schedule = ReplanSchedule(reoptimise_every)
        self._closing = ExitStack()
        self._registry: Registry | None = None
        self._home: AnyHome = MemoryHome(default_lease_seconds=default_lease_seconds)
        make = partial(make_scheme, scheme)
        state = EngineState(make)
        self._operators: HomeOperators | None = None
        state.engine.operators = lambda: self._find_operators().runtime
        try:
            if home is not None:
                path = home_path(home)
                if not os.path.lexists(path):
                    lease = default_lease_seconds
                    Home.create(path, group_access=group_access, default_lease_seconds=lease)
                self._home = _hold_home(path, make(), self._closing)
                self._registry = Registry(self._home)
                state.engine.index.samples = samples(usable_statistics(path))
            self._processor = Processor(self._home, self._registry, state, clock)
            for one in implementations:
                from penstock.operators.validation import check_operator

                self._find_operators().register(check_operator(one))
            if self._registry is not None:
                self._note_operators(self._registry)
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
        """Declare a table, a stream or an operator: CREATE TABLE ..., STREAM ..., OPERATOR ..."""
        command = commands.define(sql)
        with self._processor.appending() as tail:
            self._processor.state.engine.catalog.check_new(command.result)
            self._processor.commit(tail, command)

    def register_operator(self, operator: Operator) -> None:
        """Have an operator that conditions can call (`penstock.operators`). Its declaration becomes
        part of the home; registering another version of it later replaces the implementation."""
        from penstock.operators.validation import check_operator
        from penstock.sql import operator_statement

        checked = check_operator(operator)
        declared = signature_of(checked)
        with self._processor.appending() as tail:
            catalog = self._processor.state.engine.catalog
            known = catalog.operators.get(checked.name.lower())
            if known is not None:
                check_signature(known, checked)
            command = commands.define(operator_statement(declared)) if known is None else None
            self._find_operators().register(checked)
            if known is not None:
                journal = self._find_operators().journal
                journal.note_version(checked.name.lower(), checked.version, tail.end)
            if command is not None:
                self._processor.commit(tail, command)

    def _note_operators(self, registry: Registry) -> None:
        """Before the log is replayed: what was published rests on what earlier versions said."""
        catalog = registry.catalog()
        names = registry.operators_in_use() if catalog.operators else ()
        if names:
            frontier = self._home.messages.frontier
            reached = 0 if frontier is None else frontier.end
            self._find_operators().note_versions(names, reached, catalog)

    def _find_operators(self) -> HomeOperators:
        """Made when somebody needs it: it takes a while to load."""
        if self._operators is None:
            state = self._processor.state  # its engine may become another one
            path = self._home.path if isinstance(self._home, Home) else None
            self._operators = HomeOperators(lambda: state.engine.catalog, path)
            self._closing.callback(self._operators.close)
        return self._operators

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
        requested = [as_change(change) for change in given]
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
        itself, unless it is renewed; None is the default of the home, infinity no lease.

        What is returned has a `ticket`, by which others than the owner of the home renew and
        withdraw it. It is kept nowhere: who needs it must keep it.
        """
        (sql,) = commands.check_statements([sql], payload)
        processor, state = self._processor, self._processor.state
        with processor.appending() as tail:
            query = declaring_installed(
                lambda: state.engine.bind(sql),
                lambda text: processor.commit(tail, commands.define(text)),
            )
            if calls_operators(query):
                self._find_operators().check_constants(query)
            default = self._home.default_lease_seconds
            terms = commands.make_terms(
                owner, decomposition, initial, lease_seconds, processor.now(), default
            )
            choose = partial(first_choice, state.engine, query)
            candidate = Candidate(sql, lambda: query, choose)
            ((ticket, ticket_hash),) = processor.tickets.issue(1)
            command = commands.subscribe([candidate], terms, [ticket_hash])
            (said,) = command.result
            number = tail.append(command.entries)
            started = said.decomposition, said.initial
            made = Subscription(number, query, processor.lock, *started, ticket=ticket)
            processor.live.add(made)
            state.expect(number, query)
            processor.catch_up()
            state.check_not_suspended(number)
            return processor.live[number]

    def unsubscribe(self, subscription: Subscription | int, *, ticket: str | Owner = OWNER) -> None:
        """End a subscription. TicketError if a ticket is given and not its own."""
        number, processor = id_of(subscription), self._processor
        with processor.appending() as tail:
            processor.tickets.check_one(number, ticket)
            processor.commit(tail, commands.unsubscribe(processor.state, [number]))

    def renew(
        self,
        subscription: Subscription | int,
        lease_seconds: float | None = None,
        *,
        ticket: str | Owner = OWNER,
    ) -> datetime:
        """Begin a lease again, as long as it is said, or as long as it was; until when it lasts.

        It ends no earlier than it would have, unless less time is asked for than it had. A lease
        that has run out can be renewed as long as nobody has noticed. TicketError if a ticket is
        given and not its own.
        """
        number, processor = id_of(subscription), self._processor
        with processor.at_end() as tail:
            processor.tickets.check_one(number, ticket)
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
        number = id_of(subscription)
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


def _hold_home(path: Path, scheme: Scheme, closing: ExitStack) -> Home:
    """A home on disk that nobody else processes until `closing`."""
    home = Home.open(path)
    closing.enter_context(home.processing_lock("hub"))
    claim_family(home, scheme.family, scheme.name)
    return home
