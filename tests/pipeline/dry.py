"""The pipeline without Spark: the same stages over state in dictionaries, batch by batch.

Quick enough to be led through thousands of stories, and through crashes at every point.
"""

from __future__ import annotations

import copy
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from penstock.flow import stages
from penstock.joins.initial_regions import MANY_NEWCOMERS
from penstock.pipeline.decode import ticks
from penstock.pipeline.fault_rows import FaultsFoundError, check_faults
from penstock.pipeline.faults import GROUPS, ROWS, advance_safely, decode_safely
from penstock.pipeline.offsets import StreamOffset, next_offset, span_of
from penstock.pipeline.rows import RowKind, Span, StageInput, StageOutput
from penstock.pipeline.sink import Outcome, gather, publish, sweep_staging
from penstock.pipeline.snapshots import compile_snapshot
from penstock.pipeline.source import LogRange, events_of
from penstock.pipeline.state import BucketState, Mirror
from penstock.pipeline.worker_index import WorkerIndex
from penstock.registry import Registry
from penstock.registry.leases import Clock
from penstock.storage import Home


class FakeMap:
    """A MapState in memory that counts how often it is asked."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, bytes], bytes] = {}
        self.calls: list[str] = []

    def copy(self) -> FakeMap:
        other = FakeMap()
        other.entries, other.calls = dict(self.entries), self.calls
        return other

    def getValue(self, key: tuple[str, bytes]) -> tuple[bytes] | None:  # noqa: N802
        self.calls.append("get")
        return (self.entries[key],) if key in self.entries else None

    def updateValue(self, key: tuple[str, bytes], value: tuple[bytes]) -> None:  # noqa: N802
        self.calls.append("update")
        self.entries[key] = value[0]

    def removeKey(self, key: tuple[str, bytes]) -> None:  # noqa: N802
        self.calls.append("remove")
        del self.entries[key]

    def iterator(self) -> Iterator[tuple[tuple[str, bytes], tuple[bytes]]]:
        self.calls.append("iterator")
        return iter([(key, (value,)) for key, value in self.entries.items()])


@dataclass
class DryPipeline:
    """A pipeline and its checkpoint: where it is, and the state of both stages."""

    home: Home
    batch_rows: int = 1000
    clock: Clock = time.time
    offset: StreamOffset = field(default_factory=StreamOffset)
    many_newcomers: int = MANY_NEWCOMERS
    """From so many on, new subscriptions are not named one by one."""
    rows: dict[int, FakeMap] = field(init=False)
    groups: dict[int, FakeMap] = field(init=False)

    def __post_init__(self) -> None:
        self._mirrors = TemporaryDirectory(prefix="penstock-mirrors-")
        self._view = WorkerIndex(self.home)
        self.rows = {bucket: FakeMap() for bucket in self._view.buckets}
        self.groups = {bucket: FakeMap() for bucket in self._view.buckets}
        self._registry = Registry(self.home, clock=self.clock)

    def run(self) -> int:
        """Process the log up to its present end; the number of batches."""
        self._registry.expire()
        target = self.home.log.end
        for batches in range(10_000):
            end = self.planned(target)
            if end == self.offset:
                return batches
            self.process(end)
        raise AssertionError("it goes on for ever")

    def planned(self, target: int | None = None) -> StreamOffset:
        target = self.home.log.end if target is None else target
        frontier = self.home.messages.frontier
        return next_offset(self.home.log, frontier, self.offset, target, self.batch_rows)

    def process(self, end: StreamOffset) -> None:
        outcome = self.compute_safely(end)
        publish(self.home.log, self.home.messages, outcome)
        self.offset = end

    def compute_safely(self, end: StreamOffset) -> Outcome:
        """What a batch gives, once all records that it fails of are set aside."""
        while True:
            before = [{b: m.copy() for b, m in maps.items()} for maps in (self.rows, self.groups)]
            try:
                return self.compute(end)
            except FaultsFoundError:
                self.rows, self.groups = before

    def compute(self, end: StreamOffset) -> Outcome:
        """What a batch gives. The state has moved on, the message log has not."""
        with mock.patch.object(stages, "MANY_NEWCOMERS", self.many_newcomers):
            return self._computed(end)

    def _computed(self, end: StreamOffset) -> Outcome:
        self._registry.catch_up(end.position)
        span = span_of(self.offset, end)
        decoded = StageOutput(self._view.buckets)
        self._append(decoded, ticks(span, self._view.buckets))
        for part in _partitions(span):
            for events in events_of(self.home.log, part):
                self._append(decoded, decode_safely(events, span, self._view))
        changed = StageOutput(self._view.buckets)
        for bucket, rows in self._by_bucket(decoded):
            with self._opened("rows", bucket, self.rows[bucket]) as state:
                self._append(changed, advance_safely(ROWS, bucket, rows, state, self._view))
        joined = StageOutput(self._view.buckets)
        for bucket, rows in self._by_bucket(changed):
            with self._opened("groups", bucket, self.groups[bucket]) as state:
                self._append(joined, advance_safely(GROUPS, bucket, rows, state, self._view))
        sent = StageInput.of_rows(joined.to_rows(self.home.staging))
        check_faults(sent, self.home)
        outcome = gather(sent, self.home.staging)
        sweep_staging(self.home.staging)
        assert outcome.span == span
        return outcome

    def _by_bucket(self, out: StageOutput) -> Iterable[tuple[int, StageInput]]:
        """As Spark deals rows out: by bucket, the buckets in any order."""
        rows = out.to_rows(self.home.staging)
        for bucket in sorted({row[0] for row in rows}, reverse=True):
            yield bucket, StageInput.of_rows(row for row in rows if row[0] == bucket)

    def _append(self, out: StageOutput, more: StageOutput) -> None:
        for bucket, inbox in self._by_bucket(more):
            out.forward(bucket, inbox, *RowKind)

    @contextmanager
    def _opened(self, name: str, bucket: int, stored: FakeMap) -> Iterator[BucketState]:
        """Mirrors outlive crashes of workers: they must be found to be of another state."""
        mirror = Mirror(Path(self._mirrors.name) / f"{name}-{bucket}")
        with BucketState.opened(
            stored, mirror, rewrite_ratio=self._view.buckets.phase(bucket)
        ) as state:
            yield state

    def crash(self) -> None:
        """Compute a batch, and be killed before anything of it is stored."""
        end = self.planned()
        if end != self.offset:
            copy_of_self = copy.copy(self)
            copy_of_self.rows = copy.deepcopy(self.rows)
            copy_of_self.groups = copy.deepcopy(self.groups)
            copy_of_self.compute(end)
        self._view = WorkerIndex(self.home)

    def crash_after_publishing(self) -> None:
        """Publish a batch, and be killed before the checkpoint says so."""
        end = self.planned()
        if end != self.offset:
            before = copy.deepcopy(self.rows), copy.deepcopy(self.groups)
            outcome = self.compute(end)
            publish(self.home.log, self.home.messages, outcome)
            self.rows, self.groups = before
            # Those who replay it may find other snapshots than those who began it.
            if list(self.home.snapshots.glob("*")):
                self.lose_snapshots()
            else:
                self.snapshot(end.active)
            self._view = WorkerIndex(self.home)
            # It was planned, so it is replayed, by other workers, and must give the same.
            assert self.compute(end) == outcome
            publish(self.home.log, self.home.messages, outcome)
            self.offset = end

    def snapshot(self, active: int) -> None:
        """Compile the subscriptions before an offset, as the planner of batches does at times."""
        self._registry.catch_up(active)
        if active and not (self.home.snapshots / f"{active:020d}").exists():
            compile_snapshot(self.home.snapshots, self._registry, active, {})

    def lose_snapshots(self) -> None:
        for path in self.home.snapshots.iterdir():
            shutil.rmtree(path)


def _partitions(span: Span) -> list[LogRange]:
    middle = (span.start + span.end) // 2
    return [
        LogRange(span.start, middle, span, leads=True),
        LogRange(middle, span.end, span, leads=False),
    ]
