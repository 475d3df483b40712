"""Runs of the pipeline on Spark: hand-overs, subscriptions while it runs, locks, failures."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock import Change, Hub, Op
from penstock.errors import HomeError, LockedError
from penstock.joins.initial_regions import MANY_NEWCOMERS
from penstock.maintenance.verification import verify
from penstock.messages import decode_message
from penstock.pipeline.run import run
from penstock.registry import Registry
from penstock.storage import Home, RecordKind
from penstock.testing.scenario import Define, Subscribe
from tests.pipeline.running import Running
from tests.pipeline.telling import Plain, Teller, told_to

STOCKS = Define("CREATE TABLE stocks (id BIGINT PRIMARY KEY, symbol VARCHAR, per DOUBLE)")
REVIEWS = Define("CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol VARCHAR, rating INTEGER)")
PRAISED = (
    "SELECT stocks.symbol, rating FROM stocks JOIN reviews ON stocks.symbol = reviews.symbol "
    "WHERE per < 50 AND rating > 5"
)


def stock(number: int, symbol: str, per: float = 10) -> Change:
    return Change("stocks", Op.UPSERT, {"id": number, "symbol": symbol, "per": per})


def review(number: int, symbol: str, rating: int = 9) -> Change:
    return Change("reviews", Op.UPSERT, {"id": number, "symbol": symbol, "rating": rating})


def praised(*symbols: str) -> Plain:
    return Counter({(("symbol", symbol), ("rating", 9)): 1 for symbol in symbols})


@pytest.fixture
def teller(tmp_path: Path) -> Teller:
    teller = Teller(Home.create(tmp_path / "home"))
    teller.tell([STOCKS, REVIEWS, Subscribe("one", PRAISED)])
    return teller


def test_an_empty_home(spark: SparkSession, tmp_path: Path) -> None:
    home = Home.create(tmp_path / "home")
    assert run(home.path, once=True).position == 0
    assert home.messages.frontier is None
    assert list(home.staging.iterdir()) == []


def test_hub_and_pipeline_take_turns(spark: SparkSession, teller: Teller) -> None:
    path = teller.home.path
    with Hub(path) as hub:
        hub.apply([stock(1, "A"), review(1, "A")])
        assert hub.subscription(teller.ids["one"]).content() == [{"symbol": "A", "rating": 9}]
    # Waiting when the pipeline takes over: a subscription, and changes.
    teller.tell([Subscribe("two", PRAISED)])
    teller.publish(stock(2, "B"), review(2, "B"))
    before = list(teller.home.messages.batches())
    run(path, once=True)
    assert list(teller.home.messages.batches())[: len(before)] == before
    assert teller.content("one") == teller.content("two") == praised("A", "B")

    with Hub(path) as hub:
        two = hub.subscription(teller.ids["two"])
        assert len(two.content()) == 2
        teller.ids["three"] = hub.subscribe(PRAISED).id
        hub.apply([review(1, "A", 1), review(3, "C"), stock(3, "C")])
        assert len(two.content()) == 2
    teller.publish(stock(4, "D"), review(4, "D"))
    run(path, once=True, batch_rows=1)
    for name in ("one", "two", "three"):
        assert teller.content(name) == praised("B", "C", "D")

    # A checkpoint that is lost is rebuilt from the log; what was published stays as it is.
    published = {p.name: p.read_bytes() for p in teller.home.messages.directory.iterdir()}
    for part in teller.home.checkpoint.iterdir():
        shutil.rmtree(part) if part.is_dir() else part.unlink()
    teller.publish(stock(5, "E"), review(5, "E"), review(2, "B", 1))
    run(path, once=True)
    now = {p.name: p.read_bytes() for p in teller.home.messages.directory.iterdir()}
    assert published.items() < now.items()
    for name in ("one", "two", "three"):
        assert teller.content(name) == praised("C", "D", "E")


def test_a_subscription_becomes_active_while_the_query_runs(
    spark: SparkSession, teller: Teller
) -> None:
    path = teller.home.path
    teller.publish(stock(1, "A"), review(1, "A"))
    with Running(path) as running:
        running.wait_for(lambda: teller.content("one") == praised("A"))
        # Nobody else may process this home meanwhile, neither here nor in another process.
        with pytest.raises(LockedError, match="pipeline"):
            run(path, once=True)
        with pytest.raises(LockedError, match="pipeline"):
            Hub(path)
        teller.tell([Subscribe("two", PRAISED)])
        running.wait_for(lambda: teller.content("two") == praised("A"))
        teller.publish(stock(2, "B"), review(2, "B"))
        running.wait_for(lambda: teller.content("two") == praised("A", "B"))
        assert teller.content("one") == praised("A", "B")
    assert running.summary is not None
    assert running.summary.position == teller.home.log.end
    assert running.summary.messages == sum(p.messages for p in running.batches) > 0
    assert [p.batch for p in running.batches] == list(range(len(running.batches)))
    with Hub(path) as hub:  # the lock is free again, though Spark is still there
        assert len(hub.subscription(teller.ids["two"]).content()) == 2


def test_changes_only_and_leases(spark: SparkSession, teller: Teller) -> None:
    home, registry = teller.home, teller.registry
    teller.publish(stock(1, "A"), review(1, "A"))
    alone = registry.subscribe("SELECT symbol FROM stocks", initial="none").id
    joined = registry.subscribe(PRAISED, initial="none").id
    long_ago = Registry(home, clock=lambda: 0.0)
    gone = long_ago.subscribe(PRAISED, lease_seconds=10).id
    teller.publish(review(2, "A", 8), stock(1, "B"))
    run(home.path, once=True)
    (told,) = told_to(home, registry, alone)
    assert (told.before, told.after) == ({"symbol": "A"}, {"symbol": "B"})
    kinds = [
        (one.kind, (one.before or one.after or {})["rating"])
        for one in told_to(home, registry, joined)
    ]
    assert sorted(kinds) == [("delete", 8), ("delete", 9), ("insert", 8)]
    assert [one.id for one in Registry(home).ended()] == [gone]


def test_many_newcomers_have_their_contents_and_nobody_else_is_told(
    spark: SparkSession, teller: Teller
) -> None:
    """Twice so many that they are not named: behind rows, and behind others who have theirs."""
    home, registry = teller.home, teller.registry
    with Hub(home.path) as hub:
        hub.apply([stock(i, "ABCDE"[i % 5], i) for i in range(60)])
        hub.apply([review(i, "ABCDEF"[i % 6], i % 10) for i in range(30)])
    for first in (0, 3):
        registry.subscribe_many(
            [
                sql
                for i in range(MANY_NEWCOMERS)
                for sql in (
                    f"SELECT * FROM stocks WHERE per BETWEEN {first + i % 50} AND {20 + i}",
                    (
                        f"SELECT * FROM stocks JOIN reviews USING (symbol) "
                        f"WHERE per > {i} AND rating BETWEEN {first} AND {first + i % 7}"
                    ),
                )
            ]
        )
        told = home.messages.frontier
        run(home.path, once=True)
    assert told is not None
    messages = [m for header in home.messages.batches(told) for m in home.messages.read(header)]
    assert {decode_message(m).since for m in messages} == {told.active}
    assert len(messages) < 200
    verdict = verify(home, lambda _: nullcontext(lambda _done, _total: None))
    assert verdict.findings == []
    assert len(verdict.compared) == 1 + 4 * MANY_NEWCOMERS


def test_bad_events_do_not_stop_it(spark: SparkSession, teller: Teller) -> None:
    path = teller.home.path
    bad = [b"\xff\xfe", b'{"table": "stocks", "op": "delete", "row": {"id": 77}}', b""]
    teller.home.log.append([(RecordKind.EVENT, raw) for raw in bad])
    teller.publish(stock(1, "A"), review(1, "A"))
    summary = run(path, once=True)
    assert summary.bad == 3
    assert [event.raw for event in teller.home.quarantine.entries()] == bad
    assert all(event.primary for event in teller.home.quarantine.entries())
    assert teller.content("one") == praised("A")


def test_a_home_restored_in_part_is_refused(spark: SparkSession, teller: Teller) -> None:
    teller.publish(stock(1, "A"), review(1, "A"))
    run(teller.home.path, once=True)
    for batch in teller.home.messages.directory.iterdir():
        batch.unlink()
    with pytest.raises(HomeError, match="checkpoint is ahead of the message log"):
        run(teller.home.path, once=True)


def test_looking_at_the_stages_loads_no_compiler() -> None:
    code = "import sys, penstock.pipeline.processors, penstock.pipeline.source; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    assert "penstock.pipeline.source" in loaded
    assert "numba" not in loaded  # Spark does so in several processes whenever a query starts
