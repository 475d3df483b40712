"""Stories in which subscribers come, renew and leave by tickets, their own and others'.

Who is there at every moment is what a plain model says, and what they hold is what DuckDB says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

from hypothesis import given
from hypothesis import strategies as st

from penstock import Hub
from penstock.errors import SubscriptionError, TicketError
from penstock.flow.changes import Change, Op
from penstock.registry import rebuild
from penstock.sql import parse_relation
from penstock.storage import Home
from penstock.testing.oracle import Oracle, comparable

STOCKS = "CREATE TABLE stocks (id INT PRIMARY KEY, per INT)"
DEFAULT_SECONDS = 4

Move: TypeAlias = tuple[str, int, int]
stories = st.lists(
    st.tuples(
        st.sampled_from(
            ["subscribe", "subscribe", "insert", "renew", "unsubscribe", "time", "reopen"]
        ),
        st.integers(0, 5),
        st.integers(0, 5),
    ),
    max_size=25,
)


class Model:
    """Who is there, by the rules alone: no hash, no log, no registry."""

    def __init__(self) -> None:
        self.now = 0.0
        self.lengths: dict[int, float | None] = {}
        self.ends: dict[int, float | None] = {}
        self.tickets: dict[int, str] = {}
        self.gone: set[int] = set()

    def expire(self) -> None:
        self.gone |= {n for n, end in self.ends.items() if end is not None and end <= self.now}

    @property
    def present(self) -> set[int]:
        return self.tickets.keys() - self.gone

    def add(self, number: int, ticket: str, seconds: float | None) -> None:
        self.tickets[number] = ticket
        self.lengths[number] = seconds
        self.ends[number] = None if seconds is None else self.now + seconds

    def refusal_of_withdrawing(self, number: int, ticket: str) -> type[Exception] | None:
        if self.tickets[number] != ticket:
            return TicketError
        return SubscriptionError if number in self.gone else None

    def refusal_of_renewing(self, number: int, ticket: str) -> type[Exception] | None:
        refused = self.refusal_of_withdrawing(number, ticket)
        return refused or (None if self.lengths[number] else SubscriptionError)

    def renew(self, number: int) -> None:
        length = self.lengths[number]
        assert length is not None
        self.ends[number] = self.now + length


def refusal(call: Callable[[], object]) -> type[Exception] | None:
    try:
        call()
    except SubscriptionError as error:
        return type(error)
    return None


class Story:
    """A Hub on a home, its model, and DuckDB."""

    def __init__(self, path: Path, oracle: Oracle) -> None:
        self.path, self.oracle, self.model = path, oracle, Model()
        self.queries: dict[int, str] = {}
        self.rows = 0
        self.hub = Hub(path, clock=lambda: self.model.now, default_lease_seconds=DEFAULT_SECONDS)
        self.hub.execute(STOCKS)
        oracle.define(parse_relation(STOCKS))

    def move(self, what: str, first: int, second: int) -> None:
        if what in ("renew", "unsubscribe"):
            if self.queries:
                known = list(self.queries)
                number, other = known[first % len(known)], known[second % len(known)]
                getattr(self, what)(number, self.model.tickets[other])
        else:
            getattr(self, what)(first, second)

    def subscribe(self, per: int, seconds: int) -> None:
        self.model.expire()
        sql = f"SELECT * FROM stocks WHERE per >= {per}"
        lease = {0: None, 1: float("inf")}.get(seconds, seconds)
        made = self.hub.subscribe(sql, lease_seconds=lease)
        assert made.ticket is not None
        lasts = {0: float(DEFAULT_SECONDS), 1: None}.get(seconds, float(seconds))
        self.model.add(made.id, made.ticket, lasts)
        self.queries[made.id] = sql

    def insert(self, per: int, _: int) -> None:
        self.model.expire()
        self.rows += 1
        row = {"id": self.rows, "per": per}
        self.hub.insert("stocks", row)
        self.oracle.apply(Change("stocks", Op.INSERT, row))

    def renew(self, number: int, ticket: str) -> None:
        expected = self.model.refusal_of_renewing(number, ticket)
        refused = refusal(lambda: self.hub.renew(number, ticket=ticket))
        assert refused is expected
        if refused is None:
            self.model.renew(number)

    def unsubscribe(self, number: int, ticket: str) -> None:
        self.model.expire()
        expected = self.model.refusal_of_withdrawing(number, ticket)
        refused = refusal(lambda: self.hub.unsubscribe(number, ticket=ticket))
        assert refused is expected
        if refused is None:
            self.model.gone.add(number)

    def time(self, seconds: int, _: int) -> None:
        self.model.now += seconds

    def reopen(self, rebuilt: int, _: int) -> None:
        self.hub.close()
        if rebuilt % 2:
            rebuild(Home.open(self.path))
        self.hub = Hub(self.path, clock=lambda: self.model.now)
        self.model.expire()  # opening looks for leases that have run out

    def check(self) -> None:
        contents = {
            number: comparable(row.values() for row in self.hub.subscription(number).content())
            for number in self.hub.subscriptions()
        }
        expected: dict[int, Counter[tuple[object, ...]]] = {
            number: self.oracle.content(self.queries[number]) for number in self.model.present
        }
        assert contents == expected


@given(stories)
def test_stories(story: list[Move]) -> None:
    with TemporaryDirectory() as directory, Oracle() as oracle:
        told = Story(Path(directory) / "home", oracle)
        for move in story:
            told.move(*move)
            told.check()
        told.hub.close()
