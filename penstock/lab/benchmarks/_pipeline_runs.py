"""Homes filled with a workload, and the pipeline run over them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil

from penstock.client import Initial
from penstock.lab.workloads.streams import StreamWorkload, take
from penstock.log import Home, RecordKind
from penstock.pipeline.run import Progress, run
from penstock.registry import MAX_SUBSCRIPTIONS_AT_ONCE, Registry

FRAME_EVENTS = 2_000
WARM_UP_BATCHES = 4
WARM_UP_SECONDS = 30.0
"""Java compiles what it runs often. After so long, small batches take what they will take."""
FIRST_BATCH_SECONDS = 300.0
CLOCK_STEP_NS = 50_000_000
"""A directory that changed longer than this before the last look has not changed since. Looking
into it takes time from what is measured."""


def fill(
    path: Path,
    workload: StreamWorkload,
    told: Callable[[str], None],
    initial: str = Initial.CONTENT,
) -> Home:
    """A home with tables, subscriptions and rows."""
    home = Home.create(path)
    with Registry(home) as registry:
        for sql in workload.tables:
            registry.define(sql)
        for first in range(0, len(workload.subscriptions), MAX_SUBSCRIPTIONS_AT_ONCE):
            told(f"subscribing: {first:,} of {len(workload.subscriptions):,}")
            part = workload.subscriptions[first : first + MAX_SUBSCRIPTIONS_AT_ONCE]
            registry.subscribe_many(part, initial=initial)
    append(home, workload.rows)
    return home


def append(home: Home, events: list[bytes]) -> None:
    for first in range(0, len(events), FRAME_EVENTS):
        part = events[first : first + FRAME_EVENTS]
        home.log.append([(RecordKind.EVENT, event) for event in part])


@dataclass
class Throughput:
    """What batches of full size took."""

    events: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    messages: int = 0
    peak_bytes: int = 0
    batch_seconds: list[float] = field(default_factory=list)


def throughput(home: Home, workload: StreamWorkload, batch_rows: int, batches: int) -> Throughput:
    """Run over what is there, then over batches of full size, the first of which do not count."""
    run(home.path, once=True, batch_rows=batch_rows)
    append(home, take(workload.events, batch_rows * (WARM_UP_BATCHES + batches)))
    meter = _Meter(home.messages.frontier.end if home.messages.frontier else 0)
    run(home.path, once=True, batch_rows=batch_rows, on_progress=meter.progress)
    return meter.measured


class _Meter:
    """Follows the batches of a run."""

    def __init__(self, position: int) -> None:
        self.measured = Throughput()
        self._position = position
        self._cpu = cpu_seconds()
        self._batches = 0

    def progress(self, batch: Progress) -> None:
        cpu = cpu_seconds()
        if self._batches >= WARM_UP_BATCHES:
            self.measured.events += batch.done - self._position
            self.measured.seconds += batch.seconds
            self.measured.cpu_seconds += cpu - self._cpu
            self.measured.messages += batch.messages
            self.measured.batch_seconds.append(batch.seconds)
        self.measured.peak_bytes = max(self.measured.peak_bytes, memory_bytes())
        self._cpu, self._position = cpu, batch.done
        self._batches += 1


def _processes() -> Iterator[psutil.Process]:
    me = psutil.Process(os.getpid())
    yield me
    yield from me.children(recursive=True)


def cpu_seconds() -> float:
    """Of this process, Java and all Python workers, so far."""
    total = 0.0
    for process in _processes():
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


def memory_bytes() -> int:
    """Of this process, Java and all Python workers; what they share counts once."""
    total = 0
    for process in _processes():
        with suppress(psutil.Error, OSError):
            total += _shared_fairly(process)
    return total


def _shared_fairly(process: psutil.Process) -> int:
    """What a process has, and its share of what it has with others."""
    summary = Path(f"/proc/{process.pid}/smaps_rollup")
    if not summary.exists():
        return int(process.memory_full_info().pss)
    # Looking at every mapping of Java, as psutil does, would hold up what is measured.
    (line,) = [line for line in summary.read_text().splitlines() if line.startswith("Pss:")]
    return int(line.split()[1]) << 10


def settle_in(home: Home, workload: StreamWorkload) -> None:
    """Process what is there, and then one more event: with it, the subscriptions become active."""
    run(home.path, once=True)
    append(home, take(workload.events, 1))
    run(home.path, once=True)


@dataclass(frozen=True)
class Latency:
    """From the moment an event is appended to the moment its batch is published."""

    rate: int
    p50_s: float
    p99_s: float


def latency(home: Home, workload: StreamWorkload, rate: int, seconds: float) -> Latency:
    """Append events at a rate while the pipeline runs, and watch the message log.

    All subscriptions have their content before the first of these events; those of the first half
    minute do not count.
    """
    settle_in(home, workload)
    stop, appended, seen = threading.Event(), [], []  # type: ignore[var-annotated]
    warm = threading.Event()
    running = threading.Thread(
        target=run,
        args=(home.path,),
        kwargs={"stop": stop, "on_progress": lambda _: warm.set()},
        daemon=True,
    )
    running.start()
    append(home, take(workload.events, 1))
    if not warm.wait(FIRST_BATCH_SECONDS):
        raise TimeoutError("the pipeline did not finish its first batch")
    publisher = threading.Thread(
        target=publish_at,
        args=(home, workload.events, rate, WARM_UP_SECONDS + seconds, appended),
        daemon=True,
    )
    begin = time.monotonic() + WARM_UP_SECONDS
    publisher.start()
    deadline = begin + seconds + FIRST_BATCH_SECONDS
    looked = 0
    while time.monotonic() < deadline:
        frontier = None
        if home.messages.directory.stat().st_mtime_ns > looked - CLOCK_STEP_NS:
            looked = time.time_ns()
            frontier = home.messages.frontier
        if frontier is not None and (not seen or frontier.end > seen[-1][0]):
            seen.append((frontier.end, time.monotonic()))
        if not publisher.is_alive() and seen and seen[-1][0] >= appended[-1][0]:
            break
        time.sleep(0.005)
    stop.set()
    running.join()
    return _latency_of(rate, [one for one in appended if one[1] >= begin], seen)


def publish_at(
    home: Home,
    events: Iterator[bytes],
    rate: int,
    seconds: float,
    appended: list[tuple[int, float]],
) -> None:
    """Every hundredth of a second (or as often as one event is due), what is due by then."""
    began, sent = time.monotonic(), 0
    while (now := time.monotonic()) - began < seconds:
        due = int((now - began) * rate) - sent
        if due:
            first = home.log.append([(RecordKind.EVENT, e) for e in take(events, due)])
            sent += due
            appended.append((first + due, time.monotonic()))
        time.sleep(0.01)


def _latency_of(
    rate: int, appended: list[tuple[int, float]], seen: list[tuple[int, float]]
) -> Latency:
    ends = np.array([end for end, _ in seen])
    times = np.array([moment for _, moment in seen])
    waits = [
        times[np.searchsorted(ends, offset)] - moment
        for offset, moment in appended
        if offset <= ends[-1]
    ]
    return Latency(rate, float(np.percentile(waits, 50)), float(np.percentile(waits, 99)))
