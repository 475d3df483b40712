"""What one more subscription costs: events at a constant number of matches each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from penstock.lab.benchmarks._matchers import SAMPLE_EVENTS, build, check
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
    "single_microseconds",
    "batch_microseconds",
    "expanded_microseconds",
    "bytes_per_subscription",
    "build_s",
)
KINDS = ("single", "batch", "expanded")
_BATCH_EVENTS = 65_536
"""So many that events still share topics where there are a thousand of them."""


def matching_growth(
    smallest: Annotated[int, typer.Option(help="Subscriptions to begin with.")] = 1_000,
    largest: Annotated[int, typer.Option(help="Subscriptions to end with.")] = 1_000_000,
    algorithm: Annotated[str, typer.Option(help="The matcher.")] = "lanes",
    repetitions: Annotated[int, typer.Option(help="Measurements of each figure.", min=1)] = 5,
    plot: Annotated[Path | None, typer.Option(help="Write a plot here, as SVG.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure the cost per event from few subscriptions to many.

    Every event matches about 250 of the 1,000 subscriptions to its topic, however many topics
    there are. Single events share nothing; a batch shares work between events of one topic, so it
    is cheapest where there are few; `expanded` adds writing out every pair. The exponent is the
    slope of cost against subscriptions, both as logarithms: 0 is flat, 1 is linear.
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
        series = [Series(f"{algorithm}, {kind}", _costs(results, kind)) for kind in KINDS]
        plot.write_text(line_plot("microseconds per event", "subscriptions", series), "utf-8")
    growth = {kind: _growth(results, kind) for kind in KINDS}
    exponents = {kind: _exponent(results, kind) for kind in KINDS}
    show(results, json, COLUMNS, growth=growth, exponents=exponents)


def _costs(results: Sequence[Result], kind: str) -> list[tuple[float, float]]:
    found = [(r["subscriptions"], r[f"{kind}_microseconds"]) for r in results]
    return [(float(str(x)), float(str(y))) for x, y in found if y is not None]


def _growth(results: Sequence[Result], kind: str) -> float:
    """The dearest as a multiple of the cheapest."""
    costs = [cost for _, cost in _costs(results, kind)]
    return max(costs) / min(costs) if costs else 1.0


def _exponent(results: Sequence[Result], kind: str) -> float:
    costs = _costs(results, kind)
    if len(costs) < 2:
        return 0.0
    (first, cheap), (last, dear) = costs[0], costs[-1]
    return math.log(dear / cheap) / math.log(last / first)


def _measure(subscriptions: int, algorithm: str, repetitions: int) -> Result:
    workload = Topics()(subscriptions, _BATCH_EVENTS + SAMPLE_EVENTS)
    built = build(workload, algorithm)
    check(workload, built.matcher, workload.events.slice(0, 256))
    events = workload.events.slice(0, _BATCH_EVENTS)
    pairs = built.matcher.match_batch(events)

    def batch() -> int:
        built.matcher.match_batch(events)
        return len(events)

    def expanded() -> int:
        for _ in built.matcher.match_batch(events).chunks():
            pass
        return len(events)

    single = None
    if isinstance(built.matcher, LaneMatcher):
        segment = built.matcher.segments[0]
        few = events.slice(0, 2000)
        for route in segment.routes.each_routes():

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
        "expanded_microseconds": 1e6 / rates(expanded, repetitions).median,
        "single_microseconds": single,
        "bytes_per_subscription": statistics.bytes / subscriptions,
        "build_s": built.seconds,
    }


if __name__ == "__main__":
    typer.run(matching_growth)
