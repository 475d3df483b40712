"""backtest: what it prints; that it is right is for the tests of the job itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.history import backtest as history
from penstock.storage import Home
from tests.cli.conftest import Cli, insert, lines
from tests.history.dry import dry_backtest


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The job without Spark; remembers what it was asked for."""
    calls: list[dict[str, Any]] = []

    def test(home: Path, statements: list[str], **options: Any) -> history.Backtest:
        calls.append(options)
        options["on_progress"](1, 2)
        names = ("start", "end", "shown", "ranges")
        return dry_backtest(Home.open(home), statements, **{name: options[name] for name in names})

    monkeypatch.setattr(history, "backtest", test)
    return calls


@pytest.fixture(autouse=True)
def published(cli: Cli, home: Path) -> None:
    rows = [insert("stocks", id=i, symbol="GOOG", per=10.0 * i) for i in range(3)]
    bad = insert("stocks", id=0, symbol="YHOO")
    gone = {"table": "stocks", "op": "delete", "row": {"id": 1}}
    cli("publish", home, "-", input=lines(*rows, bad, gone))


def test_json(cli: Cli, home: Path) -> None:
    answer = cli("backtest", home, "SELECT id FROM stocks WHERE per > 5", "--json").json
    (query,) = answer.pop("queries")
    assert answer.pop("ranges")[0] == [0, 1]
    assert answer == {"from": 0, "to": 7, "refused": 1, "seconds": 0.0}
    assert query == {
        "query": 1,
        "sql": "SELECT id FROM stocks WHERE per > 5",
        "inserts": 2,
        "updates": 0,
        "deletes": 1,
        "by_range": [0, 0, 0, 0, 1, 1, 0, 0, 1, 0],
        "rows": 1,
        "complete": True,
        "notifications": [
            {"offset": 3, "kind": "insert", "before": None, "after": {"id": 1}},
            {"offset": 4, "kind": "insert", "before": None, "after": {"id": 2}},
            {"offset": 6, "kind": "delete", "before": {"id": 1}, "after": None},
        ],
    }


def test_table(cli: Cli, home: Path) -> None:
    ran = cli("backtest", home, "SELECT id FROM stocks", "--limit", 2, "--ranges", 2, "--from", 1)
    assert ran.code == 0
    told = [line.split() for line in ran.out.splitlines()]
    assert ["2", "insert", "0"] in told
    assert ["6", "delete", "1"] not in told
    assert "the first 2 of 4 (--limit N)" in ran.out
    assert ["1", "4", "3", "0", "1", "2"] in told
    assert ["1", "to", "3", "2"] in told
    assert "1 query, 6 records from offset 1" in ran.out
    assert "1 event could not be applied" in ran.out


def test_many_queries(cli: Cli, home: Path, tmp_path: Path) -> None:
    script = tmp_path / "queries.sql"
    script.write_text("SELECT id FROM stocks;\nSELECT id\n  FROM reviews;")
    answer = cli("backtest", home, "--file", script, "--limit", 0, "--json").json
    assert [query["inserts"] for query in answer["queries"]] == [3, 0]
    assert [query["complete"] for query in answer["queries"]] == [False, True]


def test_options(cli: Cli, home: Path, asked: list[dict[str, Any]]) -> None:
    cli("backtest", home, "SELECT id FROM stocks")
    cli(
        "backtest", home, "SELECT id FROM stocks", "--from", 2, "--to", 3, "--master", "local[1]",
        "--conf", "a=b", "--json",
    )  # fmt: skip
    names = ("start", "end", "shown", "master", "conf")
    assert [[call[name] for name in names] for call in asked] == [
        [0, None, 20, "local[*]", {}],
        [2, 3, history.MAX_SHOWN, "local[1]", {"a": "b"}],
    ]


def test_refusals(cli: Cli, home: Path) -> None:
    assert cli("backtest", home, "SELECT id FROM nowhere").code == 3
    assert cli("backtest", home, "SELECT id FROM stocks", "--to", 99).code == 6
    assert cli("backtest", home).code == 2
    assert cli("backtest", home, "SELECT id FROM stocks", "--conf", "nonsense").code == 2
