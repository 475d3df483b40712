"""What this process, Java and all Python workers take together."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil


def _processes() -> Iterator[psutil.Process]:
    me = psutil.Process(os.getpid())
    yield me
    yield from me.children(recursive=True)


def cpu_seconds() -> float:
    """So far."""
    total = 0.0
    for process in _processes():
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


def memory_bytes() -> int:
    """What several processes share counts once."""
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
