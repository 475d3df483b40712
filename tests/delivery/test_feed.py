"""Messages in one order with marks, and batches put together again far away."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from penstock import Hub
from penstock.client import News
from penstock.delivery import (
    Description,
    MessageFeed,
    ReceivedSubscription,
    Step,
    SubscriptionReader,
    description_from_plain,
    plain_description,
)
from penstock.delivery.marks import MARKS, mark_of
from penstock.errors import CompactedError, NetworkError, SubscriptionError
from penstock.maintenance import compact
from penstock.messages import Message
from penstock.network.clients import Client, LocalClients
from penstock.packing import pack, unpack
from penstock.routing.interests import SpaceShape
from penstock.spaces import Choice, decomposition_of
from penstock.sql import bind
from penstock.storage import Home
from tests.hub.test_arguments import quietly

TABLES = (
    "CREATE TABLE r (id BIGINT PRIMARY KEY, k INTEGER, a INTEGER)",
    "CREATE TABLE s (id BIGINT PRIMARY KEY, k INTEGER, b INTEGER)",
    "CREATE TABLE t (id BIGINT PRIMARY KEY, k INTEGER, c INTEGER)",
)
QUERIES = (
    "SELECT * FROM r WHERE a > 2",
    "SELECT r.id, b FROM r JOIN s USING (k) WHERE a BETWEEN 1 AND 4 AND b < 4",
    (
        "SELECT r.id, b, c FROM r JOIN s ON r.k = s.k JOIN t ON s.k = t.k "
        "WHERE a > 1 AND b > 1 AND c > 0"
    ),
)


def change_rows(hub: Hub, random: Random, times: int) -> None:
    for _ in range(times):
        table, column = random.choice((("r", "a"), ("s", "b"), ("t", "c")))
        number = random.randrange(12)
        row = {"id": number, "k": random.randrange(3), column: random.randrange(6)}
        hub.upsert(table, row)


class Reader:
    """Gets from a feed what a broker would deliver."""

    def __init__(self, feed: MessageFeed, number: int, shapes: dict[int, SpaceShape]) -> None:
        self.feed, self.shapes = feed, shapes
        self.received = ReceivedSubscription(self.describe(number))
        self.news: list[News] = []
        self.steps: list[Step] = []
        self.attach()

    def describe(self, number: int) -> Description:
        described = plain_description(self.feed.describe(number), self.feed.catalog())
        return description_from_plain(unpack(pack(described)))

    def attach(self) -> None:
        points = self.received.described.points()
        self.clients = LocalClients(self.shapes)
        self.client = Client("one", "feed", tuple(points), 0)
        self.clients.add(self.client)
        self.at = self.received.cursor

    def catch_up(self, most: int = 7) -> None:
        while found := self.feed.read(self.at, most):
            for sequence, message in found:
                self.at = sequence
                if message.space in self.shapes and self.clients.is_meant(message, self.client):
                    self.take(sequence, message)
                    if self.at != sequence:
                        break

    def take(self, sequence: int, message: Message) -> None:
        step = self.received.take(sequence, message)
        self.steps.append(step)
        if step is Step.BATCH:
            news = self.received.apply()
            self.news += [] if news is None else [news]
        elif step is not Step.TAKEN:
            if step is Step.DESCRIBE:
                self.received.describe(self.describe(self.received.described.id))
            self.attach()


def advance(feed: MessageFeed, shapes: dict[int, SpaceShape]) -> None:
    shapes |= {one.space: one for one in feed.advance()}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def expected(home: Path, number: int) -> list[News]:
    return list(SubscriptionReader(Home.open(home), number).new())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_far_away_the_same_is_reported_as_at_home(home: Path, seed: int) -> None:
    random, shapes = Random(seed), dict[int, SpaceShape]()
    with Hub(home, reoptimise_every=20) as hub:
        for sql in TABLES:
            hub.execute(sql)
        change_rows(hub, random, 20)
        feed = MessageFeed(Home.open(home))
        readers = []
        for sql in QUERIES:
            subscription = hub.subscribe(sql)
            changes_only = hub.subscribe(sql, initial="none")
            advance(feed, shapes)
            readers += [Reader(feed, one.id, shapes) for one in (subscription, changes_only)]
        for _ in range(10):
            change_rows(hub, random, random.randrange(8))
            advance(feed, shapes)
            for reader in readers:
                reader.catch_up(random.choice((1, 3, 100)))
        for reader in readers:
            number = reader.received.described.id
            assert reader.news == expected(home, number)
        for reader in readers[::2]:
            rows = SubscriptionReader(Home.open(home), reader.received.described.id)
            rows.catch_up()
            assert reader.received.rows() == rows.rows()


def test_a_replan_is_described_again(home: Path) -> None:
    random, shapes = Random(3), dict[int, SpaceShape]()
    with Hub(home, reoptimise_every=None) as hub:
        for sql in TABLES:
            hub.execute(sql)
        sub = hub.subscribe(QUERIES[2])
        change_rows(hub, random, 60)
        feed = MessageFeed(Home.open(home))
        advance(feed, shapes)
        reader = Reader(feed, sub.id, shapes)
        reader.catch_up()
        assert Step.DESCRIBE not in reader.steps
        first, _, last = decomposition_of(bind(QUERIES[2], hub.catalog), None)[0]
        hub.replan(sub, ((first, Choice(2, (2,)), last),))
        change_rows(hub, random, 10)
        advance(feed, shapes)
        reader.catch_up()
        assert reader.steps.count(Step.DESCRIBE) == 1
        assert reader.news == expected(home, sub.id)
        hub.unsubscribe(sub.id)
        change_rows(hub, random, 1)
        advance(feed, shapes)
        with pytest.raises(SubscriptionError, match="withdrawn"):
            reader.catch_up()


def test_a_base_is_for_those_who_begin(home: Path) -> None:
    random, shapes = Random(4), dict[int, SpaceShape]()
    with Hub(home) as hub:
        for sql in TABLES:
            hub.execute(sql)
        sub = hub.subscribe(QUERIES[1])
        change_rows(hub, random, 30)
        feed = MessageFeed(Home.open(home))
        advance(feed, shapes)
        behind, level = (Reader(feed, sub.id, shapes) for _ in range(2))
        change_rows(hub, random, 3)
        advance(feed, shapes)
        for _ in range(3):
            for sequence, message in feed.read(behind.at, 5):
                behind.at = sequence
                behind.take(sequence, message)
        level.catch_up()
    compact(Home.open(home), quietly)
    behind.at = behind.received.cursor
    with pytest.raises(CompactedError):
        behind.catch_up()
    level.catch_up()
    fresh = Reader(feed, sub.id, shapes)
    fresh.catch_up()
    with Hub(home) as hub:
        change_rows(hub, random, 10)
        advance(feed, shapes)
        for reader in (level, fresh):
            reader.catch_up()
            assert {tuple(row.items()) for row in reader.received.rows()} == {
                tuple(row.items()) for row in hub.subscription(sub.id).content()
            }
            assert reader.received.position == hub.snapshot(sub.id).cursor


def test_a_batch_that_is_not_the_one_that_began_is_sent_again(home: Path) -> None:
    shapes = dict[int, SpaceShape]()
    with Hub(home) as hub:
        hub.execute(TABLES[0])
        sub = hub.subscribe(QUERIES[0])
        hub.insert("r", {"id": 1, "k": 1, "a": 5})
        feed = MessageFeed(Home.open(home))
        advance(feed, shapes)
        reader = Reader(feed, sub.id, shapes)
        messages = feed.read(reader.at, 100)
        end = next(m for m in messages if m[1].space == MARKS.space and mark_of(m[1]).part)
        assert reader.received.take(*end) is Step.AGAIN
        with pytest.raises(NetworkError, match="mark"):
            reader.received.take(end[0], end[1]._replace(row=(1, 2)))


@pytest.mark.parametrize("plain", [None, [1], [1, [], [], None, "content", [], 0, 0, 0]])
def test_what_is_no_description_is_refused(plain: object) -> None:
    with pytest.raises(NetworkError, match="description"):
        description_from_plain(plain)
