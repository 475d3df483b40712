"""Processes the log of a home in this process, one batch of the message log after another."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

from penstock.client import Delivery
from penstock.errors import HomeError, PenstockError
from penstock.flow.engine import Engine
from penstock.flow.faults import SetAside, is_fault
from penstock.hub.engine_state import Effects, EngineState
from penstock.hub.live_subscriptions import LiveSubscriptions
from penstock.hub.record_runs import split_runs
from penstock.messages import Message, encode_message
from penstock.registry import (
    Clock,
    Command,
    Registry,
    Tickets,
    commands,
    logged_ticket_hash,
    read_clock,
    suspended,
)
from penstock.spaces import Placed
from penstock.storage import AnyHome, BatchHeader, QuarantinedEvent, Record, Tail, set_aside_entry

_Result = TypeVar("_Result")


class Processor:
    """Follows a log: state, messages and live subscriptions are kept up to date with its end.

    `lock` guards all of it; methods that take no lock say so.
    """

    def __init__(
        self, home: AnyHome, registry: Registry | None, state: EngineState, clock: Clock
    ) -> None:
        self.lock = threading.RLock()
        self.state = state
        self.live = LiveSubscriptions()
        self.tickets = Tickets(home, self._ticket_hash_of)
        self.position = 0
        self._home = home
        self._registry = registry
        self._clock = clock
        self._tail: Tail | None = None  # while this process holds the log's append lock
        self._broken: PenstockError | None = None

    def close(self) -> None:
        with self.lock:
            self._broken = HomeError("this hub is closed")

    def now(self) -> float:
        return read_clock(self._clock)

    def _ticket_hash_of(self, subscription: int) -> bytes | None:
        if self._registry is None:
            return logged_ticket_hash(self._home, subscription)
        self._registry.catch_up()  # other processes subscribe, too
        return self._registry.ticket_hash_of(subscription)

    @contextmanager
    def at_end(self) -> Iterator[Tail]:
        """The end of the log, with everything before it processed and the append lock held."""
        with self.lock, self._home.log.appending() as tail:
            self._tail = tail
            try:
                self.advance()
                yield tail
            finally:
                self._tail = None

    @contextmanager
    def appending(self) -> Iterator[Tail]:
        """The same, after withdrawing the subscriptions whose leases have run out."""
        with self.at_end() as tail:
            self.expire(tail)
            yield tail

    @contextmanager
    def reading(self) -> Iterator[Engine]:
        """The engine, with everything in the log processed, under the lock."""
        with self.lock:
            self.advance()
            yield self.state.engine

    def commit(self, tail: Tail, command: Command[_Result]) -> _Result:
        """Append the records of a command, and process them. Within `at_end`."""
        if command.entries:
            tail.append(command.entries)
            self.catch_up()
        return command.result

    def expire(self, tail: Tail) -> list[int]:
        """Withdraw the subscriptions whose leases have run out. Within `at_end`."""
        return self.commit(tail, commands.expire(self.state, self.now()))

    def catch_up(self) -> None:
        """Process the log; update the databases that other processes read. Under the lock."""
        self.advance()
        self._refresh_registry()

    def restore(self) -> None:
        """Bring the state to the end of the message log, then continue from there."""
        self.state.load_faults(self._home)
        frontier = self._home.messages.frontier
        waiting: list[Placed] = []
        if frontier is not None:
            earlier: dict[int, list[Placed]] = {}  # the points known to published batches
            for run in split_runs(self._home.log.read(0, frontier.end)):
                if run[0].offset >= frontier.active:
                    moved = self.state.points_before(run[0])
                    if moved is not None:
                        earlier.setdefault(*moved)
                self._absorb(run)
            self.position = frontier.end
            engine = self.state.engine
            for number in engine.queries:
                if number >= frontier.active or number in earlier:
                    since = earlier[number] if number < frontier.active else None
                    waiting += engine.index.points_of(number, since)
        self.advance(waiting)
        self._refresh_registry()

    def advance(self, waiting: Sequence[Placed] = ()) -> None:
        """Process the records after our position, as one batch of the message log.

        `waiting` are points that no batch has made active yet. Under the lock.
        """
        if self._broken is not None:
            raise self._broken
        end = self._home.log.end
        if end == self.position and not waiting:
            return
        try:
            self._process(end, waiting)
        except BaseException:
            self._broken = HomeError(
                "this hub stopped in the middle of a batch", hint="open the home again"
            )
            raise

    def _process(self, end: int, waiting: Sequence[Placed]) -> None:
        runs = split_runs(self._home.log.read(self.position, end))
        produced = [self._produce_initial(waiting), *map(self._produce, runs)]
        messages = [message for one in produced for message in one.encoded]
        quarantined = [event for one in produced for event in one.quarantined]
        self._home.messages.publish(BatchHeader(self.position, end, end), messages, quarantined)
        self.position = end
        for one in produced:
            self.live.deliver(one.addressed)

    def _produce(self, run: list[Record]) -> _Produced:
        """Process a run of events, or one record of another kind. A record that leads to a fault
        is set aside, and the others are processed without it."""
        while True:
            try:
                return self._produced(self.state.apply(run))
            except Exception as error:
                if not is_fault(error):
                    raise
                self._leave_out_culprits(run, error)

    def _absorb(self, run: list[Record]) -> None:
        """The same for records whose messages are in the message log."""
        while True:
            try:
                return self.state.absorb(run)
            except Exception as error:
                if not is_fault(error):
                    raise
                self._leave_out_culprits(run, error)

    def _leave_out_culprits(self, run: list[Record], error: Exception) -> None:
        """Set aside the records at fault; the state is then that before the run."""
        self._replay(run[0].offset)
        found = self.state.find_culprits(run, error)
        if not found:  # the run fails as a whole, but each part of it succeeds
            raise error
        self._set_aside(found)
        self._replay(run[0].offset)

    def _produce_initial(self, waiting: Sequence[Placed]) -> _Produced:
        """The initial content of points that no batch has made active yet."""
        while True:
            try:
                return self._produced(self.state.initial(self.position, waiting))
            except Exception as error:
                if not is_fault(error):
                    raise
                self._set_aside(self.state.find_initial_culprits(self.position, waiting))
                self._replay(self.position)
                aside = self.state.aside
                waiting = [one for one in waiting if one.point.id.subscription not in aside]

    def _produced(self, effects: Effects) -> _Produced:
        for number, why in effects.ended.items():
            self.live.end(number, why)
        made = effects.deliveries
        encoded = [encode_message(one) for one in made if isinstance(one, Message)]
        addressed = self.live.address(made, self.state.engine.index)
        return _Produced(encoded, addressed, effects.quarantined)

    def _replay(self, end: int) -> None:
        self.state.replay(self._home.log.read(0, end))

    def _set_aside(self, found: list[SetAside]) -> None:
        """Record in the log which records are not processed."""
        entries = [set_aside_entry(one) for one in found]
        if self._tail is not None:
            self._tail.append(entries)
        else:
            self._home.log.append(entries)
        self.state.set_aside(found)
        for one in found:
            self.live.end(one.offset, suspended(one))

    def _refresh_registry(self) -> None:
        if self._registry is not None:
            self._registry.catch_up()


class _Produced(NamedTuple):
    """The output of records."""

    encoded: list[bytes]
    addressed: dict[int, list[Delivery]]
    """By live subscription."""
    quarantined: list[QuarantinedEvent]
