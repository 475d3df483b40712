"""`penstock compact`, and what other commands say of a home that was compacted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock import Hub
from tests.cli.conftest import Cli, insert, lines


@pytest.fixture
def used(cli: Cli, home: Path, process: Callable[[], None]) -> Path:
    cli("subscribe", home, "SELECT symbol, per FROM stocks WHERE per < 20")
    for per in range(5):
        event = insert("stocks", id=1, symbol="GOOG", per=per) | {"op": "upsert"}
        cli("publish", home, "-", input=lines(event))
        process()
    return home


def test_compacting(cli: Cli, used: Path) -> None:
    before = cli("content", used, 2, "--json").json
    told = cli("compact", used, "--json").json
    assert (told["offset"], told["log_offset"], told["held_back_by"]) == (8, 8, "")
    assert told["bytes_after"] < told["bytes_before"]
    assert cli("content", used, 2, "--json").json == before
    ran = cli("compact", used)
    assert ran.code == 0
    assert "compacted the messages up to offset 8, the log up to 8" in ran.out


def test_up_to_an_offset(cli: Cli, used: Path) -> None:
    ran = cli("compact", used, "--to", 5)
    assert ran.code == 0
    assert "compacted the messages up to offset 5, the log up to 0" in ran.out
    assert "note: only up to offset 5 was asked for" in ran.err


def test_somebody_is_at_work(cli: Cli, used: Path) -> None:
    with Hub(used):
        assert cli("compact", used).code == 8


def test_a_subscriber_that_is_too_far_behind(cli: Cli, used: Path) -> None:
    cli("compact", used)
    ran = cli("tail", used, 2, "--after", 4, "--no-follow")
    assert ran.code == 6
    assert "what changed between offsets 5 and 8 is no longer there" in ran.err
    assert "start again from the content" in ran.err
    assert cli("tail", used, 2, "--after", 7, "--no-follow").out == ""
    everything = cli("tail", used, 2, "--no-follow")
    assert everything.out.splitlines() == ["2:7:initial:[[1]]  insert  symbol=GOOG  per=4.0"]


def test_explaining_the_past(cli: Cli, used: Path) -> None:
    assert cli("explain", used, 2, "--offset", 4).code == 0
    cli("compact", used)
    ran = cli("explain", used, 2, "--offset", 4)
    assert ran.code == 6
    assert "the change at offset 4 is no longer in the log" in ran.err
