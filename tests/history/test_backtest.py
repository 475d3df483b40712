"""A backtest gives exactly what a live subscription did receive."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock import Hub, Notification, Subscription
from penstock.delivery import SubscriptionBatches
from penstock.delivery.registration import registered
from penstock.errors import HomeError, SqlError
from penstock.history.backtest import Backtest, backtest
from penstock.pipeline.run import run
from penstock.registry import Registry
from penstock.sql import bind
from penstock.storage import Home, RecordKind
from penstock.testing import load_scenario
from penstock.testing.decompositions import numbered_decomposition
from penstock.testing.scenario import Bad, Define, Publish, Replan, Step, Subscribe, Withdraw
from tests.differential.stories import COMPUTED_JOINS, MIXED, Story, stories
from tests.examples import examples
from tests.history.dry import dry_backtest
from tests.pipeline.telling import Teller, interleaved, scenario_paths

Received = list[tuple[int, str, str, str, str]]


@dataclass
class Life:
    """What one live subscription received, and the stretch of the log in which it lived."""

    subscription: Subscription
    received: Received = field(default_factory=list)
    end: int | None = None


def received(notifications: list[Notification]) -> Received:
    """As text, because NaN does not equal itself; without the number of the subscription."""
    return sorted(
        (n.offset, n.id.split(":", 2)[2], n.kind, str(n.before), str(n.after))
        for n in notifications
    )


def live_through(path: Path, steps: list[Step]) -> dict[str, Life]:
    """Tell a story to a Hub, and keep what everybody was told."""
    lives: dict[str, Life] = {}
    with Hub(path) as hub:
        log = Home.open(path).log
        for step in steps:
            match step:
                case Define(sql):
                    hub.execute(sql)
                case Subscribe(name, sql):
                    lives[name] = Life(hub.subscribe(sql))
                case Replan(name, plan):
                    sub = lives[name].subscription
                    hub.replan(sub, numbered_decomposition(bind(sub.sql, hub.catalog), plan))
                case Withdraw(name):
                    life = lives[name]
                    life.received = received(life.subscription.notifications())
                    life.end = log.end
                    hub.unsubscribe(life.subscription)
                case Publish(changes):
                    hub.apply(changes)
                case Bad(raw):
                    log.append([(RecordKind.EVENT, raw)])
        hub.subscriptions()  # goes on to the end of the log
        for life in lives.values():
            if life.end is None:
                life.received = received(life.subscription.notifications())
    return lives


BAD = (b"no event", b'{"table": "t0", "op": "delete", "row": {"id": 99}}', b'{"table": "nowhere"}')


@pytest.mark.slow
@settings(max_examples=examples(80))
@given(
    story=stories(MIXED, max_steps=16) | stories(COMPUTED_JOINS, max_steps=12),
    bad=st.lists(st.sampled_from(BAD), max_size=4),
)
def test_a_backtest_equals_the_live_subscription(story: Story, bad: list[bytes]) -> None:
    steps = list(story.steps)
    for i, raw in enumerate(bad):
        steps.insert(len(steps) - 3 * i if 3 * i < len(steps) else 0, Bad(raw))
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "home"
        for life in live_through(path, steps).values():
            sub = life.subscription
            tested = dry_backtest(Home.open(path), [sub.sql], sub.id, life.end).queries[0]
            assert received(tested.notifications) == life.received
            assert tested.totals.notifications == sum(tested.totals.by_range) == len(life.received)


@pytest.mark.slow
@settings(max_examples=examples(12))
@given(story=stories(MIXED, max_steps=12), at_once=st.sampled_from([1, 4]))
def test_many_queries_at_once_from_any_offset(story: Story, at_once: int) -> None:
    """All queries of a story from some offsets: the same as each alone, however the log is cut."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "home"
        live_through(path, story.steps)
        home = Home.open(path)
        texts = [step.sql for step in story.steps if isinstance(step, Subscribe)]
        for start in range(0, home.log.end, 7):
            together = dry_backtest(home, texts, start)
            alone = [dry_backtest(home, [sql], start, records=at_once).queries[0] for sql in texts]
            assert [received(one.notifications) for one in together.queries] == [
                received(one.notifications) for one in alone
            ]
            assert [one.totals for one in together.queries] == [one.totals for one in alone]


@pytest.fixture
def told(tmp_path: Path) -> tuple[Home, dict[str, Life]]:
    steps = [step for path in scenario_paths() for step in load_scenario(path)]
    lives = live_through(tmp_path / "home", steps)
    return Home.open(tmp_path / "home"), lives


@pytest.fixture(name="home")
def small_home(tmp_path: Path) -> Home:
    with Hub(tmp_path / "home") as hub:
        hub.execute("CREATE TABLE a (id INTEGER PRIMARY KEY, x INTEGER)")
        hub.execute("CREATE TABLE b (id INTEGER PRIMARY KEY, x INTEGER)")
        for i in range(4):
            hub.insert("a", {"id": i, "x": i % 2})
        hub.insert("b", {"id": 7, "x": 1})
        hub.delete("a", {"id": 1})
    return Home.open(tmp_path / "home")


