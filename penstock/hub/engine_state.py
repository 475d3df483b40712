"""The state derived from the log: tables, rows, subscriptions, leases, faults.

A Hub uses `penstock.flow.engine` for processing records only through this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from penstock.client import Delivery, Initial, Switch
from penstock.errors import ChangeError, RecordError, SqlError, SubscriptionError
from penstock.flow.attempts import culprits_of_events, culprits_of_initial
from penstock.flow.engine import Engine
from penstock.flow.faults import SetAside, describe_fault
from penstock.flow.kinds import Reason
from penstock.hub.record_runs import split_runs
from penstock.joins import Scheme
from penstock.query import Query
from penstock.registry import (
    LEASE_RAN_OUT,
    Lease,
    Leases,
    Withdrawal,
    ran_out,
    renewed,
    replan_of,
    subscribed,
    suspended,
    withdrawn,
)
from penstock.spaces import Placed
from penstock.storage import (
    AnyHome,
    QuarantinedEvent,
    Record,
    RecordKind,
    events_not_applied,
    refusal,
    set_aside_in,
    suspects_among,
)


@dataclass
class Effects:
    """The outcome of a run of records."""

    deliveries: Sequence[Delivery] = ()
    quarantined: list[QuarantinedEvent] = field(default_factory=list)
    ended: dict[int, SubscriptionError] = field(default_factory=dict)
    """Withdrawn subscriptions, and the error for their holders."""


class EngineState:
    """The engine, and everything else derived from the records before some offset. Not thread-safe.

    It is the `Directory` for the commands of a Hub (`penstock.registry.commands`).
    """

    def __init__(self, make_scheme: Callable[[], Scheme]) -> None:
        self._make_scheme = make_scheme
        self.engine = Engine(make_scheme())
        self.aside: dict[int, SetAside] = {}  # records that led to faults
        self._leases = Leases()
        self._run_out: set[int] = set()  # subscriptions ended by their leases
        self._not_applied: dict[int, ChangeError] = {}  # events that are in quarantine
        self._refused: dict[int, ChangeError] = {}
        """Events of the last run on which operators failed: everything else was checked before."""
        self._bound: dict[int, Query] = {}  # by offset, for SUBSCRIBE records to come

    # For commands

    def check_present(self, subscription: int) -> None:
        if subscription not in self.aside:
            self.query_of(subscription)

    def lease_of(self, subscription: int) -> Lease | None:
        if subscription in self._run_out:
            raise ran_out(subscription)
        self.query_of(subscription)
        return self._leases[subscription]

    def query_of(self, subscription: int) -> Query:
        return self.engine.query(subscription)

    def run_out(self, now: float, most: int) -> list[int]:
        return self._leases.run_out(now)[:most]

    def expect(self, offset: int, query: Query) -> None:
        """The SUBSCRIBE record at this offset has this query: it need not be bound again."""
        self._bound[offset] = query

    # Faults

    def load_faults(self, home: AnyHome) -> None:
        """Load which records of a home are not processed."""
        self.aside = set_aside_in(home.log)
        self._not_applied = events_not_applied(home)

    def set_aside(self, found: Iterable[SetAside]) -> None:
        for one in found:
            self.aside[one.offset] = one
            self._not_applied[one.offset] = refusal(one)

    def check_not_suspended(self, subscription: int) -> None:
        if subscription in self.aside:
            raise suspended(self.aside[subscription])

    def check_applied(self, offsets: range) -> None:
        """ChangeError if processing one of these events failed."""
        for offset in offsets:
            error = self._refused.get(offset)
            if offset in self.aside:
                error = refusal(self.aside[offset])
            if error is not None:
                where = f"the event at offset {offset} is in quarantine; the others are applied"
                detail = f"{error.detail}; {where}" if offset in self._refused else where
                raise ChangeError(error.primary, detail=detail, hint=error.hint)

    def find_culprits(self, run: list[Record], error: Exception) -> list[SetAside]:
        """The records at fault in a failed run; the state is that before the run."""
        record = run[0]
        match record.kind:
            case RecordKind.EVENT:
                suspects = suspects_among(self.aside.values())
                events = self._accepted(run)
                return culprits_of_events(self.engine, events, self._make_scheme, suspects)
            case RecordKind.WITHDRAW if not isinstance(error, RecordError):
                return [SetAside(withdrawn(record.body).id, describe_fault(error))]
        return [SetAside(record.offset, describe_fault(error))]

    def find_initial_culprits(self, offset: int, waiting: Sequence[Placed]) -> list[SetAside]:
        """The subscriptions at fault in a failed computation of initial content."""
        return culprits_of_initial(self.engine, offset, waiting, self._make_scheme)

    # Records

    def apply(self, run: list[Record]) -> Effects:
        """Apply a run of events, or one record of another kind."""
        record = run[0]
        if record.kind is RecordKind.EVENT:
            return self._apply_events(run)
        if record.offset in self.aside:
            return Effects()
        match record.kind:
            case RecordKind.DDL:
                self.engine.define(record.offset, record.body.decode())
            case RecordKind.SUBSCRIBE:
                return Effects(self.engine.initial(record.offset, self._enrol(record)))
            case RecordKind.WITHDRAW:
                return self._withdraw(withdrawn(record.body))
            case RecordKind.RENEW:
                self._leases.note(*renewed(record.body))
            case RecordKind.REPLAN:
                replan = replan_of(record)
                if replan.subscription in self.engine.queries:  # others no longer bind
                    return Effects([Switch.at(record.offset, replan), *self.engine.replan(replan)])
        return Effects()

    def absorb(self, run: list[Record]) -> None:
        """Apply records whose messages are in the message log: only the state changes."""
        record = run[0]
        if record.kind is RecordKind.EVENT:
            self.engine.absorb(self._accepted(run))
            return
        if record.offset in self.aside:
            return
        match record.kind:
            case RecordKind.SUBSCRIBE:
                self._enrol(record)
            case RecordKind.REPLAN:
                replan = replan_of(record)
                if replan.subscription in self.engine.queries:
                    self.engine.move(replan)
            case _:
                self.apply(run)

    def initial(self, offset: int, waiting: Sequence[Placed]) -> Effects:
        """The initial content of points."""
        return Effects(self.engine.initial(offset, waiting))

    def points_before(self, record: Record) -> tuple[int, list[Placed]] | None:
        """The subscription of a REPLAN record, and where its points are before it."""
        if record.kind is RecordKind.REPLAN:
            with suppress(RecordError):
                number = replan_of(record).subscription
                return number, list(self.engine.index.points_of(number))
        return None

    def replay(self, records: Iterable[Record]) -> None:
        """Start with a new engine and absorb records: a fault leaves the old one inconsistent."""
        before = self.engine
        self.engine = Engine(self._make_scheme())
        self.engine.index.samples, self.engine.operators = before.index.samples, before.operators
        for run in split_runs(records):
            self.absorb(run)

    def _accepted(self, run: list[Record]) -> list[tuple[int, bytes]]:
        """The events that are not in quarantine."""
        return [(one.offset, one.body) for one in run if one.offset not in self._not_applied]

    def _apply_events(self, run: list[Record]) -> Effects:
        accepted = self._accepted(run)
        outcome = self.engine.events(accepted)
        self._refused = {offset: _as_error(reason) for offset, reason in outcome.refused}
        reasons: dict[int, tuple[str, str, str]] = dict(outcome.refused)
        quarantined = []
        for one in run if reasons or len(accepted) < len(run) else ():
            if one.offset in self._not_applied:
                reasons[one.offset] = self._not_applied[one.offset].reason()
            if one.offset in reasons:
                quarantined.append(QuarantinedEvent(one.offset, one.body, *reasons[one.offset]))
        return Effects(outcome.messages, quarantined)

    def _enrol(self, record: Record) -> list[Placed]:
        """Activate the subscription of a record; returns its points."""
        query, said = self._bound.pop(record.offset, None), subscribed(record.body)
        try:
            query = query or self.engine.bind(said.sql)
        except SqlError:
            return []  # accepted by an older release; the registry lists it as broken
        self._leases.note(record.offset, said.lease)
        changes_only = said.initial is Initial.NONE
        chosen = said.decomposition
        return self.engine.enrol(record.offset, query, chosen, changes_only=changes_only)

    def _withdraw(self, gone: Withdrawal) -> Effects:
        number = gone.id
        self._leases.note(number, None)
        if number in self.engine.queries:  # others no longer bind, or are suspended
            self.engine.withdraw(number)
        why = SubscriptionError(f"subscription {number} was withdrawn")
        if gone.reason == LEASE_RAN_OUT:
            self._run_out.add(number)
            why = ran_out(number)
        return Effects(ended={number: why})


def _as_error(reason: Reason) -> ChangeError:
    return ChangeError(reason.primary, detail=reason.detail, hint=reason.hint)
