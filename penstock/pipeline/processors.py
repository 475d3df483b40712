"""Keyed stages as Spark processors: a thin shell that carries the path of the home.

Spark loads this class in several processes that never see a row, to ask for its schemas. So
whatever the work needs is imported lazily: that takes a second of processor time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from penstock.garbage import without_garbage
from penstock.pipeline.gc_control import settle

if TYPE_CHECKING:
    from penstock.flow.exchange import Spread
    from penstock.pipeline.state import BucketState

# Not as text: Java would parse it in every task.
KEY_SCHEMA = StructType([StructField("name", StringType()), StructField("key", BinaryType())])
VALUE_SCHEMA = StructType([StructField("value", BinaryType())])

_ROW = Row("bucket", "kind", "count", "chunk")


class TaskProcessor(StatefulProcessor):
    """One task of the flow. `handleInputRows` gets all rows of one bucket in one batch at once."""

    def __init__(self, home: str, term: str, flow: str, number: int, state: str) -> None:
        """The task with this number; `state` is the name of its keyed stage."""
        self._home = home
        self._term = term
        self._flow = flow
        self._number = number
        self._state = state

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._stored = handle.getMapState(self._state, KEY_SCHEMA, VALUE_SCHEMA)

    def close(self) -> None:
        pass

    def handleInputRows(self, key: Any, rows: Any, timerValues: TimerValues) -> Iterator[Row]:
        from penstock.flow.exchange import StageInput
        from penstock.flow.graph import tasks_of
        from penstock.flow.safely import advance_safely, advance_task
        from penstock.pipeline.chunks import chunk_rows
        from penstock.pipeline.worker_index import worker_home, worker_view

        view, bucket = worker_view(self._home), int(key[0])
        stages, given = tasks_of(self._flow)[self._number], StageInput.of_chunks(rows)
        with without_garbage(), self._open_state(bucket, view.spread) as state:
            out = advance_task(stages, given, state, view, view.spread, advance_safely)
            chunks = chunk_rows(out, worker_home(self._home).staging)
        settle((self._home, view.active))
        return iter([_ROW(*chunk) for chunk in chunks])

    def _open_state(self, bucket: int, spread: Spread) -> AbstractContextManager[BucketState]:
        """The state of a bucket. Buckets are rewritten as a whole now and then, not all in the same
        batch."""
        from penstock.pipeline.state import BucketState, Mirror, mirror_directory

        mirror = Mirror(mirror_directory(self._term) / f"{self._state}-{bucket}")
        rewrite_ratio = 1 + spread.phase(bucket)
        return BucketState.opened(self._stored, mirror, rewrite_ratio)