def test_totals_and_ranges(home: Home) -> None:
    tested = dry_backtest(home, ["SELECT * FROM a"], ranges=3)
    (one,) = tested.queries
    assert (one.totals.inserts, one.totals.updates, one.totals.deletes) == (4, 0, 1)
    assert one.totals.rows == 3
    assert tested.ranges == [(0, 3), (3, 6), (6, 8)]
    assert one.totals.by_range == (1, 3, 1)


def test_the_first_content_comes_at_the_start(home: Home) -> None:
    sql = "SELECT a.id, b.id AS other FROM a JOIN b USING (x)"
    one = dry_backtest(home, [sql], start=7).queries[0]
    # At offset 7 row 1 is deleted: who is welcomed by the batch that begins there never sees it.
    assert [(n.offset, n.kind, n.after) for n in one.notifications] == [
        (7, "insert", {"id": 3, "other": 7})
    ]
    assert one.totals.rows == 1


def test_only_so_many_are_shown_but_all_are_counted(home: Home) -> None:
    one = dry_backtest(home, ["SELECT * FROM a"], shown=2).queries[0]
    assert [n.offset for n in one.notifications] == [2, 3]
    assert one.totals.notifications == 5


def test_nothing_matches(home: Home) -> None:
    one = dry_backtest(home, ["SELECT * FROM a WHERE x > 5"]).queries[0]
    assert (one.totals.notifications, one.totals.rows, one.notifications) == (0, 0, [])
    assert one.totals.by_range == (0, 0, 0, 0)


def test_refused_events_are_counted(home: Home) -> None:
    event = b'{"table": "a", "op": "insert", "row": {"id": 0}}'
    home.log.append([(RecordKind.EVENT, event), (RecordKind.EVENT, b"?")])
    assert dry_backtest(home, ["SELECT * FROM a"]).refused == 2
    assert dry_backtest(home, ["SELECT * FROM b"]).refused == 1
    assert dry_backtest(home, ["SELECT * FROM a"], start=9).refused == 1


@pytest.mark.parametrize(("start", "end"), [(-1, None), (9, None), (0, 9), (5, 4)])
def test_a_stretch_that_is_not_there(home: Home, start: int, end: int | None) -> None:
    with pytest.raises(HomeError, match="not a stretch of this log"):
        backtest(home.path, ["SELECT * FROM a"], start=start, end=end)


def test_a_query_that_is_refused(home: Home) -> None:
    with pytest.raises(SqlError) as refusal:
        backtest(home.path, ["SELECT * FROM a", "SELECT * FROM c"])
    assert "statement 2 of 2" in refusal.value.detail
    with pytest.raises(SqlError, match="b"):
        backtest(home.path, ["SELECT * FROM b"], end=1)


def test_with_spark(
    spark: SparkSession, told: tuple[Home, dict[str, Life]], tmp_path: Path
) -> None:
    """On Spark, beside a Hub that holds the home's lock: as many as start at one offset at once."""
    home, lives = told
    files = sorted(path for path in home.path.rglob("*") if path.suffix not in {".db", ".log"})
    starts: dict[tuple[int, int | None], list[Life]] = {}
    for life in list(lives.values())[-6:]:
        starts.setdefault((life.subscription.id, life.end), []).append(life)
    shown: list[tuple[int, int]] = []
    with Hub(home.path):
        for (start, end), mine in starts.items():
            tested = backtest(
                home.path,
                [life.subscription.sql for life in mine],
                start=start,
                end=end,
                on_progress=lambda done, total: shown.append((done, total)),
            )
            got = [received(one.notifications) for one in tested.queries]
            assert got == [life.received for life in mine]
    assert shown
    assert {p for p in home.path.rglob("*") if p.suffix not in {".db", ".log"}} >= set(files)


def test_with_spark_against_the_pipeline(spark: SparkSession, tmp_path: Path) -> None:
    """Everybody who was subscribed before the only batch is tested from where it began."""
    teller = Teller(Home.create(tmp_path / "home"))
    steps = [s for s in interleaved(scenario_paths()) if not isinstance(s, Withdraw)]
    for kind in (Define, Subscribe):
        teller.tell(step for step in steps if isinstance(step, kind))
    start = teller.home.log.end
    assert run(tmp_path / "home", once=True).position == start
    teller.tell(step for step in steps if not isinstance(step, Define | Subscribe))
    run(tmp_path / "home", once=True, batch_rows=100)
    names = list(teller.ids)
    texts = [step.sql for step in steps if isinstance(step, Subscribe)]
    tested = backtest(tmp_path / "home", texts, start=start)
    for name, one in zip(names, tested.queries, strict=True):
        assert received(one.notifications) == live(teller.home, teller.registry, teller.ids[name])
    assert tested.refused == len(teller.bad)
    check_counts(tested)


def live(home: Home, registry: Registry, number: int) -> Received:
    """What the message log holds for a subscription."""
    registration = registered(registry, registry.subscription(number))
    content = registration.new_client()
    told: list[Notification] = []
    for _, messages in SubscriptionBatches(home.messages, registration).new():
        told += content.apply(messages)
    return received(told)


def check_counts(tested: Backtest) -> None:
    assert any(one.totals.deletes for one in tested.queries)
    for one in tested.queries:
        assert one.totals.notifications == len(one.notifications) == sum(one.totals.by_range)
