"""The pipeline on Spark: events per second, cost and latency, compared with a plain Spark
program."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from penstock.client import Initial
from penstock.lab.benchmarks._apart import apart
from penstock.lab.benchmarks._bare_kernel import bare_rates
from penstock.lab.benchmarks._filled_homes import filled_home
from penstock.lab.benchmarks._measuring import Result, progress, show
from penstock.lab.benchmarks._pipeline_runs import (
    latency,
    latency_events,
    throughput,
    throughput_events,
)
from penstock.lab.benchmarks._plain_spark import plain_rate
from penstock.lab.workloads.streams import WORKLOADS
from penstock.storage import Home

EXAMPLES = """
  penstock bench pipeline --workload joins
  penstock bench pipeline --workload stateless --subscriptions 1000000 --json
  penstock bench pipeline --workload many-keys --no-latency --no-plain
  penstock bench pipeline --workload joins --subscriptions 1000000 --initial none --no-plain
"""
SUBSCRIPTIONS = 100_000
BATCH_ROWS = 200_000
RATES = (100, 5_000)
COLUMNS = (
    "workload",
    "subscriptions",
    "events_per_s",
    "cpu_us_per_event",
    "messages_per_event",
    "peak_mb",
    "bare_kernel_events_per_s",
    "share_of_bare_kernel",
    "bare_asking_events_per_s",
    "plain_spark_events_per_s",
    "times_plain_spark",
    "p50_s_at_100",
    "p99_s_at_100",
    "p50_s_at_5000",
    "p99_s_at_5000",
)


def pipeline(
    workload: Annotated[str, typer.Option(help=f"One of {', '.join(WORKLOADS)}, or all.")] = "all",
    subscriptions: Annotated[int, typer.Option(help="How many.", min=1)] = SUBSCRIPTIONS,
    initial: Annotated[
        Initial, typer.Option(help="What subscriptions start with. For throughput.")
    ] = Initial.CONTENT,
    batch_rows: Annotated[int, typer.Option(help="Events a batch.", min=1)] = BATCH_ROWS,
    batches: Annotated[int, typer.Option(help="Batches that count.", min=1)] = 3,
    latencies: Annotated[
        bool, typer.Option("--latency/--no-latency", help="Latency at 100 and 5,000 events/s.")
    ] = True,
    seconds: Annotated[float, typer.Option(help="How long to publish at each rate.")] = 20.0,
    plain: Annotated[
        bool, typer.Option("--plain/--no-plain", help="The Spark program a user would write.")
    ] = True,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure sustained throughput, cost and latency of the pipeline, on real local Spark.

    bare_kernel: matching alone, for subscriptions over one table; bare_asking: only whether
    anybody matches, which is what the pipeline asks. plain: the stream joined with a table of
    subscriptions, measured on a few events, in another process, with Java's optimising compiler.
    """
    if workload != "all" and workload not in WORKLOADS:
        raise typer.BadParameter(f"{workload} is none of {', '.join(WORKLOADS)}, all")
    results: list[Result] = []
    for name in WORKLOADS if workload == "all" else [workload]:
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory:
            result = _throughput(name, subscriptions, initial, batch_rows, batches, Path(directory))
            if latencies:
                result |= _latencies(name, subscriptions, seconds, Path(directory))
        if plain:
            result |= _plain(name, subscriptions, float(str(result["events_per_s"])))
        results.append(result)
    show(results, json, COLUMNS)


def _throughput(
    name: str,
    subscriptions: int,
    initial: Initial,
    batch_rows: int,
    batches: int,
    directory: Path,
) -> Result:
    with progress(f"{name}: {subscriptions:,} subscriptions"):
        events = throughput_events(batch_rows, batches)
        filled = filled_home(directory / "throughput", name, subscriptions, events, initial)
        found = throughput(filled, batch_rows, batches)
        rate = found.events / found.seconds
        bare = _bare(filled.home, batch_rows, rate)
    return {
        "workload": name,
        "subscriptions": subscriptions,
        "initial": initial.value,
        "batch_rows": batch_rows,
        "events": found.events,
        "events_per_s": round(rate, 1),
        "batch_seconds": [round(one, 3) for one in found.batch_seconds],
        "cpu_us_per_event": round(found.cpu_seconds / found.events * 1e6, 2),
        "messages_per_event": round(found.messages / found.events, 4),
        "peak_mb": round(found.peak_bytes / 1e6),
        **bare,
    }


def _bare(home: Home, batch_rows: int, events_per_s: float) -> Result:
    rates = bare_rates(home, batch_rows)
    if rates is None:
        return {}
    return {
        "bare_kernel_events_per_s": round(rates.matching),
        "share_of_bare_kernel": round(events_per_s / rates.matching, 3),
        "bare_asking_events_per_s": round(rates.asking),
    }


def _latencies(name: str, subscriptions: int, seconds: float, directory: Path) -> Result:
    result: Result = {}
    for rate in RATES:
        with progress(f"{name}: latency at {rate:,} events per second"):
            events = latency_events(rate, seconds)
            filled = filled_home(directory / f"latency-{rate}", name, subscriptions, events)
            found = latency(filled, rate, seconds)
        result[f"p50_s_at_{rate}"] = round(found.p50_s, 3)
        result[f"p99_s_at_{rate}"] = round(found.p99_s, 3)
    return result


def _plain(name: str, subscriptions: int, events_per_s: float) -> Result:
    with progress(f"{name}: the plain Spark program"):
        rate = apart(plain_rate, name, subscriptions)
    return {
        "plain_spark_events_per_s": round(rate, 2),
        "times_plain_spark": round(events_per_s / rate, 1),
    }
