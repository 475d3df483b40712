"""Backtests: what queries would have received, had they been subscribed at an earlier offset.

The log is read once, from its beginning, by as many tasks as it has stretches. Changes are brought
together by row, their consequences by join value, and messages by query; each time Spark spreads
the places over tasks and sorts them, so that tasks need no state but that of one place. The steps
are those of the Hub and the pipeline (`penstock.flow.stages`, `penstock.client`), and the answer
is what a pipeline would have sent whose batch begins at the start.

What cannot be spread: the history of one row, of one join value, of one query.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.client import Notification
from penstock.errors import HomeError, PenstockError
from penstock.history.content_replay import Totals, replay_contents
from penstock.history.group_replay import replay_groups
from penstock.history.jobs import TaskProgress, brought_together, job_session, tasks_told
from penstock.history.reading import catalog_at, check_known, checked_end, read_stretches, stretches
from penstock.history.row_replay import change_rows, replay_rows
from penstock.history.rows import (
    HISTORY_SCHEMA,
    HistoryKind,
    HistoryRow,
    batches_of,
    rows_of,
)
from penstock.history.spec import BacktestSpec, prepared
from penstock.pipeline.gc_control import settle
from penstock.sql import Query, bind
from penstock.storage import Home

if TYPE_CHECKING:
    from penstock.catalog import Catalog

MAX_QUERIES = 100_000
MAX_SHOWN = 100_000
"""Of one query; they all come together in the memory of the process that asks."""
RANGES = 10


@dataclass(frozen=True, slots=True)
class Tested:
    """What one query would have received."""

    sql: str
    totals: Totals
    notifications: list[Notification] = field(default_factory=list)
    """In order, the first ones at least; `totals` counts all."""


@dataclass(frozen=True, slots=True)
class Backtest:
    """What all queries would have received from the records [start, end)."""

    start: int
    end: int
    ranges: list[tuple[int, int]]
    refused: int
    """Events that were unreadable, or that one of the tables asked about refused."""
    queries: list[Tested]
    seconds: float


def backtest(
    home: Path,
    statements: Sequence[str],
    *,
    start: int = 0,
    end: int | None = None,
    shown: int = MAX_SHOWN,
    ranges: int = RANGES,
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
    on_progress: TaskProgress | None = None,
) -> Backtest:
    """What these queries would have received, had they been subscribed at `start`, up to `end`.

    Nothing is written to the home but a log file, and no lock is taken: a pipeline may be running.
    SqlError if a query is refused, HomeError if the log has no such stretch, PipelineError if Spark
    fails.
    """
    began = time.monotonic()
    opened = Home.open(home.resolve())
    wanted = checked_end(opened, start, end)
    check_known(opened, start)
    catalog = catalog_at(opened.log, wanted)
    question = BacktestSpec(
        catalog, bound(statements, catalog), start, wanted, min(shown, MAX_SHOWN), max(1, ranges)
    )
    with job_session(opened, master, conf) as spark:
        rows = _run(spark, opened, question, on_progress)
    return answer(question, rows, time.monotonic() - began)


def bound(statements: Sequence[str], catalog: Catalog) -> tuple[Query, ...]:
    """The queries; the error says which of several statements was refused."""
    if len(statements) > MAX_QUERIES:
        raise HomeError(f"a backtest takes at most {MAX_QUERIES} queries, not {len(statements)}")
    known: dict[str, Query] = {}
    for number, sql in enumerate(statements, 1):
        try:
            known[sql] = known.get(sql) or bind(sql, catalog)
        except PenstockError as error:
            if len(statements) > 1:
                which = f"statement {number} of {len(statements)}"
                error.detail = f"{which}; {error.detail}" if error.detail else which
            raise
    return tuple(known[sql] for sql in statements)


def _run(
    spark: SparkSession, home: Home, question: BacktestSpec, tell: TaskProgress | None
) -> list[HistoryRow]:
    shares = stretches(question.end)
    sent = spark.sparkContext.broadcast(question)
    path = str(home.path)

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        asked = sent.value
        mine = [number for batch in numbers for number in batch.column(0).to_pylist()]
        changes = read_stretches(path, shares, mine, asked.catalog)
        settle(asked.id)
        return batches_of(change_rows(changes, asked.tables, asked.start))

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        known = prepared(sent.value)
        settle(known.question.id)
        return batches_of(replay_rows(rows_of(batches), known))

    def groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        known = prepared(sent.value)
        settle(known.question.id)
        return batches_of(replay_groups(rows_of(batches), known))

    def contents(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches_of(replay_contents(rows_of(batches), sent.value))

    steps = [rows, groups, contents] if question.has_joins else [rows, contents]
    flow = spark.range(0, len(shares), 1, len(shares)).mapInArrow(read, HISTORY_SCHEMA)
    for step in steps:
        flow, tasks = brought_together(flow, len(shares), step)
    with tasks_told(spark, len(shares) + tasks * len(steps), tell):
        found = flow.toArrow()
    sent.destroy()
    return list(rows_of(found.to_batches()))


def answer(question: BacktestSpec, rows: Iterable[HistoryRow], seconds: float) -> Backtest:
    """The result, from the rows that the last step has given in any order."""
    notifications: dict[int, list[HistoryRow]] = {}
    totals: dict[int, Totals] = {}
    refused = 0
    for row in rows:
        match row.kind:
            case HistoryKind.NOTIFICATION:
                notifications.setdefault(row.place, []).append(row)
            case HistoryKind.TOTALS:
                totals[row.place] = Totals.from_bytes(row.body)
            case HistoryKind.REFUSED:
                refused += row.step
    nothing = Totals(by_range=(0,) * question.ranges)
    tested = []
    for number, query in enumerate(question.queries):
        mine = sorted(notifications.get(number, []), key=lambda row: row.step)
        shown = [pickle.loads(row.body) for row in mine]
        tested.append(Tested(query.sql, totals.get(number, nothing), shown))
    ranges = _ranges(question)
    return Backtest(question.start, question.end, ranges, refused, tested, seconds)


def _ranges(question: BacktestSpec) -> list[tuple[int, int]]:
    """The offsets [from, to) of each range: the inverse of `BacktestSpec.range_of`."""
    length, count = question.end - question.start, question.ranges
    cuts = [question.start + -(-length * i // count) for i in range(count + 1)]
    return list(pairwise(cuts))
