"""What one more subscription costs: events at a constant number of matches each."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from penstock.lab.benchmarks._matchers import build, check
from penstock.lab.benchmarks._measuring import Result, progress, rates, show
from penstock.lab.plots import Series, line_plot
from penstock.lab.workloads.topics import Topics
from penstock.matching.lanes import LaneMatcher

EXAMPLES = """
  penstock bench matching-growth --plot growth.svg
  penstock bench matching-growth --algorithm naive --largest 10000
"""
COLUMNS = (
    "algorithm",
    "subscriptions",
    "matches_per_event",
    "batch_microseconds",
    "single_microseconds",
    "bytes_per_subscription",
    "build_s",
)
_BATCH_EVENTS = 16_384


def matching_growth(
    smallest: Annotated[int, typer.Option(help="Subscriptions to begin with.")] = 1_000,
    largest: Annotated[int, typer.Option(help="Subscriptions to end with.")] = 1_000_000,
    algorithm: Annotated[str, typer.Option(help="The matcher.")] = "lanes",
    repetitions: Annotated[int, typer.Option(help="Measurements of each figure.", min=1)] = 5,
    plot: Annotated[Path | None, typer.Option(help="Write a plot here, as SVG.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure the cost per event from few subscriptions to many.

    Every event matches about 25 of the 100 subscriptions to its topic, however many topics there
    are. The exponent is the slope of cost against subscriptions, both as logarithms: 0 is flat, 1
    is linear.
    """
    sizes = []
    size = smallest
    while size <= largest:
        sizes.append(size)
        size = size * 10 if size * 10 <= largest else largest + (size == largest)
    results = []
    for size in sizes:
        with progress(f"{size:,} subscriptions"):
            results.append(_measure(size, algorithm, repetitions))
    if plot is not None:
        points = [(r["subscriptions"], r["batch_microseconds"]) for r in results]
        singles = [(r["subscriptions"], r["single_microseconds"]) for r in results]
        series = [Series(f"{algorithm}, batch", points), Series(f"{algorithm}, single", singles)]
        plot.write_text(line_plot("microseconds per event", "subscriptions", series), "utf-8")
    costs = [float(str(result["batch_microseconds"])) for result in results]
    decades = math.log10(sizes[-1] / sizes[0])
    exponent = math.log10(costs[-1] / costs[0]) / decades if decades else 0.0
    show(results, json, COLUMNS, growth=max(costs) / min(costs), exponent=exponent)


def _measure(subscriptions: int, algorithm: str, repetitions: int) -> Result:
    workload = Topics()(subscriptions)
    built = build(workload, algorithm)
    check(workload, built.matcher, workload.events.slice(0, 256))
    events = workload.events.slice(0, _BATCH_EVENTS)
    pairs = built.matcher.match_batch(events)

    def batch() -> int:
        built.matcher.match_batch(events)
        return len(events)

    single = None
    if isinstance(built.matcher, LaneMatcher):
        segment = built.matcher.segments[0]
        few = events.slice(0, 2000)
        for route in segment.single_routes():

            def each(route: str = route) -> int:
                segment.match_each(few, route)
                return len(few)

            cost = 1e6 / rates(each, repetitions).median
            single = cost if single is None else min(single, cost)
    statistics = built.matcher.statistics()
    return {
        "algorithm": algorithm,
        "subscriptions": subscriptions,
        "matches_per_event": len(pairs) / len(events),
        "batch_microseconds": 1e6 / rates(batch, repetitions).median,
        "single_microseconds": single,
        "bytes_per_subscription": statistics.bytes / subscriptions,
        "build_s": built.seconds,
    }


if __name__ == "__main__":
    typer.run(matching_growth)
