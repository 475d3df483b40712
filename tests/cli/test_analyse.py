"""analyse: what it prints; that it is right is for the tests of the job itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.history import analyse as history
from penstock.storage import Home
from penstock.storage.home_statistics import HomeStatistics, save_statistics
from tests.cli.conftest import Cli, insert, lines
from tests.history.test_analyse import dry_analyse


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The job without Spark; remembers what it was asked for."""
    calls: list[dict[str, Any]] = []

    def analyse(home: Path, **options: Any) -> HomeStatistics:
        calls.append(options)
        options["on_progress"](1, 2)
        found = dry_analyse(Home.open(home))
        save_statistics(home, found)
        return found

    monkeypatch.setattr(history, "analyse", analyse)
    return calls


@pytest.fixture(autouse=True)
def published(cli: Cli, home: Path) -> None:
    cli("subscribe", home, "SELECT * FROM stocks WHERE per < 15 AND symbol = 'GOOG'")
    cli("subscribe", home, "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE per < 15")
    rows = [insert("stocks", id=i, symbol="GOOG", per=10.0 * i) for i in range(4)]
    cli("publish", home, "-", input=lines(*rows, insert("reviews", id=1, symbol="GOOG"), "?"))


def test_json(cli: Cli, home: Path) -> None:
    answer = cli("analyse", home, "--json").json
    assert (answer["offset"], answer["subscriptions"], answer["unreadable"]) == (10, 2, 1)
    stocks = answer["tables"][0]
    assert (stocks["name"], stocks["inserts"], stocks["rows"]) == ("stocks", 4, 4)
    assert stocks["sample"] == 4
    assert sorted(stocks["attribute_order"]) == ["id", "per", "symbol"]
    per = stocks["columns"][2]
    assert (per["name"], per["frequency"], per["selectivity"]) == ("per", 1.0, 0.5)
    assert answer["edges"][0]["fan_out"] == [4.0, 1.0]
    assert cli("analyse", home, "--show", "--json").json == answer


def test_table(cli: Cli, home: Path) -> None:
    ran = cli("analyse", home)
    assert ran.code == 0
    told = [line.split() for line in ran.out.splitlines()]
    assert ["stocks", "80.0", "%", "4", "4", "0", "0", "0", "4", "2"] in told
    assert any(line[:1] == ["stocks.per"] and line[-3:] == ["symbol", "50.0", "%"] for line in told)
    assert "reviews(symbol) = stocks(symbol)" in ran.out
    assert "10 records, 2 subscriptions, 1 unreadable event" in ran.out


def test_options(cli: Cli, home: Path, asked: list[dict[str, Any]]) -> None:
    cli("analyse", home, "--to", 5, "--master", "local[1]", "--conf", "a=b")
    (call,) = asked
    assert (call["end"], call["master"], call["conf"]) == (5, "local[1]", {"a": "b"})


def test_nothing_to_show(cli: Cli, home: Path) -> None:
    ran = cli("analyse", home, "--show")
    assert ran.code == 6
    assert "penstock analyse" in ran.err
