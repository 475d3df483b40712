"""The demonstration: its data, its sums, and what it tells people to try."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock import Hub
from penstock.cli.main import app
from penstock.errors import PenstockError
from penstock.lab import demo
from penstock.lab.workloads.stocks import (
    CREATE_REVIEWS,
    CREATE_STOCKS,
    Interest,
    Market,
    draw_interests,
)
from penstock.maintenance.traffic import Clients
from penstock.pipeline import run as pipeline
from penstock.storage import Home

SMALL = ["--subscriptions", "60", "--changes", "500"]


def test_same_seed_same_story() -> None:
    assert draw_interests(50, seed=1) == draw_interests(50, seed=1)
    assert draw_interests(50, seed=1) != draw_interests(50, seed=2)
    assert draw_interests(80, seed=1)[:50] == draw_interests(50, seed=1)
    stories = [list(Market(seed).changes(400)) for seed in (1, 1, 2)]
    assert stories[0] == stories[1] != stories[2]


def test_story_has_everything_that_can_happen() -> None:
    kinds = Counter((change.table, change.op.value) for change in Market(1).changes(1000))
    tables, ops = ("stocks", "reviews"), ("insert", "update", "delete")
    assert kinds.keys() == {(table, op) for table in tables for op in ops}
    read = Counter((i.per is None, i.rating is None) for i in draw_interests(1000, seed=1))
    assert 700 < read[False, False] < 900
    assert min(read[True, False], read[False, True]) > 50


def test_market_knows_its_rows_and_answers() -> None:
    """The workload's own answers are those of a Hub that was told the same."""
    market, interests = Market(3), draw_interests(40, seed=3)
    with Hub() as hub:
        hub.execute(CREATE_STOCKS)
        hub.execute(CREATE_REVIEWS)
        subscriptions = [hub.subscribe(interest.sql) for interest in interests]
        hub.apply(market.changes(600))
        kept = [stock._asdict() for stock in market.rows.stocks.values()]
        assert sorted(hub.rows("stocks"), key=str) == sorted(kept, key=str)
        for interest, subscription in zip(interests, subscriptions, strict=True):
            content = Counter(tuple(row.values()) for row in subscription.content())
            assert content == Counter(interest.answer(market.rows)), interest.sql


def test_traffic_is_counted(tmp_path: Path) -> None:
    with Hub(tmp_path / "home") as hub:
        hub.execute(CREATE_STOCKS)
        cheap = [hub.subscribe("SELECT id FROM stocks WHERE per < 20") for _ in range(3)]
        hub.subscribe("SELECT id FROM stocks WHERE per > 1000")
        hub.insert("stocks", {"id": 1, "symbol": "A", "per": 10})
        hub.insert("stocks", {"id": 2, "symbol": "B", "per": 50})
        hub.update("stocks", {"id": 1, "per": 11})  # nobody sees the difference, but cannot know
        hub.unsubscribe(cheap[0])
        hub.delete("stocks", {"id": 1})
    clients = Clients(Home.open(tmp_path / "home"))
    clients.take_in()
    traffic = clients.traffic
    assert (traffic.messages, traffic.deliveries, traffic.rows) == (3, 8, 5)
    assert traffic.told == {one.id for one in cheap}
    assert 0 < traffic.message_bytes < traffic.delivery_bytes
    assert traffic.row_bytes > 0
    assert all(content.rows() == [] for content in clients.contents.values())


def test_content_that_is_wrong_is_found() -> None:
    market = Market(1)
    assert list(market.changes(20))
    with pytest.raises(PenstockError, match="subscription 1 is wrong"):
        demo._check({}, {1: Interest((0, 1000), None)}, market)


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Hub in the place of the pipeline: the message log is the same."""

    def run(home: Path, **options: Any) -> pipeline.RunSummary:
        with Hub(home):
            end = Home.open(home).log.end
        options["on_progress"](pipeline.Progress(0, end, end, 0, 0, 0.1))
        return pipeline.RunSummary(1, end, 0, 0, 0.1)

    monkeypatch.setattr(pipeline, "run", run)
    return iter(())


@pytest.mark.usefixtures("without_spark")
def test_same_seed_same_numbers(tmp_path: Path) -> None:
    figures = []
    for name in ("one", "other"):
        ran = CliRunner().invoke(app, ["demo", "--home", str(tmp_path / name), "--json", *SMALL])
        assert ran.exit_code == 0, ran.stderr
        (line,) = ran.stdout.splitlines()
        figures.append(json.loads(line))
        assert figures[-1].pop("home") == str(tmp_path / name)
        figures[-1].pop("seconds")
    assert figures[0] == figures[1]
    assert figures[0]["events"] == 502
    assert figures[0]["quarantined"] == 2
    assert figures[0]["contents_checked"] == 60
    assert figures[0]["naive_rows"] > figures[0]["messages"] > 0


@pytest.mark.slow
@pytest.mark.usefixtures("without_spark")
def test_what_it_tells_people_to_try_works(tmp_path: Path) -> None:
    runner = CliRunner()
    shown = runner.invoke(app, ["demo", "--home", str(tmp_path / "home"), *SMALL])
    assert shown.exit_code == 0, shown.output
    assert "✓ checked: all 60 contents equal their query" in shown.stdout
    assert "reaches: rows leave the content" in shown.stdout
    commands = re.findall(r"^  (.*\bpenstock .*)$", shown.stdout, re.MULTILINE)
    assert len(commands) == 7
    outputs = []
    for command in commands:
        given, _, called = command.rpartition(" | ")
        words = shlex.split(called)
        typed = shlex.split(given)[1] if given else None
        ran = runner.invoke(app, words[1:], input=typed)
        assert ran.exit_code == 0, ran.output
        outputs.append(ran.stdout)
    assert outputs[0] != outputs[5], "the change has changed the content"


def test_home_must_be_new(tmp_path: Path) -> None:
    (tmp_path / "something").write_text("")
    ran = CliRunner().invoke(app, ["demo", "--home", str(tmp_path), *SMALL])
    assert ran.exit_code == 6


def test_steps_are_reported(tmp_path: Path, without_spark: None) -> None:
    steps: list[tuple[str, list[tuple[int, int]]]] = []

    class Reporter:
        @contextmanager
        def step(self, what: str) -> Iterator[Callable[[int, int], None]]:
            told: list[tuple[int, int]] = []
            steps.append((what, told))
            yield lambda done, total: told.append((done, total))

    report = demo.run_demo(
        tmp_path / "home", Reporter(), subscriptions=20, changes=30, seed=1, master="local[1]"
    )
    assert len(steps) == 6
    assert [told[-1] for _, told in steps if told] == [(32, 32), (54, 54), (54, 54)]
    assert report.checked == 20


@pytest.mark.spark
@pytest.mark.slow
def test_with_spark(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from penstock.cli.main import main; main()"]
    arguments = ["demo", "--home", str(tmp_path / "home"), "--json", *SMALL]
    ran = subprocess.run([*command, *arguments], capture_output=True, text=True, check=True)
    figures = json.loads(ran.stdout)
    assert (figures["events"], figures["quarantined"], figures["contents_checked"]) == (502, 2, 60)
