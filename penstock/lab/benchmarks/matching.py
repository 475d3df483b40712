"""Events per second of the matchers, on the workloads of the lab."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from penstock.lab.benchmarks._matchers import build, check
from penstock.lab.benchmarks._measuring import Rates, Result, progress, rates, show
from penstock.lab.workloads.matching import WORKLOADS, MatchingWorkload, matching_workload
from penstock.matching import EventBatch, Matcher
from penstock.matching.lanes import LaneMatcher

EXAMPLES = """
  penstock bench matching --workload MA --subscriptions 200000
  penstock bench matching --workload all --json
"""
COLUMNS = (
    "workload",
    "algorithm",
    "subscriptions",
    "match_rate",
    "single_events_per_s",
    "single_route",
    "batch_events_per_s",
    "batch_route",
    "spread",
    "both_cores_speedup",
    "expanded_events_per_s",
    "anybody_events_per_s",
    "build_s",
    "bytes_per_subscription",
)
_BATCH_EVENTS = {"JLOW": 50_000, "JHIGH": 50_000}
_USUAL_BATCH_EVENTS = 16_384
_SINGLE_MATCHES = 4_000_000
"""Single events are measured over this many matches, or 2,000 events."""
_MATCHES_PER_CALL = 100_000
"""Matches of single events per call: results that stay in the cache."""


def matching(
    workload: Annotated[str, typer.Option(help=f"One of {', '.join(WORKLOADS)}, or all.")] = "MA",
    subscriptions: Annotated[int, typer.Option(help="How many subscriptions.", min=1)] = 200_000,
    algorithm: Annotated[str, typer.Option(help="The matcher.")] = "lanes",
    repetitions: Annotated[int, typer.Option(help="Measurements of each figure.", min=1)] = 5,
    batch_events: Annotated[
        int, typer.Option(help="Events in a batch; 0: what suits the workload.", min=0)
    ] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure single events and batches, after checking the pairs against brute force.

    Events per second are of CPU time on one core. A single event shares nothing with others; it
    is measured inside the compiled loop, which writes the ids it matches, and once more through
    the Python call (single_call). A batch yields pairs as runs; `expanded` adds writing out each
    pair, some at a time; `anybody` only says which events match anybody at all.
    """
    if workload != "all" and workload not in WORKLOADS:
        raise typer.BadParameter(f"{workload} is none of {', '.join(WORKLOADS)}, all")
    results = []
    for name in WORKLOADS if workload == "all" else [workload]:
        with progress(f"{name}: {subscriptions:,} subscriptions"):
            results.append(measure(name, subscriptions, algorithm, repetitions, batch_events))
    show(results, json, COLUMNS)


def measure(
    name: str, subscriptions: int, algorithm: str, repetitions: int, batch_events: int = 0
) -> Result:
    """All figures of one workload."""
    count = batch_events or _BATCH_EVENTS.get(name, _USUAL_BATCH_EVENTS)
    workload = matching_workload(name, subscriptions)
    built = build(workload, algorithm)
    events = workload.events.slice(0, count)
    check(workload, built.matcher, workload.events.slice(0, 256))
    pairs = built.matcher.match_batch(events)
    single, single_strategy = _single(workload, built.matcher, repetitions, len(pairs) / count)
    batch = rates(lambda: _match(built.matcher, events), repetitions)
    statistics = built.matcher.statistics()
    return {
        "workload": name,
        "algorithm": algorithm,
        "subscriptions": subscriptions,
        "events": count,
        "pairs": len(pairs),
        "match_rate": len(pairs) / count / subscriptions,
        "single_events_per_s": single.median,
        "single_spread": single.spread,
        "single_route": single_strategy,
        "single_call_events_per_s": _calls(built.matcher, events, repetitions).median,
        "batch_events_per_s": batch.median,
        "spread": batch.spread,
        "batch_route": _batch_strategy(built.matcher, count),
        "expanded_events_per_s": _expanded(built.matcher, events, repetitions).median,
        "anybody_events_per_s": _anybody(built.matcher, events, repetitions).median,
        **_both_cores(built.matcher, events, repetitions),
        "repetitions": repetitions,
        "build_s": built.seconds,
        "bytes": statistics.bytes,
        "bytes_per_subscription": statistics.bytes / subscriptions,
        "predicates": statistics.predicates,
        "details": statistics.details,
    }


def _match(matcher: Matcher, events: EventBatch) -> int:
    matcher.match_batch(events)
    return len(events)


def _expanded(matcher: Matcher, events: EventBatch, repetitions: int) -> Rates:
    """With every pair written out, some at a time."""

    def work() -> int:
        for _ in matcher.match_batch(events).chunks():
            pass
        return len(events)

    return rates(work, repetitions)


def _anybody(matcher: Matcher, events: EventBatch, repetitions: int) -> Rates:
    def work() -> int:
        matcher.any_match(events)
        return len(events)

    for _ in range(2):
        work()  # tries both ways of computing it
    return rates(work, repetitions)


def _single(
    workload: MatchingWorkload, matcher: Matcher, repetitions: int, matches: float
) -> tuple[Rates, str]:
    """Events one by one, by the faster strategy of `lanes`."""
    count = int(max(64, min(2000, _SINGLE_MATCHES / (matches + 1))))
    events = workload.events.slice(0, count)
    if not isinstance(matcher, LaneMatcher):
        return _calls(matcher, events, repetitions), "match"
    segment = matcher.segments[0]
    per_call = int(max(1, _MATCHES_PER_CALL / (matches + 1)))
    best: tuple[Rates, str] | None = None
    for strategy in segment.strategies.each_strategies():

        def work(strategy: str = strategy) -> int:
            for _ in segment.match_each(events, strategy, per_call):
                pass
            return count

        found = rates(work, repetitions)
        if best is None or found.median > best[0].median:
            best = found, strategy
    return best or (_calls(matcher, events, repetitions), "match")


def _calls(matcher: Matcher, events: EventBatch, repetitions: int) -> Rates:
    """Events through `match`, one Python call each."""
    rows = [events.row(i) for i in range(min(200, len(events)))]

    def work() -> int:
        for row in rows:
            matcher.match(row)
        return len(rows)

    return rates(work, repetitions)


def _both_cores(matcher: Matcher, events: EventBatch, repetitions: int) -> Result:
    """The speedup of a batch with two threads over one, and its CPU time.

    Wall-clock time shows a speedup only while both cores are free; CPU time shows the cost of
    sharing.
    """
    if not isinstance(matcher, LaneMatcher):
        return {}
    double = matcher.with_threads(2)
    found: Result = {}
    for name, clock in (("speedup", time.perf_counter), ("cpu_ratio", time.process_time)):
        alone = rates(lambda: _match(matcher, events), repetitions, clock)
        both = rates(lambda: _match(double, events), repetitions, clock)
        found[f"both_cores_{name}"] = max(both.values) / max(alone.values)
    return found


def _batch_strategy(matcher: Matcher, events: int) -> str:
    if not isinstance(matcher, LaneMatcher):
        return "batch"
    return matcher.segments[0].choose(events)


if __name__ == "__main__":
    typer.run(matching)
