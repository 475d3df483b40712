"""The pipeline without Spark: the same stages over state in dictionaries, batch by batch.

Fast enough for thousands of test stories, and for crashes at every point.
"""

from __future__ import annotations

import copy
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from penstock.flow import plain
from penstock.flow.exchange import StageInput, StageOutput
from penstock.flow.graph import FLOW, tasks_of
from penstock.flow.kinds import Kind
from penstock.flow.safely import advance_safely, advance_task
from penstock.joins.initial_regions import MANY_NEWCOMERS
from penstock.pipeline.chunks import chunk_rows, ticks
from penstock.pipeline.fault_rows import FaultsFoundError, check_faults
from penstock.pipeline.log_events import events_of
from penstock.pipeline.offsets import StreamOffset, next_offset, span_of
from penstock.pipeline.sink import Outcome, gather, publish, sweep_staging
from penstock.pipeline.snapshots import compile_snapshot
from penstock.pipeline.state import BucketState, Mirror
from penstock.pipeline.worker_index import WorkerIndex
from penstock.registry import Clock, Registry
from penstock.storage import Home


class MapInMemory:
    """An in-memory MapState that counts accesses."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, bytes], bytes] = {}
        self.calls: list[str] = []

    def copy(self) -> MapInMemory:
        other = MapInMemory()
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
class LocalPipeline:
    """A pipeline and its checkpoint: its position, and the state of its keyed stages."""

    home: Home
    batch_rows: int = 1000
    clock: Clock = time.time
    offset: StreamOffset = field(default_factory=StreamOffset)
    many_newcomers: int = MANY_NEWCOMERS
    """From this many on, new subscriptions are not named one by one."""
    flow: str = FLOW
    """The stages (`penstock.flow.graph`)."""
    states: dict[str, dict[int, MapInMemory]] = field(default_factory=dict)
    """What Spark's state store would hold: by stage name and bucket."""

    def __post_init__(self) -> None:
        self._mirrors = TemporaryDirectory(prefix="penstock-mirrors-")
        self._view = WorkerIndex(self.home)
        self._spread = self._view.spread
        for stage, *_ in tasks_of(self.flow)[1:]:
            buckets = {bucket: MapInMemory() for bucket in self._spread.buckets}
            self.states.setdefault(stage.name, buckets)
        self._registry = Registry(self.home, clock=self.clock)

    def run(self) -> int:
        """Process the log up to its current end; returns the number of batches."""
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
        """The outcome of a batch, after setting aside all records that it fails on."""
        while True:
            before = {
                name: {bucket: stored.copy() for bucket, stored in stored_by.items()}
                for name, stored_by in self.states.items()
            }
            try:
                return self.compute(end)
            except FaultsFoundError:
                self.states = before

    def compute(self, end: StreamOffset) -> Outcome:
        """The outcome of a batch. The state has advanced, the message log has not."""
        with mock.patch.object(plain, "MANY_NEWCOMERS", self.many_newcomers):
            return self._computed(end)

    def _computed(self, end: StreamOffset) -> Outcome:
        self._registry.catch_up(end.position)
        span = span_of(self.offset, end)
        reading, *keyed = tasks_of(self.flow)
        out = StageOutput(self._spread)
        self._append(out, ticks(span, self._spread))
        middle = (span.start + span.end) // 2  # as if two tasks had read it
        for start, stop in ((span.start, middle), (middle, span.end)):
            for events in events_of(self.home.log, start, stop):
                given = StageInput(self._spread.buckets[0], span, events)
                self._append(
                    out,
                    advance_task(reading, given, None, self._view, self._spread, advance_safely),
                )
        for stages in keyed:
            given_rows, out = self._by_bucket(out), StageOutput(self._spread)
            for bucket, given in given_rows:
                with self._open_state(stages[0].name, bucket) as state:
                    self._append(
                        out,
                        advance_task(
                            stages, given, state, self._view, self._spread, advance_safely
                        ),
                    )
        sent = StageInput.of_chunks(chunk_rows(out, self.home.staging))
        check_faults(sent, self.home)
        outcome = gather(sent, self.home.staging)
        sweep_staging(self.home.staging)
        assert outcome.span == span
        return outcome

    def _by_bucket(self, out: StageOutput) -> list[tuple[int, StageInput]]:
        """As Spark distributes rows: by bucket, the buckets in any order."""
        rows = chunk_rows(out, self.home.staging)
        return [
            (bucket, StageInput.of_chunks(row for row in rows if row[0] == bucket))
            for bucket in sorted({row[0] for row in rows}, reverse=True)
        ]

    def _append(self, out: StageOutput, more: StageOutput) -> None:
        """Packed, as between processes."""
        for bucket, kind, count, chunk in chunk_rows(more, self.home.staging):
            out.add_chunk(bucket, Kind(kind), count, chunk)

    @contextmanager
    def _open_state(self, name: str, bucket: int) -> Iterator[BucketState]:
        """Mirrors outlive crashes of workers: a stale one must be detected."""
        mirror = Mirror(Path(self._mirrors.name) / f"{name}-{bucket}")
        stored, ratio = self.states[name][bucket], self._spread.phase(bucket)
        with BucketState.opened(stored, mirror, rewrite_ratio=ratio) as state:
            yield state

    def crash(self) -> None:
        """Compute a batch, and crash before anything of it is stored."""
        end = self.planned()
        if end != self.offset:
            copy_of_self = copy.copy(self)
            copy_of_self.states = copy.deepcopy(self.states)
            copy_of_self.compute(end)
        self._view = WorkerIndex(self.home)

    def crash_after_publishing(self) -> None:
        """Publish a batch, and crash before the checkpoint records it."""
        end = self.planned()
        if end != self.offset:
            before = copy.deepcopy(self.states)
            outcome = self.compute(end)
            publish(self.home.log, self.home.messages, outcome)
            self.states = before
            # A replay may find other snapshots than the first attempt.
            if list(self.home.snapshots.glob("*")):
                self.lose_snapshots()
            else:
                self.snapshot(end.active)
            self._view = WorkerIndex(self.home)
            # It was planned, so it is replayed, by other workers, with the same result.
            assert self.compute(end) == outcome
            publish(self.home.log, self.home.messages, outcome)
            self.offset = end

    def snapshot(self, active: int) -> None:
        """Compile the subscriptions before an offset, as the planner of batches does now and
        then."""
        self._registry.catch_up(active)
        if active and not (self.home.snapshots / f"{active:020d}").exists():
            compile_snapshot(self.home.snapshots, self._registry, active, {})

    def lose_snapshots(self) -> None:
        for path in self.home.snapshots.iterdir():
            shutil.rmtree(path)
