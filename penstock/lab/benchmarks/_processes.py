"""The resources of this process, Java and all Python workers together."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import psutil


def _processes() -> Iterator[psutil.Process]:
    me = psutil.Process(os.getpid())
    yield me
    yield from me.children(recursive=True)


_seen_cpu: dict[tuple[int, float], float] = {}
"""By process id and start time: ids are reused."""


def cpu_seconds() -> float:
    """CPU time so far of all processes ever seen, including those that have ended."""
    for process in _processes():
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            _seen_cpu[process.pid, process.create_time()] = times.user + times.system
    return sum(_seen_cpu.values())


def memory_bytes() -> int:
    """Shared memory counts once."""
    total = 0
    for process in _processes():
        with suppress(psutil.Error, OSError):
            total += _shared_fairly(process)
    return total


class MemoryWatch:
    """The peak memory seen: sampled regularly until `let_alone`, and on request."""

    EVERY_SECONDS = 1.0

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._keep_looking, daemon=True)

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.let_alone()

    def look(self) -> None:
        self.peak_bytes = max(self.peak_bytes, memory_bytes())

    def let_alone(self) -> None:
        self._enough.set()
        self._thread.join()

    def _keep_looking(self) -> None:
        while not self._enough.wait(self.EVERY_SECONDS):
            self.look()


def _shared_fairly(process: psutil.Process) -> int:
    """The private memory of a process, and its share of shared memory."""
    summary = Path(f"/proc/{process.pid}/smaps_rollup")
    if not summary.exists():
        return int(process.memory_full_info().pss)
    # Reading every mapping of Java, as psutil does, would disturb the measurement.
    (line,) = [line for line in summary.read_text().splitlines() if line.startswith("Pss:")]
    return int(line.split()[1]) << 10
