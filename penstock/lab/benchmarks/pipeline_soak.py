"""The pipeline for a long time at a steady rate: whether its memory stays constant."""

from __future__ import annotations

import statistics
import tempfile
import threading
from pathlib import Path
from typing import Annotated

import typer

from penstock.lab.benchmarks._filled_homes import filled_home
from penstock.lab.benchmarks._measuring import Result, progress, show
from penstock.lab.benchmarks._pipeline_runs import publish_at, settle_in
from penstock.lab.benchmarks._processes import memory_bytes
from penstock.lab.workloads.streams import WORKLOADS
from penstock.pipeline.run import Progress, run

EXAMPLES = """
  penstock bench pipeline-soak --minutes 10
  penstock bench pipeline-soak --workload joins --rate 2000 --minutes 2 --json
"""
COLUMNS = (
    "workload",
    "subscriptions",
    "rate",
    "minutes",
    "batches",
    "first_mb",
    "last_mb",
    "growth",
    "largest_mb",
)


def pipeline_soak(
    workload: Annotated[str, typer.Option(help=f"One of {', '.join(WORKLOADS)}.")] = "joins",
    subscriptions: Annotated[int, typer.Option(help="How many.", min=1)] = 10_000,
    rate: Annotated[int, typer.Option(help="Events a second.", min=1)] = 2_000,
    minutes: Annotated[float, typer.Option(help="How long.", min=0.1)] = 10.0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Publish at a steady rate while the pipeline runs, and look at the memory of all processes.

    growth: the median of the last third of all looks over that of the second. The first third is
    for warming up.
    """
    if workload not in WORKLOADS:
        raise typer.BadParameter(f"{workload} is none of {', '.join(WORKLOADS)}")
    with (
        tempfile.TemporaryDirectory(prefix="penstock-soak-") as directory,
        progress(f"{workload}: {minutes:g} minutes at {rate:,} events per second"),
    ):
        looks = _soak(Path(directory) / "home", workload, subscriptions, rate, 60 * minutes)
    third = max(1, len(looks) // 3)
    second, last = looks[third : 2 * third] or looks, looks[-third:]
    found: Result = {
        "workload": workload,
        "subscriptions": subscriptions,
        "rate": rate,
        "minutes": minutes,
        "batches": len(looks),
        "first_mb": round(statistics.median(second) / 1e6),
        "last_mb": round(statistics.median(last) / 1e6),
        "growth": round(statistics.median(last) / statistics.median(second), 3),
        "largest_mb": round(max(looks) / 1e6),
        "looks_mb": [round(look / 1e6) for look in looks[:: max(1, len(looks) // 60)]],
    }
    show([found], json, COLUMNS)


def _soak(path: Path, name: str, subscriptions: int, rate: int, seconds: float) -> list[int]:
    """The memory of all processes after each batch."""
    filled = filled_home(path, name, subscriptions, int(rate * (seconds + 1)) + 2)
    stop, warm = threading.Event(), threading.Event()
    looks: list[int] = []

    def look(_: Progress) -> None:
        warm.set()
        looks.append(memory_bytes())

    def publish() -> None:
        warm.wait()
        publish_at(filled, rate, seconds, [])
        stop.set()

    settle_in(filled)
    filled.append(1)
    publisher = threading.Thread(target=publish, name="penstock-publisher", daemon=True)
    publisher.start()
    try:
        run(filled.home.path, stop=stop, on_progress=look)
    finally:
        stop.set()
        warm.set()
    return looks
