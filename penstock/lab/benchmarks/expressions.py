"""Subscriptions that compute with columns, compared with plain columns and with DuckDB."""

from __future__ import annotations

import json as json_text
import random
import tempfile
import time
from pathlib import Path
from typing import Annotated

import duckdb
import pyarrow as pa
import typer

from penstock.lab.benchmarks._measuring import Rates, Result, progress, rates, show
from penstock.registry import Registry
from penstock.storage import Home, RecordKind
from penstock.testing import LocalPipeline

EXAMPLES = """
  penstock bench expressions
  penstock bench expressions --events 50000 --json
"""
STREAM = "CREATE STREAM trades (symbol VARCHAR, volume BIGINT, price DECIMAL(12,2))"
QUERIES = {
    "plain columns": "SELECT symbol, volume FROM trades WHERE volume > {0}",
    "arithmetic": "SELECT symbol, volume FROM trades WHERE volume * 2 + 1 > {1}",
    "decimals": "SELECT symbol, price * volume AS worth FROM trades WHERE price * volume > {2}",
    "texts": "SELECT upper(symbol) AS s FROM trades WHERE lower(symbol) = 's{0}'",
}
MOST = 1_000_000
COLUMNS = (
    "query",
    "subscriptions",
    "events",
    "events_per_s",
    "spread",
    "of_plain_columns",
    "duckdb_rows_per_s",
)


def expressions(
    events: Annotated[int, typer.Option(help="Events of a batch.", min=1, max=MOST)] = 20_000,
    subscriptions: Annotated[int, typer.Option(help="Of each kind.", min=1, max=MOST)] = 100,
    repetitions: Annotated[int, typer.Option(help="How often to measure.", min=1, max=1_000)] = 5,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure batches of the pipeline without Spark, in CPU time of one process.

    All subscriptions of a kind compute the same values and compare them with different constants.
    DuckDB computes the same values of the same rows, which it has as an Arrow table; it neither
    reads events nor finds subscribers.
    """
    with progress("the events"):
        rows = _rows(events)
    results: list[Result] = []
    plain = 0.0
    for name, text in QUERIES.items():
        with progress(name):
            found = _pipeline(text, rows, subscriptions, repetitions)
            plain = plain or found.median
            results.append(
                {
                    "query": name,
                    "subscriptions": subscriptions,
                    "events": events,
                    "events_per_s": round(found.median),
                    "spread": round(found.spread, 2),
                    "of_plain_columns": round(found.median / plain, 2),
                    "duckdb_rows_per_s": round(_duckdb(text, rows, repetitions).median),
                }
            )
    show(results, json, COLUMNS)


def _rows(count: int) -> list[tuple[str, int, int]]:
    numbers = random.Random(1)
    return [
        (f"S{numbers.randrange(500)}", numbers.randrange(100_000), numbers.randrange(10_000_000))
        for _ in range(count)
    ]


def _text(query: str, number: int) -> str:
    """A query that few events satisfy."""
    return query.format(99_000 + number, 198_000 + number, 9_900_000_000 + number)


def _pipeline(
    query: str, rows: list[tuple[str, int, int]], subscriptions: int, repetitions: int
) -> Rates:
    lines = [
        json_text.dumps(
            {"table": "trades", "row": {"symbol": s, "volume": v, "price": f"{p / 100:.2f}"}}
        ).encode()
        for s, v, p in rows
    ]
    with tempfile.TemporaryDirectory() as directory:
        home = Home.create(Path(directory) / "home")
        with Registry(home) as registry:
            registry.define(STREAM)
            registry.subscribe_many([_text(query, number) for number in range(subscriptions)])
        pipeline = LocalPipeline(home, batch_rows=2 * len(rows))
        pipeline.run()

        def work() -> int:
            home.log.append([(RecordKind.EVENT, line) for line in lines])
            return len(lines) if pipeline.run() else 0

        return rates(work, repetitions, time.process_time)


def _duckdb(query: str, rows: list[tuple[str, int, int]], repetitions: int) -> Rates:
    symbols, volumes, prices = zip(*rows, strict=True)
    database = duckdb.connect(config={"threads": 1})
    given = pa.table({"symbol": symbols, "volume": volumes, "cents": prices})
    database.register("given", given)
    database.execute(
        "CREATE TABLE trades AS SELECT symbol, volume, "
        "CAST(cents / 100 AS DECIMAL(12,2)) AS price FROM given"
    )

    def work() -> int:
        database.execute(_text(query, 0)).fetchall()
        return len(rows)

    try:
        return rates(work, repetitions)
    finally:
        database.close()
