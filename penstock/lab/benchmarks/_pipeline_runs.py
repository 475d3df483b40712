"""Runs the pipeline over homes filled with a workload."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from penstock.lab.benchmarks._filled_homes import FRAME_EVENTS, FilledHome, append, take
from penstock.lab.benchmarks._processes import MemoryWatch, cpu_seconds
from penstock.pipeline.run import Progress, run

WARM_UP_BATCHES = 4
WARM_UP_SECONDS = 30.0
"""Java compiles hot code. After this long, the time of small batches is stable."""
FIRST_BATCH_SECONDS = 300.0
CLOCK_STEP_NS = 50_000_000
"""A directory whose last change is older than this before the last look has not changed since.
Listing it would take time from the measurement."""


@dataclass
class Throughput:
    """The time of full batches."""

    events: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    messages: int = 0
    peak_bytes: int = 0
    batch_seconds: list[float] = field(default_factory=list)


def throughput_events(batch_rows: int, batches: int) -> int:
    """The number of events for measuring this many batches."""
    return batch_rows * (WARM_UP_BATCHES + batches)


def throughput(filled: FilledHome, batch_rows: int, batches: int) -> Throughput:
    """Run over the existing records, then over full batches, the first of which do not count."""
    home = filled.home
    with MemoryWatch() as watch:
        run(home.path, once=True, batch_rows=batch_rows)
        filled.append(throughput_events(batch_rows, batches), min(batch_rows, FRAME_EVENTS))
        meter = _Meter(home.messages.frontier.end if home.messages.frontier else 0, watch)
        run(home.path, once=True, batch_rows=batch_rows, on_progress=meter.progress)
    meter.measured.peak_bytes = watch.peak_bytes
    return meter.measured


class _Meter:
    """Follows the batches of a run."""

    def __init__(self, position: int, memory: MemoryWatch) -> None:
        self.measured = Throughput()
        self._memory = memory
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
        self._batches += 1
        if self._batches == WARM_UP_BATCHES:
            self._memory.let_alone()
        self._memory.look()
        self._cpu, self._position = cpu, batch.done


def settle_in(filled: FilledHome) -> None:
    """Process the existing records, and then one more event: with it, the subscriptions become
    active."""
    run(filled.home.path, once=True)
    filled.append(1)
    run(filled.home.path, once=True)


@dataclass(frozen=True)
class Latency:
    """Time from appending an event to publishing its batch."""

    rate: int
    p50_s: float
    p99_s: float


def latency_events(rate: int, seconds: float) -> int:
    """The number of events for measuring latencies at a rate, for this long."""
    return int(rate * (WARM_UP_SECONDS + seconds + 1)) + 2


def latency(
    filled: FilledHome, rate: int, seconds: float, meanwhile: Callable[[], object] | None = None
) -> Latency:
    """Append events at a rate while the pipeline runs, and watch the message log.

    All subscriptions have their content before the first of these events; those of the first half
    minute do not count. `meanwhile` is called at the end.
    """
    settle_in(filled)
    home = filled.home
    stop, appended, seen = threading.Event(), [], []  # type: ignore[var-annotated]
    warm = threading.Event()
    running = threading.Thread(
        target=run,
        args=(home.path,),
        kwargs={"stop": stop, "on_progress": lambda _: warm.set()},
        daemon=True,
    )
    running.start()
    filled.append(1)
    if not warm.wait(FIRST_BATCH_SECONDS):
        raise TimeoutError("the pipeline did not finish its first batch")
    publisher = threading.Thread(
        target=publish_at,
        args=(filled, rate, WARM_UP_SECONDS + seconds, appended),
        daemon=True,
    )
    begin = time.monotonic() + WARM_UP_SECONDS
    publisher.start()
    if meanwhile is not None:
        threading.Timer(WARM_UP_SECONDS, meanwhile).start()
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
    filled: FilledHome, rate: int, seconds: float, appended: list[tuple[int, float]]
) -> None:
    """Every hundredth of a second (or as often as one event is due), append the events due by
    then."""
    began, sent = time.monotonic(), 0
    while (now := time.monotonic()) - began < seconds:
        due = int((now - began) * rate) - sent
        if due:
            first = append(filled.home, take(filled.events, due))
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
