"""Changes per second of the join schemes, on the workload of Chandramouli and Yang (2008)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from penstock.joins import make_scheme, scheme_names
from penstock.joins.shadow_index import ShadowIndex
from penstock.lab.benchmarks._join_baseline import MISSING, duckdb_baseline, is_there
from penstock.lab.benchmarks._join_runs import Run, Steps, alternating, best_of, timed, turnover
from penstock.lab.benchmarks._measuring import Result, peak_megabytes, progress, show
from penstock.lab.plots import Series, line_plot
from penstock.lab.workloads.joins import JoinWorkload

EXAMPLES = """
  penstock bench joins --subscriptions 100000
  penstock bench joins --json
  penstock bench joins --measure quiet --scheme ref-sj-gap
"""
SIZES = (100_000, 300_000, 1_000_000)
MEASURES = ("quiet", "alternating", "database", "output", "values", "baseline")
COLUMNS = (
    "measure",
    "scheme",
    "subscriptions",
    "rows_per_group",
    "us_per_change",
    "changes_per_s",
    "messages_per_change",
    "bytes_per_change",
    "vs_smallest",
    "peak_mb",
)
BATCH_CHANGES = {"ref-sj-gap": 20_000, "auto": 10_000, "rel-sel": 20_000, "ref-j": 600}
CLUSTERED = ("ref-sj-clu", "ref-sj-clu+", "ref-sj-tup")
CLUSTERED_CHANGES, SCANNED_CHANGES, ENUMERATED_CHANGES = 400, 24, 24
"""Batch sizes of the more expensive schemes: enough changes for a second or so at 1M
subscriptions."""
BASELINE_CHANGES = 16
ALTERNATING = ("ref-sj-gap", "ref-sj-clu+", "auto")
GROWING = ("ref-j", "ref-sj-clu+", "ref-sj-gap", "rel-sel")
R_ROWS, S_ROWS = (1_000, 16_000, 31_000), (100, 5_100, 10_100)
MANY_VALUES = 10_000


def joins(
    subscriptions: Annotated[
        int, typer.Option(help="How many; 0: 100,000, 300,000 and 1,000,000.", min=0)
    ] = 0,
    scheme: Annotated[str, typer.Option(help="One scheme, or all.")] = "all",
    measure: Annotated[str, typer.Option(help=f"One of {', '.join(MEASURES)}, or all.")] = "all",
    repetitions: Annotated[
        int, typer.Option(help="Batches; the fastest counts, or all if they are small.", min=1)
    ] = 3,
    plot: Annotated[Path | None, typer.Option(help="Write a plot (SVG) to this file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure the server's work on changes of both tables, in CPU time of one core.

    quiet: only R changes (Figure 5). alternating: R and S by turns. database, output: growth with
    the rows of R (Figure 7) and of S (Figures 8 and 9). values: one change for each of 10,000 join
    values. baseline: DuckDB joining each batch with both tables and the subscriptions.
    """
    if scheme != "all" and scheme not in scheme_names():
        raise typer.BadParameter(f"{scheme} is none of {', '.join(scheme_names())}, all")
    if measure != "all" and measure not in MEASURES:
        raise typer.BadParameter(f"{measure} is none of {', '.join(MEASURES)}, all")
    schemes = scheme_names() if scheme == "all" else [scheme]
    sizes = [subscriptions] if subscriptions else list(SIZES)
    results: list[Result] = []
    measures = MEASURES if measure == "all" else (measure,)
    for size in sizes:
        results += _of_size(measures, schemes, size, repetitions)
    for name in measures:
        results += _growth(name, schemes, sizes, repetitions)
    _compare(results)
    if plot is not None:
        plot.write_text(drawn(results), encoding="utf-8")
    notes = {} if is_there() else {"note": MISSING}
    show(results, json, COLUMNS, **notes)


def _of_size(
    measures: tuple[str, ...], schemes: list[str], size: int, times: int
) -> Iterator[Result]:
    """All measures over the same workload, which is generated once."""
    if not {"quiet", "alternating", "baseline"} & set(measures):
        return
    with progress(f"making {size:,} subscriptions"):
        workload = JoinWorkload(size)
    for name in measures:
        for scheme in schemes:
            if name == "quiet" or (name == "alternating" and scheme in ALTERNATING):
                with progress(f"{name}: {scheme}, {size:,} subscriptions"):
                    yield _result(name, scheme, workload, _run(name, scheme, workload, times))
        if name == "baseline" and is_there():
            with progress(f"DuckDB, {size:,} subscriptions"):
                yield duckdb_baseline(workload, BASELINE_CHANGES)


