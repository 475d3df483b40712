"""The source: the log of a home, as a stream of rows for Spark (`penstock.pipeline.rows`).

Workers read their share of a batch and decode it at once: between two processes, events would be
packed, copied and unpacked for nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from penstock.errors import LockedError
from penstock.garbage import without_garbage
from penstock.log import Home, RecordKind, RecordLog
from penstock.pipeline.offsets import BATCH_BYTES, StreamOffset, next_offset, span_of
from penstock.pipeline.rows import CHUNK_SCHEMA, Span
from penstock.pipeline.sizing import BatchSizer
from penstock.pipeline.workers import settle

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.pipeline.decode import Events
    from penstock.pipeline.keeping import SnapshotKeeper
    from penstock.registry import Registry

SOURCE_NAME = "penstock_log"

RECORDS_PER_PARTITION = 2_000
"""A smaller share of a batch is not worth a task of its own, which takes some 10 ms to start."""

EVENTS_AT_ONCE = 1 << 17
BYTES_AT_ONCE = 64 << 20  # 64 MiB
"""The more events are read, matched and packed at once, the less each costs, and the fewer files
messages are staged in."""

_EVENTS = frozenset({RecordKind.EVENT})


@dataclass(frozen=True)
class LogRange(InputPartition):
    """A share of a batch; one of them leads."""

    start: int
    end: int
    header: Span
    leads: bool


class LogSource(DataSource):
    """Options: `path` (of the home), `batch_rows`, `batch_bytes` and `partitions` (at most, of one
    batch),
    `latency_ms` (that a batch should take; 0: as large as allowed)."""

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
    ) -> None:
        self._path = path
        self._batch_rows = batch_rows
        self._batch_bytes = batch_bytes
        self._sizer = BatchSizer(batch_rows, latency_ms / 1000 if latency_ms else None)
        self._under_way: tuple[int, float] | None = None  # records of a batch, when it began
        self._partitions = partitions
        self._home: Home | None = None
        self._registry: Registry | None = None
        self._keeper: SnapshotKeeper | None = None
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
        # Workers read the tables and subscriptions that others have applied: here, before a batch.
        self._follow(end.position).keep_up(end.active)
        return end.to_json()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[LogRange]:
        span = span_of(StreamOffset.from_json(start), StreamOffset.from_json(end))
        self._follow(span.end)
        records = span.end - span.start
        count = max(1, min(self._partitions, records // RECORDS_PER_PARTITION))
        cuts = [span.start + records * i // count for i in range(count + 1)]
        return [
            LogRange(low, high, span, leads=i == 0) for i, (low, high) in enumerate(pairwise(cuts))
        ]

    def read(self, partition: LogRange) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        # Here, because other processes that load this class only look at it.
        from penstock.pipeline.decode import ticks
        from penstock.pipeline.faults import decode_safely
        from penstock.pipeline.view import worker_home, worker_view

        home, view, span = worker_home(self._path), worker_view(self._path), partition.header
        settle("read")
        if partition.leads:
            yield ticks(span).to_arrow(home.staging)
        for events in events_of(home.log, partition):
            with without_garbage():
                out = decode_safely(events, span, view).to_arrow(home.staging)
            yield out

    def stop(self) -> None:
        if self._registry is not None:
            self._registry.close()

    def __getstate__(self) -> dict[str, Any]:
        # Workers get a copy; they open what they need themselves.
        return self.__dict__ | {"_home": None, "_registry": None, "_keeper": None}

    def _end_leases(self, known: int) -> None:
        """Between batches: withdraw the subscriptions recorded before `known` whose leases have run
        out (and maybe later ones)."""
        self._follow(known)
        assert self._registry is not None
        # Somebody may keep the log for long; leases can wait.
        with suppress(LockedError):
            while self._registry.expire():
                pass

    def _opened(self) -> Home:
        if self._home is None:
            self._home = Home.open(self._path)
        return self._home

    def _follow(self, end: int) -> SnapshotKeeper:
        # Most processes that load this class only look at it, and need no database for that.
        from penstock.pipeline.keeping import SnapshotKeeper
        from penstock.registry import Registry

        if self._registry is None or self._keeper is None:
            self._registry = Registry(self._opened(), catch_up=False)
            self._keeper = SnapshotKeeper(self._opened(), self._registry)
        self._registry.catch_up(end)
        return self._keeper


def events_of(log: RecordLog, part: LogRange) -> Iterator[Events]:
    """The events of a share of a batch, in pieces of limited size. Other records are for the
    registry."""
    from penstock.pipeline.decode import Events

    events, size = Events([], []), 0
    for first, entries in log.frames(part.start, part.end, _EVENTS):
        is_event = list(map(_EVENTS.__contains__, map(itemgetter(0), entries)))
        bodies = list(compress(map(itemgetter(1), entries), is_event))
        events.offsets.extend(compress(range(first, first + len(entries)), is_event))
        events.bodies.extend(bodies)
        size += sum(map(len, bodies))
        if size >= BYTES_AT_ONCE or len(events.bodies) >= EVENTS_AT_ONCE:
            yield events
            events, size = Events([], []), 0
    yield events
