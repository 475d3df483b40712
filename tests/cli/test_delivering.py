"""deliver and cursors, and what compact and verify make of cursors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock import Hub
from penstock.delivery import saved_contents
from tests.cli.conftest import Cli, insert, lines


@pytest.fixture
def used(cli: Cli, home: Path, process: Callable[[], None]) -> Path:
    """Subscription 2 has a content, 3 wants changes only; offsets 4 to 8 are changes."""
    cli("subscribe", home, "SELECT symbol, per FROM stocks WHERE per < 20")
    cli("subscribe", home, "SELECT per FROM stocks", "--initial", "none")
    change(cli, home, process, range(5))
    return home


def change(cli: Cli, home: Path, process: Callable[[], None], values: range) -> None:
    for per in values:
        event = insert("stocks", id=1, symbol="GOOG", per=per) | {"op": "upsert"}
        cli("publish", home, "-", input=lines(event))
        process()


def ids(path: Path) -> list[str]:
    return [json.loads(line)["id"] for line in path.read_text().splitlines()]


def tailed(cli: Cli, home: Path, number: int) -> list[Any]:
    ran = cli("tail", home, number, "--no-follow", "--json")
    return [json.loads(line) for line in ran.out.splitlines()]


def test_delivering_to_a_file(
    cli: Cli, used: Path, tmp_path: Path, process: Callable[[], None]
) -> None:
    out = tmp_path / "out.jsonl"
    ran = cli("deliver", used, 2, "--to", out)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "delivered 5 notifications; cursor 2-out.jsonl is at 9\n"
    assert [json.loads(line) for line in out.read_text().splitlines()] == tailed(cli, used, 2)
    assert cli("deliver", used, 2, "--to", out, "--json").json == {
        "cursor": 9,
        "name": "2-out.jsonl",
        "sent": 0,
        "to": str(out),
    }
    change(cli, used, process, range(7, 9))
    assert cli("deliver", used, 2, "--to", out, "--json").json["sent"] == 2
    assert ids(out) == [one["id"] for one in tailed(cli, used, 2)]


def test_delivering_from_a_cursor(cli: Cli, used: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert cli("deliver", used, 2, "--to", out, "--from", 7, "--name", "late").code == 0
    assert ids(out) == ["2:7:[[1]]", "2:8:[[1]]"]
    assert cli("deliver", used, 2, "--to", out, "--name", "late", "--restart").code == 0
    assert len(ids(out)) == 2 + 5
    assert cli("cursors", used, "--json").json["cursors"][0]["generation"] == 2


def test_one_cursor_one_target(cli: Cli, used: Path, tmp_path: Path) -> None:
    cli("deliver", used, 2, "--to", tmp_path / "a", "--name", "mail")
    ran = cli("deliver", used, 2, "--to", tmp_path / "b", "--name", "mail")
    assert ran.code == 6
    assert f"cursor mail delivers to {tmp_path / 'a'}" in ran.err
    assert not (tmp_path / "b").exists()
    assert cli("deliver", used, 3, "--to", tmp_path / "a", "--name", "mail").code == 5
    assert cli("deliver", used, 2, "--to", "-", "--json").code == 2


def test_standard_output_holds_the_lines_alone(cli: Cli, used: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "penstock", "deliver", str(used), "2", "--to", "-"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ},
    )
    assert [json.loads(line) for line in ran.stdout.splitlines()] == tailed(cli, used, 2)
    assert ran.stderr == "delivered 5 notifications; cursor 2-stdout is at 9\n"


def test_a_file_that_cannot_be_written(cli: Cli, used: Path, tmp_path: Path) -> None:
    ran = cli("deliver", used, 2, "--to", tmp_path / "nowhere" / "out")
    assert ran.code == 12
    assert "cannot open" in ran.err
    ran = cli("deliver", used, 2, "--to", "/dev/full", "--name", "full")
    assert ran.code == 12
    assert "No space left on device" in ran.err
    assert "run the same command again to continue from there" in ran.err
    (listed,) = [one for one in cli("cursors", used, "--json").json["cursors"] if one["last_error"]]
    assert listed["name"] == "full"
    assert listed["cursor"] == 0
    assert listed["next_attempt"] is not None


def test_listing_cursors(cli: Cli, used: Path, tmp_path: Path) -> None:
    assert cli("cursors", used).out == "no cursors\n"
    cli("deliver", used, 2, "--to", tmp_path / "out")
    shown = cli("cursors", used).out.splitlines()
    assert shown[0].split()[:4] == ["name", "subscription", "cursor", "behind"]
    assert shown[2].split()[:4] == ["2-out", "2", "9", "0"]
    assert cli("cursors", used, "--remove", "other").code == 6
    assert cli("cursors", used, "--remove", "2-out").out == "no cursors\n"


def test_compaction_keeps_what_a_cursor_needs(
    cli: Cli, used: Path, tmp_path: Path, process: Callable[[], None]
) -> None:
    out = tmp_path / "out.jsonl"
    cli("deliver", used, 2, "--to", out, "--name", "slow")
    change(cli, used, process, range(10, 13))
    ran = cli("compact", used, "--json").json
    assert ran["offset"] == 9
    assert ran["held_back_by"] == (
        "cursor slow of subscription 2 is at 9: deliver it, remove it (penstock cursors), or "
        "compact with --past-cursors"
    )
    before = len(ids(out))
    assert cli("deliver", used, 2, "--to", out, "--name", "slow", "--json").json["sent"] == 3
    assert len(ids(out)) == before + 3
    assert cli("compact", used, "--json").json["offset"] == 12


def test_compaction_past_a_cursor(
    cli: Cli, used: Path, tmp_path: Path, process: Callable[[], None]
) -> None:
    out = tmp_path / "out.jsonl"
    cli("deliver", used, 2, "--to", out)
    change(cli, used, process, range(10, 13))
    assert cli("compact", used, "--past-cursors", "--json").json["offset"] == 12
    ran = cli("deliver", used, 2, "--to", out)
    assert ran.code == 6
    assert "what changed between offsets 9 and 12 is no longer there" in ran.err
    assert cli("deliver", used, 2, "--to", out, "--restart", "--json").json["sent"] == 1


def test_cursors_that_hold_nothing_back(
    cli: Cli, used: Path, tmp_path: Path, process: Callable[[], None]
) -> None:
    """One that has been sent nothing and has a content starts from the base; one whose subscription
    is gone needs nothing; one that wants changes only needs nothing from before its record."""
    cli("deliver", used, 2, "--to", "/dev/full", "--name", "starts-from-the-base")
    cli("subscribe", used, "SELECT id FROM stocks")
    process()
    cli("deliver", used, 9, "--to", tmp_path / "gone")
    cli("unsubscribe", used, 9)
    process()
    late = cli("subscribe", used, "SELECT id FROM stocks", "--initial", "none").out.strip()
    cli("deliver", used, late, "--to", tmp_path / "late")
    change(cli, used, process, range(10, 13))
    ran = cli("compact", used, "--json").json
    assert ran["offset"] == int(late) == 11
    assert "cursor 11-late" in ran["held_back_by"]
    assert cli("deliver", used, late, "--to", tmp_path / "late", "--json").json["sent"] == 0
    assert cli("compact", used, "--json").json["held_back_by"] == ""


def test_a_damaged_cursor(cli: Cli, used: Path, tmp_path: Path) -> None:
    cli("deliver", used, 2, "--to", tmp_path / "out")
    assert cli("verify", used).code == 0
    path = used / "cursors" / "2-out.cursor"
    path.write_bytes(path.read_bytes().replace(b'"cursor":9', b'"cursor":8'))
    ran = cli("verify", used)
    assert ran.code == 7
    assert "2-out.cursor is damaged" in ran.out + ran.err
    for command in ("cursors", "compact"):
        ran = cli(command, used)
        assert ran.code == 7
        assert "remove this file and deliver again" in ran.err
    assert cli("compact", used, "--past-cursors").code == 0


def test_tailing_from_right_before_a_saved_content(
    cli: Cli, used: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A content that was saved one record after the cursor is no place to start from."""
    everything = tailed(cli, used, 2)
    with Hub(used) as hub:
        hub.update("stocks", {"id": 1, "per": 17})
    monkeypatch.setattr(saved_contents, "SAVED_FROM", 1)
    assert cli("content", used, 2, "--json").json["cursor"] == 10
    assert list((used / "contents").iterdir())
    ran = cli("tail", used, 2, "--from", 9, "--no-follow", "--json")
    assert [json.loads(line)["offset"] for line in ran.out.splitlines()] == [9]
    assert len(tailed(cli, used, 2)) == len(everything) + 1
