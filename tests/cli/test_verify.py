"""`penstock verify`: what it says, and with which code it ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.storage import Home
from tests.cli.conftest import Cli, insert, lines


@pytest.fixture
def used(cli: Cli, home: Path, process: Callable[[], None]) -> Path:
    """A home with a subscription whose content is one row."""
    cli("subscribe", home, "SELECT * FROM stocks WHERE per < 20")
    cli("publish", home, "-", input=lines(insert("stocks", id=1, symbol="GOOG", per=12.5)))
    process()
    return home


def test_all_is_well(cli: Cli, used: Path) -> None:
    ran = cli("verify", used)
    assert ran.code == 0
    assert "compared 1 content of 1 with DuckDB at offset 4" in ran.out
    told = cli("verify", used, "--all", "--json").json
    assert told["findings"] == []
    assert told["compared"] == [2]
    assert told["offset"] == told["log_end"] == 4


def test_an_empty_home(cli: Cli, home: Path) -> None:
    ran = cli("verify", home)
    assert ran.code == 0
    assert "compared 0 contents of 0" in ran.out


def test_a_damaged_file_is_named(cli: Cli, used: Path) -> None:
    (victim,) = (used / "messages").iterdir()
    content = bytearray(victim.read_bytes())
    content[-3] ^= 4
    victim.write_bytes(content)
    ran = cli("verify", used)
    assert ran.code == 7
    assert f"damage: {victim}: " in ran.out
    assert "hint: restore this file from a backup" in ran.out
    (found, skipped) = json.loads(cli("verify", used, "--json").out)["findings"]
    assert (found["severity"], found["where"]) == ("damage", str(victim))
    assert skipped["severity"] == "remark"


def test_a_wrong_content_is_told(cli: Cli, used: Path) -> None:
    opened = Home.open(used)
    (header,) = opened.messages.batches()
    (victim,) = (used / "messages").iterdir()
    victim.unlink()
    opened.messages.publish(header, [])
    ran = cli("verify", used)
    assert ran.code == 10
    assert "difference: subscription 2: rows of its content: 1 missing" in ran.out
    assert cli("verify", used, "--sample", 0).code == 0
