"""`penstock watch`"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.failures import INTERRUPTED
from penstock.cli.output import Output, count
from penstock.cli.parameters import HomeArgument, JsonOption
from penstock.flow.changes import Op

if TYPE_CHECKING:
    from penstock.ingest import WatchSummary

PANEL = "Publish and subscribe"
EXAMPLES = """
  penstock watch shop incoming
  penstock watch shop incoming --once --op upsert
  penstock watch shop /mnt/exports --keep --settle 30
"""


def watch(
    home: HomeArgument,
    directory: Annotated[
        Path,
        typer.Argument(metavar="DIR", exists=True, file_okay=False, help="The directory to watch."),
    ],
    once: Annotated[
        bool, typer.Option("--once", help="Ingest the files that exist now, then stop.")
    ] = False,
    op: Annotated[
        Op, typer.Option(help="What to do with the rows of CSV and Parquet files.")
    ] = Op.INSERT,
    keep: Annotated[bool, typer.Option("--keep", help="Leave ingested files in place.")] = False,
    settle: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0, help="A file is complete when unchanged for this long."
        ),
    ] = 2.0,
    as_json: JsonOption = False,
) -> None:
    """Ingest the files that are dropped into a directory, each exactly once.

    JSON lines (plain, Debezium or CloudEvents), CSV and Parquet, by file name suffix. CSV and
    Parquet files belong to the table they are named after: stocks.csv, stocks-2024-05.parquet, or
    stocks/anything.csv. An ingested file is moved to DIR/taken; an unreadable one to DIR/refused,
    with an entry in the quarantine. Names that begin with . or _ are ignored: write under such a
    name and rename. Links, pipes and files without read permission stay where they are and are
    reported once. A file is identified by its name and content, so the same file is not ingested
    twice.
    """
    from penstock.cli.interruptible import run_interruptible
    from penstock.cli.watching import file_text
    from penstock.ingest import watch as watch_directory
    from penstock.storage import Home

    opened = Home.open(home)
    out = Output(as_json=as_json)

    def work(stop: threading.Event) -> WatchSummary:
        return watch_directory(
            opened,
            directory,
            once=once,
            op=op,
            keep=keep,
            settle_seconds=settle,
            on_file=lambda took: out.note(file_text(took)),
            stop=stop,
        )

    ended = run_interruptible(work)
    summary = ended.result
    counts = {"files": summary.files, "events": summary.events, "refused": summary.refused}
    out.result({**counts, "left": summary.left})
    bad = f", {count(summary.refused, 'file')} refused" if summary.refused else ""
    bad += f", {summary.left:,} left in place" if summary.left else ""
    out.say(f"ingested {count(summary.events, 'event')} from {count(summary.files, 'file')}{bad}")
    if ended.by_interrupt:
        raise typer.Exit(INTERRUPTED)
