"""subscribe, unsubscribe, subscriptions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.cli.conftest import Cli


def test_subscribe_prints_the_id(cli: Cli, home: Path) -> None:
    ran = cli("subscribe", home, "SELECT * FROM stocks WHERE per < 20")
    assert (ran.code, ran.out, ran.err) == (0, "2\n", "")


def test_subscribe_json(cli: Cli, home: Path) -> None:
    sql = "SELECT symbol FROM stocks WHERE per < 20"
    ran = cli("subscribe", home, sql, "--owner", "ann", "--json")
    assert ran.json == {
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
