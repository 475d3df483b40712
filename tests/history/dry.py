"""Backtests without Spark: the same steps, with lists in the place of its exchanges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.history.backtest import Backtest, answer, bound
from penstock.history.content_replay import replay_contents
from penstock.history.group_replay import replay_groups
from penstock.history.reading import catalog_at, checked_end, read_stretches, stretches
from penstock.history.row_replay import change_rows, replay_rows
from penstock.history.rows import HistoryRow, batches_of, rows_of
from penstock.history.spec import BacktestSpec, WorkerSpec
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
) -> Backtest:
    wanted = checked_end(home, start, end)
    catalog = catalog_at(home.log, wanted)
    question = BacktestSpec(catalog, bound(statements, catalog), start, wanted, shown, ranges)
    known = WorkerSpec(question)
    shares = stretches(wanted, 3)
    rows: list[HistoryRow] = []
    for number in range(len(shares)):
        changes = read_stretches(str(home.path), shares, [number], catalog)
        rows += change_rows(changes, question.tables, start)
    rows = [out for task in exchanged(rows) for out in replay_rows(task, known)]
    rows = [out for task in exchanged(rows) for out in replay_groups(task, known)]
    rows = [out for task in exchanged(rows) for out in replay_contents(task, question)]
    return answer(question, rows, 0.0)


def exchanged(rows: Iterable[HistoryRow]) -> list[list[HistoryRow]]:
    """What Spark does between two steps: by place, sorted, as bytes."""
    tasks: list[list[HistoryRow]] = [[] for _ in range(TASKS)]
    for row in rows:
        tasks[row.place % TASKS].append(row)
    return [list(rows_of(batches_of(sorted(task)))) for task in tasks]
