"""`penstock status`: without Spark, from metrics as a pipeline writes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from penstock import Hub
from penstock.pipeline.metrics import MetricsFiles
from penstock.storage import Home
from tests.cli.conftest import Cli, insert, lines
from tests.pipeline.test_metrics import some


def test_a_home_that_nobody_has_processed(cli: Cli, home: Path) -> None:
    cli("subscribe", home, "SELECT * FROM stocks")
    told = cli("status", home, "--json").json
    assert (told["log_end"], told["offset"], told["lag"]) == (3, 0, 3)
    assert (told["subscriptions"], told["waiting"]) == (1, 1)
    assert told["processed_by"] is told["last_batch"] is told["rates"] is told["traffic"] is None
    ran = cli("status", home, "--once")
    assert ran.code == 0
    assert "no pipeline has run" in ran.out
    assert "1, 1 of them not active yet" in ran.out


def test_what_a_pipeline_did(cli: Cli, home: Path) -> None:
    files = MetricsFiles(Home.open(home).metrics)
    for batch in range(2):
        files.write(some(batch))
    told = cli("status", home, "--json").json
    assert told["last_batch"]["batch"] == 1
    assert told["rates"]["batches"] == 2
    assert told["rates"]["records_per_s"] == 20 / 3
    assert told["rates"]["batch_seconds"] == 1.5
    assert told["rates"]["phases"] == {"addBatch": 1.0, "walCommit": 0.05}
    ran = cli("status", home)  # not a terminal: as with --once
    assert "7 records/s, 2 messages/s, 1.50 s each" in ran.out
    assert "addBatch 1.00 s, walCommit 0.05 s" in ran.out


def test_against_a_naive_server(cli: Cli, home: Path, process: Callable[[], None]) -> None:
    for _ in range(3):
        cli("subscribe", home, "SELECT * FROM stocks WHERE per < 20")
    cli("publish", home, "-", input=lines(insert("stocks", id=1, symbol="GOOG", per=12.5)))
    process()
    told = cli("status", home, "--naive", "--json").json
    assert told["traffic"]["messages"] == 1
    assert told["traffic"]["naive_rows"] == 3
    assert "3 rows" in cli("status", home, "--naive").out


def test_who_is_at_work(cli: Cli, home: Path) -> None:
    with Hub(home):
        assert cli("status", home, "--json").json["processed_by"].startswith("hub (process ")