def _growth(name: str, schemes: list[str], sizes: list[int], times: int) -> Iterator[Result]:
    """Growth with the rows of R, with those of S, and with the number of join values."""
    for rows in {"database": R_ROWS, "output": S_ROWS}.get(name, ()):
        is_database = name == "database"
        if is_database:
            workload = JoinWorkload(sizes[0], r_rows=rows)
        else:
            workload = JoinWorkload(sizes[0], s_rows=rows)
        for scheme in schemes:
            if scheme in GROWING:
                with progress(f"{name}: {scheme}, {rows:,} rows"):
                    yield _result(name, scheme, workload, _run("quiet", scheme, workload, times))
    if name == "values" and "ref-sj-gap" in schemes:
        for size in sorted({sizes[0], sizes[-1]}):
            with progress(f"{MANY_VALUES:,} join values, {size:,} subscriptions"):
                yield _many_values(size)


def _run(name: str, scheme_name: str, workload: JoinWorkload, times: int) -> Run:
    """A batch to warm up (indexes are built, kernels compiled), then the ones that count."""
    scheme, count = make_scheme(scheme_name), _batch_changes(scheme_name)

    def batch(changes: int) -> Steps:
        is_quiet = name == "quiet"
        return turnover(workload, 0, changes) if is_quiet else alternating(workload, changes)

    timed(workload, scheme, batch(count))
    return best_of(workload, scheme, (batch(count) for _ in range(times)))


def _batch_changes(scheme: str) -> int:
    if scheme in BATCH_CHANGES:
        return BATCH_CHANGES[scheme]
    if scheme in CLUSTERED:
        return CLUSTERED_CHANGES
    return ENUMERATED_CHANGES if scheme in ("enum-j", "ref-j+") else SCANNED_CHANGES


def _result(measure: str, scheme: str, workload: JoinWorkload, run: Run) -> Result:
    return {
        "measure": measure,
        "scheme": scheme,
        "subscriptions": workload.subscriptions,
        "r_rows": workload.r_rows,
        "s_rows": workload.s_rows,
        "rows_per_group": round((workload.r_rows + workload.s_rows) / workload.join_values),
        "changes": run.changes,
        "us_per_change": round(run.microseconds, 2),
        "changes_per_s": round(run.per_second, 1),
        "messages_per_change": round(run.messages / run.changes, 3),
        "points_per_change": round(run.points / run.changes, 3),
        "bytes_per_change": round(run.bytes / run.changes, 1),
        "peak_mb": peak_megabytes(),
    }


def _many_values(size: int) -> Result:
    """One change for each of many join values: all their state is created in the batch."""
    workload = JoinWorkload(
        size, r_rows=MANY_VALUES * 4, s_rows=MANY_VALUES * 4, join_values=MANY_VALUES
    )
    spaces = workload.spaces
    began = time.process_time()
    for points in spaces:
        points.index(ShadowIndex)
    index_seconds = time.process_time() - began
    timed(workload, make_scheme("ref-sj-gap"), turnover(workload, 0, 100))
    run = timed(workload, make_scheme("ref-sj-gap"), turnover(workload, 0, 2 * MANY_VALUES))
    result = _result("values", "ref-sj-gap", workload, run)
    touched = len({value for value, _ in turnover(workload, 0, 2 * MANY_VALUES)})
    result["us_per_touched_value"] = round(run.cpu_seconds / touched * 1e6, 1)
    result["index_build_s"] = round(index_seconds, 2)
    return result


def _compare(results: list[Result]) -> None:
    """The cost of a change relative to the smallest number of subscriptions."""
    smallest: dict[object, float] = {}
    for result in results:
        place = (result["measure"], result["scheme"])
        cost = float(str(result["us_per_change"]))
        first = smallest.setdefault(place, cost)
        result["vs_smallest"] = round(cost / first, 2)


def drawn(results: list[Result]) -> str:
    """Microseconds per change of each scheme against the number of subscriptions."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for result in results:
        if result["measure"] in ("quiet", "baseline"):
            place = float(str(result["subscriptions"])), float(str(result["us_per_change"]))
            lines.setdefault(str(result["scheme"]), []).append(place)
    series = [Series(name, sorted(points)) for name, points in sorted(lines.items())]
    return line_plot("microseconds per change", "subscriptions", series)
