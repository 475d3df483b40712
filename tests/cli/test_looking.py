"""content, tail, explain."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, insert, lines

JOIN = "SELECT stocks.id, rating FROM stocks JOIN reviews USING (symbol) WHERE per < 20"


@pytest.fixture
def subscribed(cli: Cli, home: Path, process: Callable[[], None]) -> Path:
    """A home with subscription 2, a join, and three changes at offsets 3 to 5."""
    assert cli("subscribe", home, JOIN).out == "2\n"
    events = [
        insert("stocks", id=1, symbol="GOOG", per=12.5),
        insert("reviews", id=7, symbol="GOOG", rating=8),
        {"table": "reviews", "op": "update", "row": {"id": 7, "rating": 9}},
    ]
    cli("publish", home, "-", input=lines(*events))
    process()
    return home


def test_content(cli: Cli, subscribed: Path) -> None:
    ran = cli("content", subscribed, 2)
    assert (ran.code, ran.err) == (0, "")
    assert [line.split() for line in ran.out.splitlines()[::2]] == [["id", "rating"], ["1", "9"]]
    assert ran.out.endswith("1 row at cursor 6\n")


def test_content_as_json(cli: Cli, subscribed: Path) -> None:
    assert cli("content", subscribed, 2, "--json").json == {
        "subscription": 2,
        "sql": JOIN,
        "columns": ["id", "rating"],
        "rows": [{"id": 1, "rating": 9}],
        "cursor": 6,
        "offset": 6,
        "log_end": 6,
        "active": True,
        "complete": True,
    }


def test_content_says_what_is_not_processed(cli: Cli, subscribed: Path) -> None:
    cli("publish", subscribed, "-", input=lines(insert("stocks", id=2, symbol="GOOG", per=13)))
    ran = cli("content", subscribed, 2)
    assert "1 record of the log not processed yet" in ran.err
    assert f"penstock run {subscribed} --once" in ran.err
    found = cli("content", subscribed, 2, "--json").json
    assert (found["complete"], found["offset"], found["log_end"]) == (False, 6, 7)


def test_content_of_a_subscription_that_waits(cli: Cli, subscribed: Path) -> None:
    number = cli("subscribe", subscribed, "SELECT * FROM stocks").out.strip()
    ran = cli("content", subscribed, number)
    assert ran.out == "0 rows at cursor 0\n"
    assert "not active yet" in ran.err


def test_content_shows_as_many_rows_as_asked(
    cli: Cli, home: Path, process: Callable[[], None]
) -> None:
    cli("subscribe", home, "SELECT id FROM stocks")
    rows = (insert("stocks", id=i, symbol="S") for i in range(5))
    cli("publish", home, "-", input=lines(*rows))
    process()
    assert (
        "5 rows at cursor 8; 2 shown (--limit 0 shows all)"
        in cli("content", home, 2, "--limit", 2).out
    )
    assert cli("content", home, 2, "--limit", 0).out.endswith("5 rows at cursor 8\n")


def test_content_of_nothing(cli: Cli, subscribed: Path) -> None:
    assert cli("content", subscribed, 99).code == 5
    cli("unsubscribe", subscribed, 2)
    assert cli("content", subscribed, 2).code == 5
    assert cli("content", subscribed, "two").code == 2


def test_values_in_json(cli: Cli, home: Path, process: Callable[[], None]) -> None:
    cli(
        "execute",
        home,
        "CREATE TABLE odd (id INT PRIMARY KEY, d DECIMAL(10,2), f DOUBLE, day DATE, at TIMESTAMP)",
    )
    cli("subscribe", home, "SELECT d, f, day, at FROM odd")
    rows = [
        insert("odd", id=1, d="1.50", f="NaN", day="2024-02-29", at="2024-02-29T12:00:00"),
        insert("odd", id=2, f="-Infinity"),
    ]
    cli("publish", home, "-", input=lines(*rows))
    process()
    first, second = cli("content", home, 3, "--json").json["rows"]
    assert first == {"d": "1.50", "f": "NaN", "day": "2024-02-29", "at": "2024-02-29T12:00:00"}
    assert second == {"d": None, "f": "-Infinity", "day": None, "at": None}
    assert "2024-02-29 12:00:00" in cli("content", home, 3).out


def test_tail(cli: Cli, subscribed: Path) -> None:
    ran = cli("tail", subscribed, 2, "--no-follow")
    assert ran.out.splitlines() == [
        "2:4:[[1],[7]]  insert  id=1  rating=8",
        "2:5:[[1],[7]]  update  id=1  rating=8→9",
    ]


def test_tail_as_json_lines(cli: Cli, subscribed: Path, process: Callable[[], None]) -> None:
    cli(
        "publish",
        subscribed,
        "-",
        input=lines({"table": "stocks", "op": "delete", "row": {"id": 1}}),
    )
    process()
    ran = cli("tail", subscribed, 2, "--no-follow", "--json", "--after", 4)
    update, delete = map(json.loads, ran.out.splitlines())
    assert update == {
        "id": "2:5:[[1],[7]]",
        "subscription": 2,
        "offset": 5,
        "cursor": 6,
        "kind": "update",
        "before": {"id": 1, "rating": 8},
        "after": {"id": 1, "rating": 9},
    }
    assert (delete["kind"], delete["offset"], delete["after"]) == ("delete", 6, None)


def test_tail_goes_on_from_a_content(
    cli: Cli, subscribed: Path, process: Callable[[], None]
) -> None:
    """What happens at the very offset that the content was taken at is not missed."""
    found = cli("content", subscribed, 2, "--json").json
    events = [insert("reviews", id=8, symbol="GOOG", rating=1), insert("stocks", id=2, symbol="X")]
    cli("publish", subscribed, "-", input=lines(*events))
    process()
    ran = cli("tail", subscribed, 2, "--no-follow", "--json", "--from", found["cursor"])
    told = [json.loads(line) for line in ran.out.splitlines()]
    assert [(one["kind"], one["offset"], one["cursor"]) for one in told] == [("insert", 6, 8)]
    assert cli("tail", subscribed, 2, "--no-follow", "--from", 8).out == ""


def test_the_cursor_of_a_line_moves_when_its_batch_has_been_told(
    cli: Cli, subscribed: Path
) -> None:
    """Offsets 4 and 5 are of one batch, [0, 6)."""
    ran = cli("tail", subscribed, 2, "--no-follow", "--json")
    told = [json.loads(line) for line in ran.out.splitlines()]
    assert [(one["offset"], one["cursor"]) for one in told] == [(4, 0), (5, 6)]
    again = cli("tail", subscribed, 2, "--no-follow", "--json", "--from", told[0]["cursor"])
    assert again.out == ran.out


def test_cursors_that_cannot_be(cli: Cli, subscribed: Path) -> None:
    ran = cli("tail", subscribed, 2, "--no-follow", "--from", 7)
    assert (ran.code, ran.out) == (6, "")
    assert "there is no cursor 7 yet" in ran.err
    assert cli("tail", subscribed, 2, "--no-follow", "--from", -1).code == 2
    assert cli("tail", subscribed, 2, "--no-follow", "--from", 6, "--after", 5).code == 2


def test_tail_follows_until_it_is_interrupted(
    cli: Cli, subscribed: Path, process: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    def sleep(_seconds: float) -> None:
        """Something happens while the command waits; then somebody presses Ctrl-C."""
        if waits:
            raise KeyboardInterrupt
        waits.append(1)
        cli(
            "publish",
            subscribed,
            "-",
            input=lines(insert("reviews", id=8, symbol="GOOG", rating=1)),
        )
        process()

    waits: list[int] = []
    monkeypatch.setattr(time, "sleep", sleep)
    ran = cli("tail", subscribed, 2)
    assert ran.code == 130
    assert ran.out.splitlines()[-1] == "2:6:[[1],[8]]  insert  id=1  rating=1"


def test_tail_ends_with_the_subscription(
    cli: Cli, subscribed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: cli("unsubscribe", subscribed, 2))
    ran = cli("tail", subscribed, 2)
    assert ran.code == 5
    assert "was withdrawn" in ran.err


def test_explain_a_change_that_could_come(cli: Cli, subscribed: Path) -> None:
    change = json.dumps({"table": "stocks", "op": "update", "row": {"id": 1, "per": 30}})
    ran = cli("explain", subscribed, 2, change)
    assert "reaches: rows leave the content" in ran.out
    assert "✗ per < 20.0   (is 30.0)" in ran.out
    explained = cli("explain", subscribed, 2, change, "--json").json
    assert explained["reaches"] is True
    assert [reason["version"] for reason in explained["reasons"]] == ["before", "after"]


def test_explain_a_change_in_the_log(cli: Cli, subscribed: Path) -> None:
    """As it was then: at offset 3 there was no review yet."""
    ran = cli("explain", subscribed, 2, "--offset", 3)
    assert "does not reach" in ran.out
    assert "0 rows of reviews join" in ran.out
    assert "reaches: rows enter" in cli("explain", subscribed, 2, "--offset", 4).out


def test_explain_does_not_need_the_lock(cli: Cli, subscribed: Path) -> None:
    from penstock.storage import Home

    with Home.open(subscribed).processing_lock("test"):
        assert cli("explain", subscribed, 2, "--offset", 4).code == 0
        assert cli("content", subscribed, 2).code == 0


def test_explain_refuses(cli: Cli, subscribed: Path) -> None:
    assert cli("explain", subscribed, 2).code == 2
    assert cli("explain", subscribed, 2, "{}", "--offset", 1).code == 2
    assert cli("explain", subscribed, 2, "{nonsense").code == 4
    assert cli("explain", subscribed, 2, "--offset", 2).code == 4
    assert cli("explain", subscribed, 2, "--offset", 99).code == 4
    assert cli("explain", subscribed, 3, "--offset", 4).code == 5
