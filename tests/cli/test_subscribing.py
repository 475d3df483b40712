"""subscribe, unsubscribe, subscriptions."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.cli.durations import lease_or_none, lease_text
from tests.cli.conftest import Cli


def test_subscribe_prints_the_id(cli: Cli, home: Path) -> None:
    ran = cli("subscribe", home, "SELECT * FROM stocks WHERE per < 20")
    assert (ran.code, ran.out) == (0, "2\n")
    assert re.fullmatch(r"ticket of subscription 2: [\w-]{32}\n", ran.err)


def test_subscribe_json(cli: Cli, home: Path) -> None:
    sql = "SELECT symbol FROM stocks WHERE per < 20"
    ran = cli("subscribe", home, sql, "--owner", "ann", "--json")
    assert ran.err == ""
    assert len(ran.json["ticket"]) == 32
    assert {name: one for name, one in ran.json.items() if name != "ticket"} == {
        "id": 2,
        "sql": sql,
        "owner": "ann",
        "initial": "content",
        "expires": None,
        "warnings": [],
    }


def test_subscribe_warns_beside_the_id(cli: Cli, home: Path) -> None:
    ran = cli("subscribe", home, "SELECT * FROM stocks WHERE per > 5 AND per < 3")
    assert (ran.code, ran.out) == (0, "2\n")
    assert ran.err.startswith("warning: subscription 2: ")


def test_subscribe_refused(cli: Cli, home: Path) -> None:
    ran = cli("subscribe", home, "SELECT * FROM stocks WHERE price < 20")
    assert ran.code == 3
    assert "price" in ran.err
    assert "^^^^^" in ran.err


def test_subscribe_refused_as_json(cli: Cli, home: Path) -> None:
    sql = "SELECT * FROM stocks WHERE price < 20"
    ran = cli("subscribe", home, sql, "--json")
    assert ran.code == 3
    error = json.loads(ran.out)["error"]
    assert (error["exit_code"], error["kind"]) == (3, "SqlError")
    assert sql[error["position"] :].startswith("price")


def test_subscribe_with_a_payload(cli: Cli, home: Path) -> None:
    ran = cli("subscribe", home, "SELECT * FROM stocks", "--payload", "symbol", "--json")
    assert ran.json["sql"] == "SELECT /*+ payload(symbol) */ * FROM stocks"
    assert "not selected" in cli("subscribe", home, "SELECT id FROM stocks", "--payload", "per").err


def test_subscribe_file_takes_all_or_none(cli: Cli, home: Path, tmp_path: Path) -> None:
    script = tmp_path / "interests.sql"
    script.write_text("SELECT * FROM stocks\n\nSELECT * FROM reviews\n-- that is all\n")
    assert cli("subscribe", home, "--file", script).out == "2\n3\n"
    script.write_text("SELECT * FROM stocks;\nSELECT *\nFROM reviews;\nSELECT * FROM nothing;")
    ran = cli("subscribe", home, "--file", script)
    assert ran.code == 3
    assert "statement 3 of 3" in ran.err
    listed = cli("subscriptions", home, "--json").json["subscriptions"]
    assert [one["id"] for one in listed] == [2, 3]
    script.write_text("SELECT * FROM stocks;")
    many = cli("subscribe", home, "--file", script, "--json").json
    assert [one["id"] for one in many["subscriptions"]] == [4]


def test_subscriptions(cli: Cli, home: Path, process: Callable[[], None]) -> None:
    assert cli("subscriptions", home).out == "no subscriptions\n"
    cli("subscribe", home, "SELECT * FROM stocks", "--owner", "ann")
    process()
    cli("subscribe", home, "SELECT * FROM reviews")
    listed = cli("subscriptions", home, "--json").json["subscriptions"]
    assert listed == [
        {
            "id": 2,
            "state": "active",
            "owner": "ann",
            "initial": "content",
            "expires": None,
            "sql": "SELECT * FROM stocks",
        },
        {
            "id": 3,
            "state": "waiting",
            "owner": None,
            "initial": "content",
            "expires": None,
            "sql": "SELECT * FROM reviews",
        },
    ]
    assert "… and 1 more" in cli("subscriptions", home, "--limit", 1).out
    of_ann = cli("subscriptions", home, "--owner", "ann")
    assert "reviews" not in of_ann.out


def test_unsubscribe(cli: Cli, home: Path) -> None:
    cli("subscribe", home, "SELECT * FROM stocks")
    cli("subscribe", home, "SELECT * FROM reviews")
    assert cli("unsubscribe", home, 2).out == "withdrew subscription 2\n"
    assert cli("unsubscribe", home, 3, "--json").json == {"id": 3, "withdrawn_at": 5}
    again = cli("unsubscribe", home, 2)
    assert again.code == 5
    assert "was withdrawn" in again.err
    assert cli("unsubscribe", home, 99).code == 5


def test_changes_only(cli: Cli, home: Path, process: Callable[[], None]) -> None:
    events = [
        {"table": "stocks", "op": "insert", "row": {"id": 1, "symbol": "A", "per": 12.0}},
        {"table": "stocks", "op": "update", "row": {"id": 1, "symbol": "B"}},
    ]
    file = home.parent / "changes.jsonl"
    file.write_text(json.dumps(events[0]))
    cli("publish", home, file)
    cli("subscribe", home, "SELECT symbol FROM stocks WHERE per < 20", "--initial", "none")
    file.write_text(json.dumps(events[1]))
    cli("publish", home, file)
    process()
    ran = cli("tail", home, 3, "--no-follow", "--json")
    told = [json.loads(line) for line in ran.out.splitlines()]
    assert [(one["kind"], one["before"], one["after"]) for one in told] == [
        ("update", {"symbol": "A"}, {"symbol": "B"})
    ]
    refused = cli("content", home, 3)
    assert refused.code == 5
    assert "subscription 3 has no content" in refused.err
    assert cli("subscribe", home, "SELECT * FROM stocks", "--initial", "some").code == 2


def test_leases(cli: Cli, home: Path) -> None:
    ran = cli("subscribe", home, "SELECT * FROM stocks", "--lease", "10m", "--json")
    assert ran.json["expires"] is not None
    assert cli("renew", home, 2).out.startswith("renewed subscription 2 until 20")
    (renewed,) = cli("renew", home, 2, "--lease", "1.5h", "--json").json["renewed"]
    assert (renewed["id"], renewed["lease_seconds"]) == (2, 5400)
    (listed,) = cli("subscriptions", home, "--json").json["subscriptions"]
    assert listed["expires"] is not None
    assert "expires" in cli("subscriptions", home).out
    assert cli("renew", home, 99).code == 5
    for wrong in ("10", "ten", "-1s", "5w"):
        assert cli("subscribe", home, "SELECT * FROM stocks", "--lease", wrong).code == 2
    assert cli("subscribe", home, "SELECT * FROM stocks", "--lease", "400d").code == 5
    cli("unsubscribe", home, 2)
    (ended,) = cli("subscriptions", home, "--ended", "--json").json["subscriptions"]
    assert ended["state"] == "withdrawn"


def test_tickets(cli: Cli, home: Path) -> None:
    first = cli("subscribe", home, "SELECT * FROM stocks", "--lease", "1h", "--json").json["ticket"]
    second = cli("subscribe", home, "SELECT * FROM stocks").err.split()[-1]
    assert (
        cli("renew", home, 2, 3, "--lease", "2h", "--ticket", first, "--ticket", second).code == 0
    )
    for command in ("renew", "unsubscribe"):
        for number, ticket in ((2, second), (99, second), (0, first)):
            refused = cli(command, home, number, "--ticket", ticket)
            assert refused.code == 5
            assert "not the ticket" in refused.err
            assert ticket not in refused.err
    assert cli("renew", home, 2, 3, "--ticket", first).code == 5
    assert cli("unsubscribe", home, 2, "--ticket", first).code == 0
    assert cli("unsubscribe", home, 3).code == 0
    for looked in ("subscriptions", "status", "tables"):
        shown = cli(looked, home, "--json").out
        assert first not in shown
        assert second not in shown


def test_the_tickets_of_a_file(cli: Cli, home: Path, tmp_path: Path) -> None:
    script = tmp_path / "interests.sql"
    script.write_text("SELECT * FROM stocks;\nSELECT * FROM reviews;")
    ran = cli("subscribe", home, "--file", script)
    assert ran.out == "2\n3\n"
    said = [line.rpartition(" ") for line in ran.err.splitlines()]
    assert [what for what, _, _ in said] == [f"ticket of subscription {n}:" for n in (2, 3)]
    assert len({ticket for _, _, ticket in said}) == 2


def test_a_default_lease(cli: Cli, tmp_path: Path) -> None:
    home = tmp_path / "shop"
    assert cli("init", home, "--default-lease", "36h").code == 0
    assert "default lease     36h" in cli("status", home).out
    assert cli("status", home, "--json").json["default_lease_seconds"] == 129_600
    cli("execute", home, "CREATE TABLE stocks (id INT PRIMARY KEY)")
    sql = "SELECT * FROM stocks"
    leases = [("--lease", "1d"), (), ("--lease", "none")]
    begins = datetime.now(UTC)
    ends = [cli("subscribe", home, sql, *lease, "--json").json["expires"] for lease in leases]
    hours = [one and (datetime.fromisoformat(one) - begins).total_seconds() // 3600 for one in ends]
    assert hours == [24, 36, None]
    assert cli("renew", home, 2).code == 0
    assert (
        "none" in cli("renew", home, 2, "--lease", "none").err
    )  # a lease cannot be renewed to none


@pytest.mark.parametrize(("lease", "code"), [("400d", 6), ("0.5s", 6), ("never", 2), ("5w", 2)])
def test_default_leases_that_cannot_be(cli: Cli, tmp_path: Path, lease: str, code: int) -> None:
    assert cli("init", tmp_path / "shop", "--default-lease", lease).code == code
    assert not (tmp_path / "shop").exists()


@pytest.mark.parametrize("seconds", [None, 1, 90, 900, 43_200, 86_400, 129_600, 1.5])
def test_leases_are_shown_as_they_are_written(seconds: float | None) -> None:
    shown = lease_text(seconds)
    assert shown in ("none", "1s", "90s", "15m", "12h", "1d", "36h", "1.5s")
    assert lease_or_none(shown) == (math.inf if seconds is None else seconds)
