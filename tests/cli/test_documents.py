"""Documents and XMLTABLE through every command, without Spark and on it; in both gears without."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from penstock import Hub
from penstock.storage import Home
from penstock.testing import LocalPipeline
from tests.cli.conftest import Cli, insert, lines
from tests.operators.evaluating import in_process
from tests.pipeline.test_packed_stages import check as assert_gears_agree

TABLES = (
    "CREATE TABLE news (id BIGINT PRIMARY KEY, place VARCHAR, doc XML)",
    "CREATE TABLE people (name VARCHAR PRIMARY KEY, rank INTEGER)",
    "CREATE STREAM wire (doc XML)",
    "CREATE OPERATOR hasLetter AS 'tests.operators.samples:has_letter'",
)
ITEMS = (
    "XMLTABLE('//item' PASSING {} COLUMNS author VARCHAR PATH 'author', price INTEGER PATH 'price')"
)
QUERIES = (
    f"SELECT id, x.author, x.price FROM news, {ITEMS.format('doc')} AS x WHERE x.price > 2",
    f"""SELECT id, upper(x.author) AS a FROM news, {ITEMS.format("doc")} AS x
    WHERE x.price + length(place) > 6""",
    f"""SELECT id, x.author, y.author AS other
    FROM news, {ITEMS.format("doc")} AS x, {ITEMS.format("doc")} AS y WHERE x.price < y.price""",
    f"""SELECT n.id, p.rank FROM news n, {ITEMS.format("n.doc")} AS x, people p
    WHERE x.author = p.name AND p.rank > 1""",
    """SELECT /*+ payload(part) */ id, y.author, part
    FROM news, XMLTABLE('//item' PASSING doc COLUMNS part XML PATH '.') AS x,
    XMLTABLE('/item' PASSING x.part COLUMNS author VARCHAR PATH 'author') AS y""",
    f"""SELECT id, x.author FROM news, {ITEMS.format("doc")} AS x
    WHERE hasLetter(x.author, 'd') AND x.price > 0""",
    f"SELECT x.author FROM wire, {ITEMS.format('doc')} AS x WHERE x.price >= 1",
    "SELECT id, doc FROM news WHERE doc IS NOT NULL AND id < 5",
)
NAMES = ("Ada", "Bob", "Cy", "Dee")


def document(number: int) -> str:
    pairs = [(NAMES[(number + i) % 4], (3 * number + i) % 7) for i in range(number % 4)]
    item = "<item><author>{}</author><price>{}</price></item>"
    items = "".join(item.format(*pair) for pair in pairs)
    return f"<news n='{number}'>{items}</news>"


def row(number: int, text: str | None = None) -> dict[str, Any]:
    place = "here" if number % 2 else "there"
    return {"id": number, "place": place, "doc": document(number) if text is None else text}


@pytest.fixture
def subscribed(cli: Cli, tmp_path: Path) -> Path:
    path = tmp_path / "home"
    assert cli("init", path).code == 0
    for sql in TABLES:
        assert cli("execute", path, sql).code == 0
    for sql in QUERIES:
        assert cli("subscribe", path, sql).code == 0
    return path


def publish_first(cli: Cli, home: Path, tmp_path: Path) -> None:
    """Documents from JSON, CSV and Parquet, among them some that are refused."""
    with open(tmp_path / "news.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["id", "place", "doc"])
        writer.writeheader()
        writer.writerows(map(row, range(10, 20)))
    rows = [row(i) for i in range(20, 30)]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "news.parquet")
    people = [insert("people", name=name, rank=i) for i, name in enumerate(NAMES)]
    events = [insert("news", **row(i)) for i in range(10)]
    streamed = [insert("wire", doc=document(i)) for i in range(8)]
    bad = [
        insert("news", **row(90, "<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>")),
        insert("news", **row(91, "<a>" * 300 + "</a>" * 300)),
        insert("wire", doc="<a>"),
    ]
    events = [*people, *events, *streamed, *bad]
    assert cli("publish", home, "-", input=lines(*events)).code == 0
    for name in ("news.csv", "news.parquet"):
        ran = cli("publish", home, tmp_path / name, "--table", "news")
        assert ran.code == 0, ran.err


def publish_changes(cli: Cli, home: Path) -> None:
    events = [
        *(
            {"table": "news", "op": "update", "row": {"id": i, "doc": document(i + 5)}}
            for i in range(8)
        ),
        *({"table": "news", "op": "update", "row": {"id": i, "place": "x"}} for i in (11, 13, 15)),
        *({"table": "news", "op": "delete", "row": {"id": i}} for i in range(20, 25)),
        {"table": "news", "op": "update", "row": {"id": 16, "doc": None}},
        {"table": "news", "op": "update", "row": {"id": 17, "doc": "<"}},
        {"table": "people", "op": "update", "row": {"name": "Bob", "rank": 9}},
        {"table": "people", "op": "delete", "row": {"name": "Dee"}},
    ]
    assert cli("publish", home, "-", input=lines(*events)).code == 0


def check_everything(cli: Cli, home: Path) -> None:
    """Every command that reads a home; contents are compared with DuckDB and lxml by verify."""
    verified = cli("verify", home, "--all", "--json").json
    assert len(verified["compared"]) == len(QUERIES)
    assert verified["findings"] == []
    listed = cli("subscriptions", home, "--json").json["subscriptions"]
    numbers = [one["id"] for one in listed]
    assert len(numbers) == len(QUERIES)
    for number in numbers:
        content = cli("content", home, number, "--json").json
        assert content["rows"]
        told = [json.loads(one) for one in tail(cli, home, number)]
        entered = sum(one["kind"] == "insert" for one in told)
        left = sum(one["kind"] == "delete" for one in told)
        assert entered - left == len(content["rows"])
    assert cli("status", home, "--json").json
    assert "documents" in cli("explain", home, "--plan").out
    change = {"table": "news", "op": "delete", "row": {"id": 1}}
    assert "reaches: rows leave" in cli("explain", home, numbers[0], json.dumps(change)).out
    refused = cli("quarantine", home, "list").out
    for reason in ("document type declaration", "nested too deeply", "not well-formed"):
        assert reason in refused


def tail(cli: Cli, home: Path, number: int) -> list[str]:
    return cli("tail", home, number, "--no-follow", "--json").out.splitlines()


@pytest.mark.slow
def test_every_command(cli: Cli, subscribed: Path, tmp_path: Path) -> None:
    publish_first(cli, subscribed, tmp_path)
    with Hub(subscribed):
        pass
    publish_changes(cli, subscribed)
    with Hub(subscribed):
        pass
    check_everything(cli, subscribed)
    before = contents(cli, subscribed)
    assert cli("compact", subscribed).code == 0
    assert contents(cli, subscribed) == before
    assert cli("verify", subscribed, "--all", "--json").json["findings"] == []
    assert cli("publish", subscribed, "-", input=lines(insert("news", **row(50)))).code == 0
    with Hub(subscribed):
        pass
    assert cli("verify", subscribed, "--all", "--json").json["findings"] == []


def contents(cli: Cli, home: Path) -> list[list[str]]:
    listed = cli("subscriptions", home, "--json").json["subscriptions"]
    found = (cli("content", home, one["id"], "--json").json["rows"] for one in listed)
    return [sorted(map(json.dumps, rows)) for rows in found]


@pytest.mark.slow
def test_in_either_gear(cli: Cli, subscribed: Path, tmp_path: Path) -> None:
    """Without Spark: both gears publish the same bytes, and what they publish is right."""
    publish_first(cli, subscribed, tmp_path)
    publish_changes(cli, subscribed)
    home = Home.open(subscribed)
    with in_process():
        for batch_rows in (7, 1000):
            assert_gears_agree(home, batch_rows)
        LocalPipeline(home, batch_rows=7).run()
    check_everything(cli, subscribed)


def test_on_spark(spark: SparkSession, cli: Cli, subscribed: Path, tmp_path: Path) -> None:
    publish_first(cli, subscribed, tmp_path)
    assert cli("run", subscribed, "--once").code == 0
    publish_changes(cli, subscribed)
    assert cli("run", subscribed, "--once", "--batch-rows", "20").code == 0
    check_everything(cli, subscribed)
    mine = [i for i, sql in enumerate(QUERIES) if "hasLetter" not in sql]  # backtests ask nobody
    statements = tmp_path / "queries.sql"
    statements.write_text(";\n".join(QUERIES[i] for i in mine))
    tested = cli("backtest", subscribed, "--file", statements, "--json").json
    found = contents(cli, subscribed)
    assert [one["rows"] for one in tested["queries"]] == [len(found[i]) for i in mine]
