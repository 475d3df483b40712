"""publish."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from penstock.log import Home
from tests.cli.conftest import Cli, insert, lines


def test_publish_lines(cli: Cli, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "changes.jsonl"
    file.write_text(lines(insert("stocks", id=1, symbol="GOOG"), insert("stocks", id=2)))
    ran = cli("publish", home, file)
    assert (ran.code, ran.out) == (0, "published 2 events\n")
    assert f"penstock run {home} --once" in ran.err


def test_publish_several_files_as_json(cli: Cli, home: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one.jsonl", tmp_path / "other.ndjson"
    one.write_text(lines(insert("stocks", id=1)))
    other.write_text(lines(insert("stocks", id=2)))
    expected = {"events": 2, "log_end": 4, "being_processed": False}
    assert cli("publish", home, one, other, "--json").json == expected


def test_publish_standard_input(cli: Cli, home: Path) -> None:
    ran = cli("publish", home, "-", input=lines(insert("stocks", id=1, symbol="GOOG")))
    assert ran.out == "published 1 event\n"


def test_publish_says_nothing_of_run_where_somebody_processes(cli: Cli, home: Path) -> None:
    with Home.open(home).processing_lock("test"):
        ran = cli("publish", home, "-", input=lines(insert("stocks", id=1)))
    assert (ran.out, ran.err) == ("published 1 event\n", "")


def test_publish_csv_and_parquet(
    cli: Cli, home: Path, tmp_path: Path, process: Callable[[], None]
) -> None:
    cli("subscribe", home, "SELECT id, per FROM stocks")
    (tmp_path / "stocks.csv").write_text("id,symbol,per\n1,A,10\n2,B,20\n")
    assert cli("publish", home, tmp_path / "stocks.csv", "--table", "stocks").code == 0
    table = pa.table({"id": [2, 3], "symbol": ["B", "C"], "per": [21.0, 30.0]})
    # Its name does not say what it is.
    pyarrow.parquet.write_table(table, tmp_path / "stocks.data")
    ran = cli(
        "publish", home, tmp_path / "stocks.data", "--format", "parquet",
        "--table", "STOCKS", "--op", "upsert",
    )  # fmt: skip
    assert ran.out == "published 2 events\n"
    process()
    rows = cli("content", home, 2, "--json").json["rows"]
    assert rows == [{"id": 1, "per": 10.0}, {"id": 2, "per": 21.0}, {"id": 3, "per": 30.0}]


def test_publish_refuses_before_anything_is_appended(cli: Cli, home: Path, tmp_path: Path) -> None:
    good = tmp_path / "good.jsonl"
    good.write_text(lines(insert("stocks", id=1)))
    assert cli("publish", home, good, tmp_path / "missing.jsonl").code == 2
    assert cli("publish", home, good, "--table", "nothing").code == 4
    assert cli("publish", home, "-", "--format", "csv", "--table", "stocks").code == 2
    assert cli("publish", home, good, "--format", "csv").code == 2
    assert cli("publish", home, good, "--op", "replace").code == 2
    assert Home.open(home).log.end == 2


def test_publish_csv_without_table(cli: Cli, home: Path, tmp_path: Path) -> None:
    (tmp_path / "stocks.csv").write_text("id\n1\n")
    ran = cli("publish", home, tmp_path / "stocks.csv")
    assert ran.code == 4
    assert "which table" in ran.err


def test_publish_needs_a_home(cli: Cli, tmp_path: Path) -> None:
    ran = cli("publish", tmp_path / "nowhere", "-", input="")
    assert ran.code == 6
    assert "penstock init" in ran.err


def test_publish_is_refused_while_too_much_waits(cli: Cli, home: Path) -> None:
    cli("publish", home, "-", input=lines(insert("stocks", id=1), insert("stocks", id=2)))
    ran = cli("publish", home, "-", "--max-backlog", "3", input=lines(insert("stocks", id=3)))
    assert ran.code == 11
    assert "4 records wait to be processed" in ran.err
    assert Home.open(home).log.end == 4
