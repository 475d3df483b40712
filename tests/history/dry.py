"""Backtests without Spark: the same steps, with lists in the place of its exchanges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.flow.graph import FLOW, tasks_of
from penstock.history.backtest import Backtest, answer, bound
from penstock.history.content_replay import replay_contents
from penstock.history.reading import catalog_at, checked_end
from penstock.history.replay import keyed_task, read_task
from penstock.history.rows import HistoryRow, batches_of, rows_of
from penstock.history.spec import BacktestIndex, BacktestSpec
from penstock.storage import Home

TASKS = 3


def dry_backtest(
    home: Home,
    statements: Sequence[str],
    start: int = 0,
    end: int | None = None,
    *,
    shown: int = 100_000,
    ranges: int = 4,
    records: int = 10,
    flow: str = FLOW,
) -> Backtest:
    wanted = checked_end(home, start, end)
    catalog = catalog_at(home.log, wanted)
    queries = bound(statements, catalog)
    question = BacktestSpec(
        catalog, queries, start, wanted, shown, ranges, buckets=3, records=records, flow=flow
    )
    known = BacktestIndex(question, home)
    rows = [row for number in range(len(question.spans)) for row in read_task([number], known)]
    for number in range(1, len(tasks_of(question.flow))):
        rows = [out for task in exchanged(rows) for out in keyed_task(number, task, known)]
    rows = [out for task in exchanged(rows) for out in replay_contents(task, question)]
    return answer(question, rows, 0.0)


def exchanged(rows: Iterable[HistoryRow]) -> list[list[HistoryRow]]:
    """What Spark does between two steps: by place, sorted, as bytes."""
    tasks: list[list[HistoryRow]] = [[] for _ in range(TASKS)]
    for row in rows:
        tasks[row.place % TASKS].append(row)
    return [list(rows_of(batches_of(sorted(task)))) for task in tasks]
