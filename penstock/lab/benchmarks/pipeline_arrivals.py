"""Subscriptions added and withdrawn at a steady rate, while events are published and processed."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer

from penstock.lab.benchmarks._filled_homes import filled_home
from penstock.lab.benchmarks._measuring import Result, progress, show
from penstock.lab.benchmarks._pipeline_runs import latency, latency_events
from penstock.lab.workloads.streams import WORKLOADS, stream_workload
from penstock.registry import Registry
from penstock.storage import Home

EXAMPLES = """
  penstock bench pipeline-arrivals --workload joins --arrivals 2000
  penstock bench pipeline-arrivals --workload stateless --subscriptions 1000000 --json
"""
COLUMNS = (
    "workload",
    "subscriptions",
    "events_rate",
    "arrivals_per_s",
    "arrived",
    "still_waiting",
    "p50_s",
    "p99_s",
)
PAUSE_SECONDS = 0.1
"""Subscriptions due within this time are registered by one call."""
STAY_SECONDS = 5.0
"""How long they stay."""


def pipeline_arrivals(
    workload: Annotated[str, typer.Option(help=f"One of {', '.join(WORKLOADS)}.")] = "joins",
    subscriptions: Annotated[int, typer.Option(help="How many are there.", min=1)] = 100_000,
    arrivals: Annotated[int, typer.Option(help="How many come a second.", min=1)] = 2_000,
    rate: Annotated[int, typer.Option(help="Events a second.", min=1)] = 1_000,
    seconds: Annotated[float, typer.Option(help="For how long.", min=1)] = 20.0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure how late events are told of while subscriptions come and, some seconds later, go.

    still_waiting: of those who came, how many were not active yet when the last event was told of.
    """
    if workload not in WORKLOADS:
        raise typer.BadParameter(f"{workload} is none of {', '.join(WORKLOADS)}")
    with (
        tempfile.TemporaryDirectory(prefix="penstock-arrivals-") as directory,
        progress(f"{workload}: {arrivals:,} subscriptions a second come to {subscriptions:,}"),
    ):
        result = _measure(
            Path(directory) / "home", workload, subscriptions, arrivals, rate, seconds
        )
    show([{"workload": workload, "subscriptions": subscriptions, **result}], json, COLUMNS)


def _measure(
    path: Path, workload: str, subscriptions: int, arrivals: int, rate: int, seconds: float
) -> Result:
    filled = filled_home(path, workload, subscriptions, latency_events(rate, seconds))
    before = filled.home.log.end
    coming = multiprocessing.get_context("spawn").Process(
        target=_arrive, args=(path, workload, arrivals, seconds), daemon=True
    )
    found = latency(filled, rate, seconds, coming.start)
    coming.join()
    frontier = filled.home.messages.frontier
    assert frontier is not None
    with Registry(filled.home) as registry:
        arrived = registry.recorded_count(before, filled.home.log.end)
        waiting = registry.recorded_count(frontier.active, filled.home.log.end)
    return {
        "events_rate": rate,
        "arrivals_per_s": arrivals,
        "arrived": arrived,
        "still_waiting": waiting,
        "p50_s": round(found.p50_s, 3),
        "p99_s": round(found.p99_s, 3),
    }


def _arrive(path: Path, workload: str, per_second: int, seconds: float) -> None:
    """Register subscriptions as they are due, and withdraw them. In a process of its own."""
    texts = stream_workload(workload, int(per_second * seconds), seed=2).subscriptions
    with Registry(Home.open(path)) as registry:
        began, there, gone = time.monotonic(), list[int](), 0
        while len(there) < len(texts):
            late = time.monotonic() - began
            coming = texts[len(there) : int(late * per_second)]
            there += [one.id for one in registry.subscribe_many(coming)]
            leaving = there[gone : max(gone, int((late - STAY_SECONDS) * per_second))]
            registry.withdraw_many(leaving)
            gone += len(leaving)
            time.sleep(PAUSE_SECONDS)
