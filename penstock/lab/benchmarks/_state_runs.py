"""State layouts on real Spark: a streaming query that gets one batch after the other."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from penstock.lab.benchmarks._state_work import Content
from penstock.pipeline.gc_control import settle

if TYPE_CHECKING:
    import pandas as pd

POLL_SECONDS = 0.02
TRIGGER = "50 milliseconds"
_KEY_SCHEMA = "name string, key binary"
_VALUE_SCHEMA = "value binary"
_FILE_SCHEMA = pa.schema([("place", pa.int64()), ("task", pa.binary())])


class TooSlowError(Exception):
    """A batch took too long."""


class StateProcessor(StatefulProcessor):
    """A stage that only reads and writes its state."""

    def __init__(self, layout: str, term: str) -> None:
        self._layout = layout
        self._term = term

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._stored = handle.getMapState("state", _KEY_SCHEMA, _VALUE_SCHEMA)

    def close(self) -> None:
        pass

    def handleInputRows(
        self, key: Any, rows: Any, timerValues: TimerValues
    ) -> Iterator[pd.DataFrame]:
        import pandas as pd

        from penstock.lab.benchmarks._state_layouts import opened
        from penstock.lab.benchmarks._state_work import Task, perform

        tasks = [Task.from_bytes(task) for frame in rows for task in frame["task"]]
        with opened(self._layout, self._stored, int(key[0]), self._term) as entries:
            found = [perform(task, entries) for task in tasks]
        settle(self._term)
        told = [content for content in found if content.rows]
        return iter([pd.DataFrame(told, columns=Content._fields)] if told else [])


class StateRun:
    """One layout, its checkpoint, and the query that runs on it. Batches are timed by Spark."""

    def __init__(
        self, spark: SparkSession, layout: str, directory: Path, patience_seconds: float
    ) -> None:
        self.layout = layout
        self.content = Content()
        """The result of the last sweep."""
        self._spark = spark
        self._input, self._checkpoint = directory / "input", directory / "checkpoint"
        self._input.mkdir(parents=True)
        self._patience_seconds = patience_seconds
        self._batches = 0
        self._query: StreamingQuery | None = None

    @property
    def by_value(self) -> bool:
        """Whether Spark groups by join value instead of by bucket."""
        return self.layout == "keyed"

    def start(self, tasks: Iterable[tuple[int, bytes]]) -> float:
        """Start from the checkpoint, with nothing in memory or in mirrors; returns the seconds
        until the first batch is done."""
        began = time.monotonic()
        self._hand_over(tasks)
        processor = StateProcessor(self.layout, f"bench-{uuid4().hex}")
        self._query = (
            self._spark.readStream.schema("place long, task binary")
            .option("maxFilesPerTrigger", 1)
            .parquet(str(self._input))
            .groupBy("place")
            .transformWithStateInPandas(processor, "rows long, digest long", "append", "none")
            .observe("found", *(sql.sum(name).alias(name) for name in Content._fields))
            .writeStream.format("noop")
            .outputMode("append")
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(processingTime=TRIGGER)
            .start()
        )
        self._await()
        return time.monotonic() - began

    def batch(self, tasks: Iterable[tuple[int, bytes]]) -> float:
        """The seconds of one batch. After TooSlowError the run is over."""
        self._hand_over(tasks)
        return self._await()

    def stop(self) -> None:
        if self._query is not None:
            self._query.stop()
            self._query = None

    def checkpoint_bytes(self) -> int:
        """All state on disk: snapshots, and the changes since."""
        return sum(path.stat().st_size for path in self._state_files())

    def changelog_bytes(self) -> int:
        """The bytes written by the last batch."""
        name = f"{self._batches}.changelog"
        return sum(path.stat().st_size for path in self._state_files() if path.name == name)

    def _state_files(self) -> list[Path]:
        # Spark may remove some meanwhile.
        found = (Path(top) / name for top, _, names in os.walk(self._state) for name in names)
        return [path for path in found if path.exists()]

    @property
    def _state(self) -> Path:
        return self._checkpoint / "state"

    def _hand_over(self, tasks: Iterable[tuple[int, bytes]]) -> None:
        """As one file, renamed into place."""
        places, bodies = zip(*tasks, strict=True)
        table = pa.table([pa.array(places), pa.array(bodies, pa.binary())], schema=_FILE_SCHEMA)
        aside = self._input / f".{self._batches}"
        pq.write_table(table, aside, compression="none")
        aside.rename(self._input / f"{self._batches}.parquet")

    def _await(self) -> float:
        assert self._query is not None
        deadline = time.monotonic() + self._patience_seconds
        while time.monotonic() < deadline:
            if (problem := self._query.exception()) is not None:
                raise problem
            # Polled often enough not to miss one.
            progress = self._query.lastProgress
            if progress and progress.batchId == self._batches and progress.numInputRows:
                return self._done(json.loads(progress.json))
            time.sleep(POLL_SECONDS)
        self.stop()
        raise TooSlowError

    def _done(self, progress: dict[str, Any]) -> float:
        self._batches += 1
        found = progress.get("observedMetrics", {}).get("found", {})
        self.content = Content(*(found.get(name) or 0 for name in Content._fields))
        return float(progress["batchDuration"]) / 1000
