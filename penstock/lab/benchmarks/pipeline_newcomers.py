"""Many subscriptions added at once, when the rows exist already."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from penstock.lab.benchmarks._apart import apart
from penstock.lab.benchmarks._filled_homes import filled_home, subscribe
from penstock.lab.benchmarks._measuring import Result, progress, show
from penstock.lab.benchmarks._processes import MemoryWatch, cpu_seconds
from penstock.lab.workloads.streams import WORKLOADS
from penstock.pipeline.run import Progress, run
from penstock.storage import Home

EXAMPLES = """
  penstock bench pipeline-newcomers --workload joins
  penstock bench pipeline-newcomers --workload stateless --events 500000 --json
"""
BATCH_ROWS = 200_000
COLUMNS = (
    "workload",
    "rows",
    "subscriptions",
    "seconds",
    "cpu_seconds",
    "messages",
    "message_mb",
    "peak_mb",
)


def pipeline_newcomers(
    workload: Annotated[str, typer.Option(help=f"One of {', '.join(WORKLOADS)}.")] = "joins",
    subscriptions: Annotated[int, typer.Option(help="How many come.", min=1)] = 100_000,
    events: Annotated[
        int, typer.Option(help="Events before them, beside the rows of the workload.", min=0)
    ] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure how long it takes until new subscriptions have their first content, and what is sent.

    The batches that begin after the subscriptions count, compiling them included.
    """
    if workload not in WORKLOADS:
        raise typer.BadParameter(f"{workload} is none of {', '.join(WORKLOADS)}")
    with (
        tempfile.TemporaryDirectory(prefix="penstock-newcomers-") as directory,
        progress(f"{workload}: {subscriptions:,} new subscriptions"),
    ):
        filled = filled_home(Path(directory) / "home", workload, 0, events)
        filled.append(events)
        result = _measure(filled.home, workload, subscriptions)
    show([{"workload": workload, **result}], json, COLUMNS)


def _measure(home: Home, workload: str, subscriptions: int) -> Result:
    run(home.path, once=True, batch_rows=BATCH_ROWS)
    rows = home.log.end
    apart(subscribe, home.path, workload, subscriptions)
    batches: list[Progress] = []
    sent, cpu = _bytes(home), cpu_seconds()
    with MemoryWatch() as watch:
        # Subscriptions become active with the first batch that begins after their records.
        for _ in range(2):
            run(home.path, once=True, batch_rows=BATCH_ROWS, on_progress=batches.append)
    return {
        "rows": rows,
        "subscriptions": subscriptions,
        "batches": len(batches),
        "seconds": round(sum(batch.seconds for batch in batches), 2),
        "cpu_seconds": round(cpu_seconds() - cpu, 2),
        "messages": sum(batch.messages for batch in batches),
        "message_mb": round((_bytes(home) - sent) / 1e6, 2),
        "peak_mb": round(watch.peak_bytes / 1e6),
    }


def _bytes(home: Home) -> int:
    return sum(path.stat().st_size for path in home.messages.directory.iterdir())
