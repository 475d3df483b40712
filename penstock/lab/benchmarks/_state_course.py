"""The sequence of batches that every state layout runs, and the measurements."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import TypeAlias

import numpy as np
from pyspark.sql import SparkSession

from penstock.errors import PenstockError
from penstock.lab.benchmarks._measuring import Result
from penstock.lab.benchmarks._processes import cpu_seconds
from penstock.lab.benchmarks._state_runs import StateRun, TooSlowError
from penstock.lab.benchmarks._state_work import StateWork, Touch

LOAD_ROWS = 100_000
CHANGES = 20_000
REPETITIONS = 3
LONG_SECONDS = 10.0
"""A batch is not repeated once its repetitions took this long in total."""

_Choice: TypeAlias = Callable[[int, int], np.ndarray]
"""Chooses rows to change, given their number and a seed."""


def measured(spark: SparkSession, layout: str, work: StateWork, patience: float) -> Result:
    """Run the whole sequence on a layout, or up to the batch that takes too long."""
    result: Result = {"layout": layout, "values": work.values, "rows": work.rows}
    # Spark may write a snapshot after the query has ended: use a directory that Spark removes.
    scratch = spark.sparkContext.getConf().get("spark.local.dir")
    with tempfile.TemporaryDirectory(dir=scratch, ignore_cleanup_errors=True) as directory:
        run = StateRun(spark, layout, Path(directory) / "full", patience)
        empty = StateRun(spark, layout, Path(directory) / "empty", patience)
        apply_steps = _Course(run, empty, work)
        try:
            for column, measure in apply_steps.measures.items():
                try:
                    result |= measure()
                except TooSlowError:
                    result[column] = f"> {patience:g} s"
                    break
        finally:
            run.stop()
            empty.stop()
    return result


class _Course:
    """The sequence of measurements, in this order."""

    def __init__(self, run: StateRun, empty: StateRun, work: StateWork) -> None:
        self._run, self._empty, self._work = run, empty, work
        self._seed = 0
        self._cpu_seconds = 0.0
        """Of Spark, its workers and this process, for the last kind of batch."""
        self.measures: dict[str, Callable[[], Result]] = {
            "load_rows_per_s": self._load,
            "recovery_s": self._recovery,
            "floor_s": self._floor,
            "by_row_per_s": lambda: self._rate("by_row_per_s", work.evenly, Touch.ROW),
            "by_group_per_s": self._by_group,
            "hot_per_s": lambda: self._rate("hot_per_s", work.hot),
            "skewed_per_s": lambda: self._rate("skewed_per_s", work.skewed),
            "sweep_s": self._sweep,
        }

    def _load(self) -> Result:
        self._run.start(self._tasks(self._work.one_per_bucket(), Touch.ROW))
        seconds = 0.0
        for rows in self._work.loads(LOAD_ROWS):
            self._seed += 1
            seconds += self._run.batch(self._tasks(rows, Touch.NOTHING))
        return {
            "load_rows_per_s": round(self._work.rows / seconds),
            "checkpoint_mb": round(self._run.checkpoint_bytes() / 1e6, 1),
        }

    def _recovery(self) -> Result:
        """One change in every bucket, first without state, then with it."""
        self._run.stop()
        rows = self._work.one_per_bucket()
        without = self._empty.start(self._tasks(rows, Touch.ROW))
        self._empty.stop()
        seconds = self._run.start(self._tasks(rows, Touch.ROW))
        return {"recovery_s": round(seconds - without, 2), "start_s": round(without, 2)}

    def _floor(self) -> Result:
        seconds = self._batches(self._work.evenly, 1)
        return {
            "floor_s": round(median(seconds), 2),
            "floor_kb": round(self._run.changelog_bytes() / 1e3, 1),
        }

    def _by_group(self) -> Result:
        rate = self._rate("by_group_per_s", self._work.evenly)
        return rate | {
            "cpu_us_by_group": round(self._cpu_seconds / CHANGES * 1e6, 1),
            "batch_mb": round(self._run.changelog_bytes() / 1e6, 1),
        }

    def _rate(self, column: str, choose: _Choice, touch: Touch = Touch.GROUP) -> Result:
        seconds = self._batches(choose, CHANGES, touch)
        return {column: round(CHANGES * len(seconds) / sum(seconds))}

    def _sweep(self) -> Result:
        seconds = self._run.batch(self._work.sweeps(self._run.by_value))
        return {"sweep_s": round(seconds, 2), "content": list(self._run.content)}

    def _batches(self, choose: _Choice, count: int, touch: Touch = Touch.GROUP) -> list[float]:
        """Repeats the same changes, so that the content does not depend on the number of
        repetitions."""
        self._seed += 1
        rows = choose(count, self._seed)
        seconds: list[float] = []
        tasks = list(self._tasks(rows, touch))
        began = cpu_seconds()
        while len(seconds) < REPETITIONS and sum(seconds) < LONG_SECONDS:
            seconds.append(self._run.batch(tasks))
        self._cpu_seconds = (cpu_seconds() - began) / len(seconds)
        return seconds

    def _tasks(self, rows: np.ndarray, touch: Touch) -> Iterator[tuple[int, bytes]]:
        return self._work.tasks(rows, touch, self._seed, self._run.by_value)


def check(results: Sequence[Result]) -> None:
    """Layouts with the same sequence must have the same content."""
    contents: dict[object, object] = {}
    for result in results:
        if "content" in result and result["layout"] != "nothing":
            size = result["values"], result["rows"]
            if contents.setdefault(size, result["content"]) != result["content"]:
                raise PenstockError("two layouts differ in what they hold", detail=str(result))
