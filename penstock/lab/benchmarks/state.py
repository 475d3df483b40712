"""Layouts of a stage's state as entries of Spark's state store, measured."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.lab.benchmarks._measuring import Result, progress, show

EXAMPLES = """
  penstock bench state
  penstock bench state --layout blobs --values 100 --json
  penstock bench state --layout groups --values 100 --rows 1000000
"""
LAYOUTS = ("blobs", "groups", "whole", "keyed", "rows", "nothing")
SIZES = {100: (200_000, 1), 10_000: (1_000_000, 100)}
"""By number of join values: rows in all, and how many times larger the largest is than the
smallest. So 100 values have 2,000 rows each, and 10,000 have from 20 to 2,000."""
# Snapshots as often as batches are large enough, not once a minute: a run is short.
CONF = {"spark.sql.streaming.stateStore.maintenanceInterval": "10s"}
COLUMNS = (
    "layout",
    "values",
    "rows",
    "load_rows_per_s",
    "floor_s",
    "by_row_per_s",
    "by_group_per_s",
    "cpu_us_by_group",
    "hot_per_s",
    "skewed_per_s",
    "sweep_s",
    "recovery_s",
    "checkpoint_mb",
    "batch_mb",
    "floor_kb",
)


def state(
    layout: Annotated[str, typer.Option(help=f"One of {', '.join(LAYOUTS)}, or all.")] = "all",
    values: Annotated[int, typer.Option(help="Join values: 100 or 10000; 0: both.", min=0)] = 0,
    rows: Annotated[
        int, typer.Option(help="Rows in all; 0: 200,000 or 1,000,000, as values have it.", min=0)
    ] = 0,
    patience: Annotated[
        float, typer.Option(help="Seconds for a batch; then the layout is given up.")
    ] = 60.0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure layouts of the pipeline's state on local Spark, with two cores.

    by row, by group: changes per second in batches of 20,000, when for each of them its row, or all
    rows of its join value, are read; hot: half of them on one value; skewed: all in one bucket.
    floor: a batch of one change. sweep: reading everything. recovery: the first batch of a new
    process, beyond what it takes without state.
    """
    if layout != "all" and layout not in LAYOUTS:
        raise typer.BadParameter(f"{layout} is none of {', '.join(LAYOUTS)}, all")
    if values and values not in SIZES:
        raise typer.BadParameter(f"{values} is none of 100, 10000")
    if rows and rows < (values or max(SIZES)):
        raise typer.BadParameter("every join value has a row")
    from penstock.lab.benchmarks._state_course import check, measured
    from penstock.lab.benchmarks._state_work import StateWork
    from penstock.pipeline.session import spark_session

    with progress("starting Spark"):
        spark = spark_session("penstock bench", master="local[2]", conf=CONF)
        # The first batches of a process are always slow.
        measured(spark, "groups", StateWork(8, 80), patience)
    results: list[Result] = []
    for size in [values] if values else SIZES:
        all_rows, spread = SIZES[size]
        work = StateWork(size, rows or all_rows, spread)
        for name in LAYOUTS if layout == "all" else [layout]:
            with progress(f"{name}: {size:,} join values, {work.rows:,} rows"):
                results.append(measured(spark, name, work, patience))
    check(results)
    show(results, json, COLUMNS)
