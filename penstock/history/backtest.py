"""Backtests: what queries would have received, had they been subscribed at an earlier offset.

The log is read once, from its beginning, with one task per batch. The stages are those of the Hub
and the pipeline (`penstock.flow.stages`): Spark distributes the buckets of each keyed stage over
tasks and sorts them by batch, so that a task holds the state of one bucket at a time. Messages are
grouped by query, and the result is what a pipeline would have sent whose batch begins at the start.

Not parallel: the history of one bucket, and of one query.
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
from penstock.flow.graph import FLOW, tasks_of
from penstock.history.content_replay import Totals, replay_contents
from penstock.history.jobs import TaskProgress, brought_together, job_session, tasks_told
from penstock.history.reading import catalog_at, check_known, checked_end
from penstock.history.replay import keyed_task, read_task
from penstock.history.rows import (
    HISTORY_SCHEMA,
    ArrowStep,
    HistoryKind,
    HistoryRow,
    batches_of,
    rows_of,
)
from penstock.history.spec import BacktestSpec, worker_spec
from penstock.pipeline.gc_control import settle
from penstock.sql import Query, bind
from penstock.storage import Home

if TYPE_CHECKING:
    from penstock.catalog import Catalog

MAX_QUERIES = 100_000
MAX_SHOWN = 100_000
"""Maximum per query; they are all collected in the memory of the calling process."""
RANGES = 10


@dataclass(frozen=True, slots=True)
class Tested:
    """What one query would have received."""

    sql: str
    totals: Totals
    notifications: list[Notification] = field(default_factory=list)
    """In order, at least the first ones; `totals` counts all."""


@dataclass(frozen=True, slots=True)
class Backtest:
    """What all queries would have received from the records [start, end)."""

    start: int
    end: int
    ranges: list[tuple[int, int]]
    refused: int
    """Events that were unreadable, or that one of the queried tables refused."""
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
    flow: str = FLOW,
) -> Backtest:
    """The result for these queries, as if they had been subscribed at `start`, up to `end`.

    Only a log file is written to the home, and no lock is taken: a pipeline may be running.
    SqlError if a query is refused, HomeError if the log has no such range, PipelineError if Spark
    fails.
    """
    began = time.monotonic()
    opened = Home.open(home.resolve())
    wanted = checked_end(opened, start, end)
    check_known(opened, start)
    catalog = catalog_at(opened.log, wanted)
    question = BacktestSpec(
        catalog,
        bound(statements, catalog),
        start,
        wanted,
        min(shown, MAX_SHOWN),
        max(1, ranges),
        flow=flow,
    )
    with job_session(opened, master, conf) as spark:
        rows = _run(spark, opened, question, on_progress)
    return answer(question, rows, time.monotonic() - began)


def bound(statements: Sequence[str], catalog: Catalog) -> tuple[Query, ...]:
    """The bound queries; the error says which of several statements was refused."""
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
    path, tasks_in_all = str(home.path), len(question.spans)
    sent = spark.sparkContext.broadcast(question)

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        known = worker_spec(sent.value, path)
        settle(known.spec.id)
        mine = [number for batch in numbers for number in batch.column(0).to_pylist()]
        return batches_of(read_task(mine, known))

    def keyed(number: int) -> ArrowStep:
        def step(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            known = worker_spec(sent.value, path)
            settle(known.spec.id)
            return batches_of(keyed_task(number, rows_of(batches), known))

        return step

    def contents(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches_of(replay_contents(rows_of(batches), sent.value))

    count = len(question.spans)
    rows = spark.range(0, count, 1, count).mapInArrow(read, HISTORY_SCHEMA)
    for step in [*map(keyed, range(1, len(tasks_of(question.flow)))), contents]:
        rows, tasks = brought_together(rows, count, step)
        tasks_in_all += tasks
    with tasks_told(spark, tasks_in_all, tell):
        found = rows.toArrow()
    sent.destroy()
    return list(rows_of(found.to_batches()))


def answer(question: BacktestSpec, rows: Iterable[HistoryRow], seconds: float) -> Backtest:
    """The result, from the rows of the last step in any order."""
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
