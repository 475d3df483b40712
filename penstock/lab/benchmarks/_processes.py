"""What this process, Java and all Python workers take together."""

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
"""By process: its number may be given to another one."""


def cpu_seconds() -> float:
    """So far, of processes that were ever seen: what one has taken still counts when it is gone."""
    for process in _processes():
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            _seen_cpu[process.pid, process.create_time()] = times.user + times.system
    return sum(_seen_cpu.values())


def memory_bytes() -> int:
    """What several processes share counts once."""
    total = 0
    for process in _processes():
        with suppress(psutil.Error, OSError):
            total += _shared_fairly(process)
    return total


class MemoryWatch:
    """The most memory that was seen: once in a while, until told to let the work alone, and
    whenever asked to look."""

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
    """What a process has, and its share of what it has with others."""
    summary = Path(f"/proc/{process.pid}/smaps_rollup")
    if not summary.exists():
        return int(process.memory_full_info().pss)
    # Looking at every mapping of Java, as psutil does, would hold up what is measured.
    (line,) = [line for line in summary.read_text().splitlines() if line.startswith("Pss:")]
    return int(line.split()[1]) << 10
