"""The promise: at every offset, the content built from messages is what the SQL returns.

Content alone, fed by a server that looks at every row, against DuckDB. (Real servers are held to
the same promise in tests/differential and tests/pipeline.)
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.client import ChangesOnlyClient, Content, ContentRow, Delivery, Notification
from penstock.client.saving import plain_content, restored_content
from penstock.flow.changes import Change, Op
from penstock.messages import Message, decode_message, encode_message
from penstock.packing import pack, unpack
from penstock.query import Query
from penstock.spaces import Decomposition
from penstock.sql import bind
from penstock.testing.decompositions import numbered_decomposition
from penstock.testing.oracle import Oracle, comparable
from penstock.testing.scenario import Define, Publish, Replan, Subscribe, Withdraw
from tests.client.plain_server import PlainFeed, PlainServer
from tests.differential.stories import (
    MIXED,
    MULTI_WAY,
    PAIRS,
    SELECTIONS,
    SELF_JOINS,
    Story,
    stories,
)
from tests.examples import examples


class Subscriber:
    """A content, a copy of it that is saved and restored after every offset, one that only absorbs,
    one that starts silently; and what a careful reader makes of the notifications."""

    def __init__(self, feed: PlainFeed, number: int, query: Query, chosen: Decomposition | None):
        self.feed = feed
        self.query = query
        self.content = Content(number, query, chosen)
        self._saved = Content(number, query, chosen)
        self._absorbing = Content(number, query, chosen)
        self._silent = Content(number, query, chosen, quiet=True)
        self._rows: Counter[str] = Counter()
        self._seen: set[str] = set()

    def take(self, deliveries: list[Delivery], *, is_initial: bool = False) -> None:
        arrived = sorted(map(travelled, deliveries), key=lambda one: one.position)
        told = self.content.apply(arrived)
        self._absorbing.absorb(arrived)
        self._saved = restored(self._saved)
        assert list(map(repr, self._saved.apply(arrived))) == list(map(repr, told))
        silent = self._silent.apply(arrived)
        assert list(map(repr, silent)) == ([] if is_initial else list(map(repr, told)))
        for one in told:
            self._follow(one, is_initial)

    def _follow(self, one: Notification, is_initial: bool) -> None:
        """Every notification fits what the reader holds; no id comes twice."""
        assert one.id not in self._seen
        self._seen.add(one.id)
        assert ":initial:" in one.id if is_initial else ":initial:" not in one.id
        assert repr(one.before) != repr(one.after)
        if one.before is not None:
            (gone,) = texts([one.before])
            assert self._rows[gone] > 0
            self._rows[gone] -= 1
        if one.after is not None:
            self._rows += texts([one.after])

    def check(self, oracle: Oracle) -> None:
        expected = oracle.content(self.query.sql)
        for built in (self.content, self._saved, self._absorbing, self._silent):
            assert comparable(row.values() for row in built.rows()) == expected
        assert +self._rows == texts(self.content.rows())
        for point, rows in self.feed.held.items():
            held = dict(self.content.branches[point.branch].items(point.node))
            assert repr(sorted(held.items(), key=repr)) == repr(sorted(rows.items(), key=repr))


def travelled(one: Delivery) -> Delivery:
    """As it comes from the message log."""
    return decode_message(encode_message(one)) if isinstance(one, Message) else one


def restored(content: Content) -> Content:
    plain = unpack(pack(plain_content(content)))
    return restored_content(plain, content.subscription, content.query)


def texts(rows: Iterable[ContentRow]) -> Counter[str]:
    """NaN is not equal to itself, its text is."""
    return Counter(repr(list(row.items())) for row in rows)


def keep_promise(story: Story, seed: int) -> int:
    """Tell a story; how many contents were compared that had rows."""
    server, live, full = PlainServer(random.Random(seed)), dict[str, Subscriber](), 0
    with Oracle() as oracle:
        for step in story.steps:
            match step:
                case Define(sql):
                    oracle.define(server.define(sql))
                case Subscribe(name, sql, plan):
                    live[name] = subscribed(server, sql, plan)
                case Withdraw(name):
                    live.pop(name)
                case Replan(name, plan):
                    server.offset += 1
                    one = live[name]
                    one.take(one.feed.replan(numbered_decomposition(one.query, plan)))
                case Publish(changes):
                    for change in changes:
                        server.apply(change)
                        oracle.apply(change)
                        for one in live.values():
                            one.take(one.feed.changes())
                            one.check(oracle)
            for one in live.values():
                one.check(oracle)
                full += bool(one.content.rows())
    return full


def subscribed(server: PlainServer, sql: str, plan: int | None) -> Subscriber:
    server.offset += 1
    number, query = server.offset - 1, bind(sql, server.catalog)
    chosen = None if plan is None else numbered_decomposition(query, plan)
    feed = PlainFeed(server, number, query, chosen)
    one = Subscriber(feed, number, query, chosen)
    one.take(feed.initial(), is_initial=True)
    return one


seeds = st.integers(0, 2**32)


@settings(max_examples=examples(60))
@given(stories(SELECTIONS), seeds)
def test_over_one_table(story: Story, seed: int) -> None:
    keep_promise(story, seed)


@settings(max_examples=examples(60))
@given(stories(PAIRS, any_plan=True), seeds)
def test_over_two_tables(story: Story, seed: int) -> None:
    keep_promise(story, seed)


@settings(max_examples=examples(30))
@given(stories(MULTI_WAY, any_plan=True), seeds)
def test_over_many_tables(story: Story, seed: int) -> None:
    keep_promise(story, seed)


@settings(max_examples=examples(40))
@given(stories(SELF_JOINS, any_plan=True), seeds)
def test_over_a_table_joined_with_itself(story: Story, seed: int) -> None:
    keep_promise(story, seed)


def test_a_row_that_several_branches_hold() -> None:
    """It stays as long as one of them holds it, also after the content was saved."""
    rows = [{"id": 1, "a": 1, "b": 1}, {"id": 1, "b": 2}, {"id": 1, "a": 2}, {"id": 1, "b": 1}]
    changes = [
        Publish((Change("t", Op.UPDATE if number else Op.INSERT, row),))
        for number, row in enumerate(rows)
    ]
    story = Story(
        [
            Define("CREATE TABLE t (id BIGINT PRIMARY KEY, a BIGINT, b BIGINT)"),
            Subscribe("both", "SELECT * FROM t WHERE a = 1 OR b = 1"),
            *changes,
        ]
    )
    for seed in range(8):
        assert keep_promise(story, seed) == 3


@pytest.mark.slow
def test_stories_are_not_empty() -> None:
    """What the other tests compare is worth comparing."""
    full: list[int] = []

    @settings(max_examples=25, database=None, derandomize=True)
    @given(stories(MIXED, any_plan=True), seeds)
    def tell(story: Story, seed: int) -> None:
        full.append(keep_promise(story, seed))

    tell()
    assert sum(full) > 25


@settings(max_examples=examples(60))
@given(stories(SELECTIONS), seeds)
def test_changes_only(story: Story, seed: int) -> None:
    """Without any rows, the same changes are told as to one that has them."""
    server, live = PlainServer(random.Random(seed)), dict[str, Subscriber]()
    blind: dict[str, ChangesOnlyClient] = {}
    server._chance.random = lambda: 1.0  # type: ignore[method-assign]  # regions, never names
    for step in story.steps:
        match step:
            case Define(sql):
                server.define(sql)
            case Subscribe(name, sql, plan):
                one = live[name] = subscribed(server, sql, plan)
                blind[name] = ChangesOnlyClient(one.content.subscription, one.query)
            case Publish(changes):
                for change in changes:
                    server.apply(change)
                    for name, one in live.items():
                        deliveries = one.feed.changes()
                        told = one.content.apply(deliveries)
                        assert repr(blind[name].apply(deliveries)) == repr(told)
