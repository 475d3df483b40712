"""`penstock run`"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.failures import INTERRUPTED
from penstock.cli.output import Output
from penstock.cli.parameters import (
    ConfOption,
    HomeArgument,
    JsonOption,
    MasterOption,
    spark_settings,
)

if TYPE_CHECKING:
    from penstock.pipeline.run import RunSummary

PANEL = "Process"
EXAMPLES = """
  penstock run shop --once
  penstock run shop
  penstock run shop --watch incoming
  penstock run shop --latency-ms 500
  penstock run shop --master spark://host:7077 --conf spark.executor.memory=8g
"""


def run(
    home: HomeArgument,
    once: Annotated[
        bool, typer.Option("--once", help="Process the log up to its current end, then stop.")
    ] = False,
    master: MasterOption = "local[*]",
    conf: ConfOption = None,
    batch_rows: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum records per batch.")
    ] = 50_000,
    batch_mb: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum megabytes of the log per batch.")
    ] = 128,
    watch: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="Also ingest files dropped into this directory; see penstock watch.",
        ),
    ] = None,
    latency_ms: Annotated[
        int | None,
        typer.Option(metavar="MS", min=1, help="Target batch time; limits the batch size."),
    ] = None,
    ui: Annotated[bool, typer.Option("--ui", help="Start Spark's web interface.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run the pipeline: turn the log into messages for subscribers, on Spark.

    Without --once it runs until Ctrl-C, finishes the current batch, and prints a summary. It
    continues where the last run stopped, however that ended.
    """
    from penstock.cli.interruptible import run_interruptible
    from penstock.cli.progress import batches_shown
    from penstock.cli.watching import watched
    from penstock.pipeline.run import run as run_pipeline

    settings = spark_settings(conf)

    def work(stop: threading.Event) -> RunSummary:
        with watched(home, watch, once=once, stop=stop), batches_shown() as on_progress:
            return run_pipeline(
                home,
                once=once,
                master=master,
                conf=settings,
                batch_rows=batch_rows,
                batch_bytes=batch_mb << 20,
                latency_ms=latency_ms,
                ui=ui,
                on_progress=on_progress,
                stop=stop,
            )

    ended = run_interruptible(work)
    _show(Output(as_json=as_json), ended.result)
    if ended.by_interrupt:
        raise typer.Exit(INTERRUPTED)


def _show(out: Output, summary: RunSummary) -> None:
    figures = {
        "batches": summary.batches,
        "offset": summary.position,
        "messages": summary.messages,
        "quarantined": summary.bad,
        "seconds": round(summary.seconds, 1),
    }
    out.result(figures | {"skipped": summary.skipped})
    out.table(list(figures), [list(figures.values())])
