"""The source: the log of a home as a stream of rows for Spark (`penstock.flow.exchange`).

Workers read their share of a batch and decode it in the same task: a separate stage would
serialise, copy and deserialise the events for nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from penstock.errors import LockedError
from penstock.flow.graph import FLOW
from penstock.flow.kinds import Span
from penstock.garbage import without_garbage
from penstock.pipeline.buckets import CHUNK_SCHEMA
from penstock.pipeline.gc_control import settle
from penstock.pipeline.offsets import BATCH_BYTES, StreamOffset, next_offset, span_of
from penstock.pipeline.sizing import BatchSizer
from penstock.storage import Home

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.pipeline.snapshot_scheduler import SnapshotScheduler
    from penstock.registry import Registry

SOURCE_NAME = "penstock_log"

RECORDS_PER_PARTITION = 2_000
"""A smaller share of a batch does not pay for a task of its own, which takes some 10 ms to
start."""
RECORDS_PER_PARTITION_OF_OPERATORS = 4
"""The same where operators are declared: stream events are evaluated in the task that reads them,
and a few evaluations may take longer than starting a task."""


@dataclass(frozen=True)
class LogRange(InputPartition):
    """A share of a batch; one of them leads."""

    start: int
    end: int
    header: Span
    leads: bool


class LogSource(DataSource):
    """Options: `path` (of the home), `batch_rows`, `batch_bytes` and `partitions` (maximum per
    batch), `latency_ms` (target duration of a batch; 0: none)."""

    @classmethod
    def name(cls) -> str:
        return SOURCE_NAME

    def schema(self) -> str:
        return CHUNK_SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return LogReader(
            self.options["path"],
            int(self.options["batch_rows"]),
            int(self.options["partitions"]),
            int(self.options["latency_ms"]),
            int(self.options["batch_bytes"]),
            self.options["flow"],
        )


class LogReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives as long as the query, in a process of its own; `read` runs in the workers."""

    def __init__(
        self,
        path: str,
        batch_rows: int,
        partitions: int,
        latency_ms: int = 0,
        batch_bytes: int = BATCH_BYTES,
        flow: str = FLOW,
    ) -> None:
        self._path = path
        self._flow = flow
        self._batch_rows = batch_rows
        self._batch_bytes = batch_bytes
        self._sizer = BatchSizer(batch_rows, latency_ms / 1000 if latency_ms else None)
        self._under_way: tuple[int, float] | None = None  # records of a batch, when it began
        self._partitions = partitions
        self._home: Home | None = None
        self._registry: Registry | None = None
        self._keeper: SnapshotScheduler | None = None
        self._target: int | None = None

    def initialOffset(self) -> dict[str, int]:
        return StreamOffset().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._batch_rows)

    def prepareForTriggerAvailableNow(self) -> None:
        self._end_leases(self._opened().log.end)
        self._target = self._opened().log.end

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        # Spark asks for the next batch when the last one is done.
        if self._under_way is not None:
            records, began = self._under_way
            self._sizer.took(records, time.monotonic() - began)
        begin = StreamOffset.from_json(start)
        if self._target is None:
            self._end_leases(begin.position)
        home = self._opened()
        target = home.log.end if self._target is None else self._target
        most = (self._sizer.records, self._batch_bytes)
        end = next_offset(home.log, home.messages.frontier, begin, target, *most)
        records = end.position - begin.position
        self._under_way = (records, time.monotonic()) if records else None
        # Workers read the applied tables and subscriptions; they are applied here, before a batch.
        self._follow(end.position).ensure(end.active)
        return end.to_json()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[LogRange]:
        span = span_of(StreamOffset.from_json(start), StreamOffset.from_json(end))
        self._follow(span.end)
        records = span.end - span.start
        assert self._registry is not None
        calls = bool(self._registry.catalog().operators)
        least = RECORDS_PER_PARTITION_OF_OPERATORS if calls else RECORDS_PER_PARTITION
        count = max(1, min(self._partitions, records // least))
        cuts = [span.start + records * i // count for i in range(count + 1)]
        return [
            LogRange(low, high, span, leads=i == 0) for i, (low, high) in enumerate(pairwise(cuts))
        ]

    def read(self, partition: LogRange) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        # Lazy: other processes load this class without reading.
        from penstock.flow.exchange import StageInput
        from penstock.flow.graph import tasks_of
        from penstock.flow.safely import advance_safely, advance_task
        from penstock.pipeline.chunks import chunk_batch, ticks
        from penstock.pipeline.log_events import events_of
        from penstock.pipeline.worker_index import worker_home, worker_view

        home, view, span = worker_home(self._path), worker_view(self._path), partition.header
        stages = tasks_of(self._flow)[0]
        settle("read")
        if partition.leads:
            yield chunk_batch(ticks(span, view.spread), home.staging)
        for events in events_of(home.log, partition.start, partition.end):
            with without_garbage():
                given = StageInput(view.spread.buckets[0], span, events)
                out = advance_task(stages, given, None, view, view.spread, advance_safely)
                sent = chunk_batch(out, home.staging)
            yield sent

    def stop(self) -> None:
        if self._registry is not None:
            self._registry.close()

    def __getstate__(self) -> dict[str, Any]:
        # Workers get a copy; they open what they need themselves.
        return self.__dict__ | {"_home": None, "_registry": None, "_keeper": None}

    def _end_leases(self, known: int) -> None:
        """Between batches: withdraw the subscriptions recorded before `known` (and maybe later
        ones) whose leases have run out."""
        self._follow(known)
        assert self._registry is not None
        # Another process may hold the append lock for long; leases can wait.
        with suppress(LockedError):
            while self._registry.expire():
                pass

    def _opened(self) -> Home:
        if self._home is None:
            self._home = Home.open(self._path)
        return self._home

    def _follow(self, end: int) -> SnapshotScheduler:
        # Lazy: most processes that load this class need no database.
        from penstock.pipeline.snapshot_scheduler import SnapshotScheduler
        from penstock.registry import Registry

        if self._registry is None or self._keeper is None:
            self._registry = Registry(self._opened(), catch_up=False)
            self._keeper = SnapshotScheduler(self._opened(), self._registry)
        self._registry.catch_up(end)
        return self._keeper
