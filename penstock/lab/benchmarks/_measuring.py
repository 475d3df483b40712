"""Repeats, times and shows measurements."""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

Result = dict[str, object]


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates per second, over several repetitions."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def spread(self) -> float:
        """The distance between the best and the worst, as a share of the median."""
        return (max(self.values) - min(self.values)) / self.median if self.median else 0.0


def rates(
    work: Callable[[], int],
    repetitions: int,
    clock: Callable[[], float] = time.process_time,
) -> Rates:
    """Do the work once to warm up, then measure it; it returns how many operations it did.

    By default the CPU time of this process is measured, which other processes affect least.
    """
    work()
    values = []
    for _ in range(repetitions):
        gc.collect()
        began = clock()
        count = work()
        values.append(count / max(1e-9, clock() - began))
    return Rates(tuple(values))


def peak_megabytes() -> int:
    """The peak memory of this process so far; 0 if unknown."""
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak >> (20 if sys.platform == "darwin" else 10)


@contextmanager
def progress(text: str) -> Iterator[None]:
    """Print what takes long on standard error, if it is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(text):
        yield


def show(results: Sequence[Result], as_json: bool, columns: Sequence[str], **more: object) -> None:
    """Print one JSON object, or a table of some columns."""
    if as_json:
        sys.stdout.write(json.dumps({"results": list(results), **more}) + "\n")
        return
    table = Table()
    for column in columns:
        is_text = all(isinstance(result.get(column), str) for result in results)
        table.add_column(column.replace("_", " "), justify="left" if is_text else "right")
    for result in results:
        table.add_row(*(_shown(result.get(column)) for column in columns))
    console = Console(width=None if sys.stdout.isatty() else 200)
    console.print(table)
    for name, value in more.items():
        console.print(f"{name.replace('_', ' ')}: {_shown(value)}")


def _shown(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4g}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_shown(v)}" for key, v in value.items())
    return str(value)
