"""Subscribing and withdrawing while events are matched."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from penstock.lab.benchmarks._matchers import sample_of
from penstock.lab.benchmarks._measuring import Result, progress, show
from penstock.lab.workloads.matching import WORKLOADS, matching_workload
from penstock.matching import create
from penstock.matching.lanes import LaneMatcher
from penstock.matching.range_boxes import RangeBoxes

EXAMPLES = """
  penstock bench matching-churn --subscriptions 200000
"""
COLUMNS = (
    "workload",
    "algorithm",
    "subscriptions",
    "inserts_per_s",
    "inserts_per_cpu_s",
    "removals_per_s",
    "events_per_s",
    "events_per_s_before",
    "segments",
)
_BATCH_EVENTS = 1024


def matching_churn(
    workload: Annotated[str, typer.Option(help=f"One of {', '.join(WORKLOADS)}.")] = "MA",
    subscriptions: Annotated[int, typer.Option(help="Held at the beginning.", min=1)] = 200_000,
    changes: Annotated[int, typer.Option(help="Inserts; half as many removals.", min=1)] = 30_000,
    per_batch: Annotated[int, typer.Option(help="Inserts between two batches.", min=1)] = 500,
    algorithm: Annotated[str, typer.Option(help="The matcher.")] = "lanes",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure inserts per second while every batch of events sees all of them."""
    with progress(f"{workload}: {changes:,} inserts beside {subscriptions:,} subscriptions"):
        result = _measure(workload, subscriptions, changes, per_batch, algorithm)
    show([result], json, COLUMNS)


def _measure(name: str, subscriptions: int, changes: int, per_batch: int, algorithm: str) -> Result:
    workload = matching_workload(name, subscriptions + changes)
    held, fresh = _split(workload.boxes, subscriptions)
    options = {"sample": sample_of(workload)} if algorithm == "lanes" else {}
    matcher = create(algorithm, workload.relation, **options)
    if isinstance(matcher, LaneMatcher):
        matcher.insert_ranges(held)
    else:
        matcher.insert_many(held.unions())
    events = workload.events.slice(0, _BATCH_EVENTS)
    matcher.match_batch(events)
    before = time.perf_counter()
    matcher.match_batch(events)
    before = time.perf_counter() - before
    waiting = list(fresh.unions())
    inserting = removing = matching = 0.0
    removed = batches = 0
    began, began_cpu = time.perf_counter(), time.process_time()
    for first in range(0, len(waiting), per_batch):
        start = time.perf_counter()
        for subscription, boxes in waiting[first : first + per_batch]:
            matcher.insert(subscription, boxes)
        inserted = time.perf_counter()
        for subscription in range(first // 2, (first + per_batch) // 2):
            removed += matcher.remove(subscription)
        withdrawn = time.perf_counter()
        matcher.match_batch(events)
        batches += 1
        inserting += inserted - start
        removing += withdrawn - inserted
        matching += time.perf_counter() - withdrawn
    elapsed, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    return {
        "workload": name,
        "algorithm": algorithm,
        "subscriptions": subscriptions,
        "inserts": len(waiting),
        "removals": removed,
        "inserts_per_s": len(waiting) / elapsed,
        "inserts_per_cpu_s": len(waiting) / cpu,
        "insert_calls_per_s": len(waiting) / inserting,
        "removals_per_s": removed / removing,
        "events_per_s": batches * len(events) / matching,
        "events_per_s_before": len(events) / before,
        "segments": matcher.statistics().details.get("segments"),
    }


def _split(boxes: RangeBoxes, count: int) -> tuple[RangeBoxes, RangeBoxes]:
    """The first subscriptions and the rest (one box each)."""
    cut = int(boxes.offsets[count])
    first = RangeBoxes(
        boxes.subscriptions[:count],
        boxes.offsets[: count + 1],
        boxes.columns[:cut],
        boxes.lows[:cut],
        boxes.highs[:cut],
    )
    rest = RangeBoxes(
        boxes.subscriptions[count:],
        boxes.offsets[count:] - cut,
        boxes.columns[cut:],
        boxes.lows[cut:],
        boxes.highs[cut:],
    )
    return first, rest


if __name__ == "__main__":
    typer.run(matching_churn)
