"""The cost of one more subscription: events with a constant number of matches each."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from penstock.lab.benchmarks._matchers import SAMPLE_EVENTS, build, check
from penstock.lab.benchmarks._measuring import Result, progress, show
from penstock.lab.plots import Series, line_plot
from penstock.lab.workloads.topics import Topics
from penstock.matching import EventBatch, Matcher
from penstock.matching.lanes import LaneMatcher
from penstock.matching.segment import BoxSegment

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
_BATCH_EVENTS = 262_144
"""Enough for events to share topics even if there are a thousand topics."""
_SINGLE_EVENTS = 10_000
_SINGLE_AT_ONCE = 400
"""The matches of this many single events fit the second-level cache."""


def matching_growth(
    smallest: Annotated[int, typer.Option(help="Subscriptions to begin with.", min=1)] = 1_000,
    largest: Annotated[int, typer.Option(help="Subscriptions to end with.", min=1)] = 1_000_000,
    algorithm: Annotated[str, typer.Option(help="The matcher.")] = "lanes",
    repetitions: Annotated[int, typer.Option(help="Measurements of each figure.", min=1)] = 5,
    plot: Annotated[Path | None, typer.Option(help="Write a plot here, as SVG.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure the cost per event from few subscriptions to many.

    Every event matches about 250 of the 1,000 subscriptions to its topic, however many topics
    there are. Single events share nothing; a batch shares work between events of one topic, so it
    is cheapest where there are few; `expanded` adds writing out every pair. All sizes are measured
    in turn, several times; the best time of each counts, which others on the machine disturb
    least, and the median is printed beside it. The exponent is the slope of cost against
    subscriptions, both as logarithms: 0 is flat, 1 is linear.
    """
    sizes = []
    size = smallest
    while size <= largest:
        sizes.append(size)
        size = size * 10 if size * 10 <= largest else largest + (size == largest)
    measured = []
    for size in sizes:
        with progress(f"{size:,} subscriptions"):
            measured.append(_Size.of(size, algorithm))
    for repetition in range(repetitions):
        with progress(f"repetition {repetition + 1} of {repetitions}"):
            for one in measured:
                one.measure()
    results = [one.result() for one in measured]
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
    """The most expensive as a multiple of the cheapest."""
    costs = [cost for _, cost in _costs(results, kind)]
    return max(costs) / min(costs) if costs else 1.0


def _exponent(results: Sequence[Result], kind: str) -> float:
    costs = _costs(results, kind)
    if len(costs) < 2:
        return 0.0
    (first, cheap), (last, dear) = costs[0], costs[-1]
    return math.log(dear / cheap) / math.log(last / first)


@dataclass
class _Size:
    """A matcher of one size, and its times so far."""

    algorithm: str
    subscriptions: int
    matcher: Matcher
    matches_per_event: float
    build_s: float
    ways: dict[str, list[Callable[[], object]]]
    """What to measure, by kind; the cheapest of several ways counts."""
    events: dict[str, int]
    microseconds: dict[str, list[float]]

    @classmethod
    def of(cls, subscriptions: int, algorithm: str) -> _Size:
        """Build, check against brute force, and warm up."""
        workload = Topics()(subscriptions, _BATCH_EVENTS + SAMPLE_EVENTS)
        built = build(workload, algorithm)
        matcher = built.matcher
        check(workload, matcher, workload.events.slice(0, 256))
        events, few = (workload.events.slice(0, n) for n in (_BATCH_EVENTS, _SINGLE_EVENTS))
        pairs = matcher.match_batch(events)
        ways: dict[str, list[Callable[[], object]]] = {
            "single": _each_way(matcher, few),
            "batch": [lambda: matcher.match_batch(events)],
            "expanded": [lambda: sum(len(ids) for _, ids in matcher.match_batch(events).chunks())],
        }
        for way in chain.from_iterable(ways.values()):
            way()
        counts = {"single": len(few), "batch": len(events), "expanded": len(events)}
        per_event = len(pairs) / len(events)
        return cls(algorithm, subscriptions, matcher, per_event, built.seconds, ways, counts, {})

    def measure(self) -> None:
        """Once more, of every kind."""
        for kind, ways in self.ways.items():
            costs = [_seconds(way) * 1e6 / self.events[kind] for way in ways]
            if costs:
                self.microseconds.setdefault(kind, []).append(min(costs))

    def result(self) -> Result:
        found: Result = {
            "algorithm": self.algorithm,
            "subscriptions": self.subscriptions,
            "matches_per_event": self.matches_per_event,
            "bytes_per_subscription": self.matcher.statistics().bytes / self.subscriptions,
            "build_s": self.build_s,
        }
        for kind in KINDS:
            costs = self.microseconds.get(kind)
            found[f"{kind}_microseconds"] = min(costs) if costs else None
            found[f"{kind}_median_microseconds"] = statistics.median(costs) if costs else None
        return found


def _each_way(matcher: Matcher, events: EventBatch) -> list[Callable[[], object]]:
    """The strategies of `lanes` for single events."""
    if not isinstance(matcher, LaneMatcher):
        return []
    segment = matcher.segments[0]
    return [
        partial(_one_by_one, segment, events, strategy)
        for strategy in segment.strategies.each_strategies()
    ]


def _one_by_one(segment: BoxSegment, events: EventBatch, strategy: str) -> None:
    for _ in segment.match_each(events, strategy, _SINGLE_AT_ONCE):
        pass


def _seconds(work: Callable[[], object]) -> float:
    """CPU time of the work when it was done just before, as in a sequence of batches."""
    gc.collect()
    work()
    began = time.process_time()
    work()
    return time.process_time() - began


if __name__ == "__main__":
    typer.run(matching_growth)
