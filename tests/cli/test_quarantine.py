"""quarantine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, insert, lines


@pytest.fixture
def infected(cli: Cli, home: Path, process: Callable[[], None]) -> Path:
    """Bad events at offsets 2 and 3, a good one at 4."""
    events = lines(
        insert("people", id=1), insert("stocks", id="x"), insert("stocks", id=1, symbol="A")
    )
    cli("publish", home, "-", input=events)
    process()
    return home


def test_empty(cli: Cli, home: Path) -> None:
    assert cli("quarantine", home, "list").out == "the quarantine is empty\n"
    assert cli("quarantine", home, "list", "--json").json == {
        "events": [],
        "suspended": [],
        "left_out": [],
    }


def test_a_suspended_subscription(cli: Cli, home: Path) -> None:
    from penstock.flow.faults import SetAside
    from penstock.registry import Registry
    from penstock.storage import Home

    number = cli("subscribe", home, "SELECT id FROM stocks WHERE per > 1", "--json").json["id"]
    with Registry(Home.open(home)) as registry:
        registry.set_aside([SetAside(number, "KeyError: 7")])
    assert "KeyError: 7" in cli("quarantine", home, "list").out
    (listed,) = cli("quarantine", home, "list", "--json").json["suspended"]
    assert listed["subscription"] == number
    refused = cli("content", home, number)
    assert (refused.code, "is suspended" in refused.err) == (5, True)
    assert "1 subscription suspended" in cli("status", home).out
    assert cli("subscriptions", home, "--json").json["subscriptions"][0]["state"] == "suspended"
    ran = cli("quarantine", home, "replay", number)
    assert ran.out == f"subscription {number} is registered again as {number + 2}\n"
    assert cli("quarantine", home, "list").out == "the quarantine is empty\n"
    assert cli("quarantine", home, "replay", number).code == 5


def test_list(cli: Cli, infected: Path) -> None:
    ran = cli("quarantine", infected, "list")
    assert "unknown table people" in ran.out
    first, second = cli("quarantine", infected, "list", "--json").json["events"]
    assert first == {
        "offset": 2,
        "primary": "unknown table people",
        "detail": "",
        "hint": "known tables: stocks, reviews",
        "replayed_at": [],
    }
    assert second["offset"] == 3


def test_show(cli: Cli, infected: Path) -> None:
    ran = cli("quarantine", infected, "show", 2)
    assert ran.out.splitlines()[:2] == [
        '{"table": "people", "op": "insert", "row": {"id": 1}}',
        "  reason: unknown table people",
    ]
    shown = cli("quarantine", infected, "show", 2, "--json").json
    assert (shown["offset"], shown["primary"]) == (2, "unknown table people")


def test_show_what_is_not_there(cli: Cli, infected: Path) -> None:
    assert cli("quarantine", infected, "show", 4).code == 4


def test_replay(cli: Cli, infected: Path, process: Callable[[], None]) -> None:
    cli("execute", infected, "CREATE TABLE people (id INT PRIMARY KEY)")
    cli("subscribe", infected, "SELECT * FROM people")
    ran = cli("quarantine", infected, "replay", 2, "--json")
    assert ran.json == {"replayed": [{"offset": 2, "replayed_at": 8}]}
    process()
    assert cli("content", infected, 6, "--json").json["rows"] == [{"id": 1}]
    assert cli("quarantine", infected, "replay", "--all").out == "replayed 1 event\n"
    listed = cli("quarantine", infected, "list", "--json").json["events"]
    assert [event["replayed_at"] for event in listed] == [[8], [10]]


def test_replay_of_nothing_and_of_too_much(cli: Cli, infected: Path) -> None:
    assert cli("quarantine", infected, "replay").code == 2
    assert cli("quarantine", infected, "replay", 2, "--all").code == 2
    assert cli("quarantine", infected, "replay", 2, 99).code == 4
