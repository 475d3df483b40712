"""Finding the subscriptions in the region of a message, as a broker and the Hub do.

Messages and subscriptions are those of the select-joins of Chandramouli and Yang (2008). Every
message is looked up twice: in the index of `penstock.routing`, and by a scan of all points.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Annotated

import numpy as np
import typer

from penstock.joins import make_scheme
from penstock.joins.points import SpacePoints
from penstock.lab.benchmarks._join_runs import alternating, by_group
from penstock.lab.benchmarks._measuring import Result, progress, show
from penstock.lab.workloads.joins import JoinWorkload
from penstock.messages import Message, Point, PointId, each_message
from penstock.predicates.boxes import box
from penstock.predicates.intervals import Interval, below
from penstock.routing import subscribers
from penstock.routing.regions import RegionIndex
from penstock.routing.space_recipients import scanned

EXAMPLES = """
  penstock bench regions
  penstock bench regions --subscriptions 1000000 --json
"""
SIZES = (100_000, 300_000, 1_000_000)
WARM_MESSAGES = 50
CHURN_POINTS = 5_000
COLUMNS = (
    "matcher",
    "subscriptions",
    "messages",
    "recipients_per_message",
    "us_per_message",
    "messages_per_s",
    "build_s",
    "us_per_insert",
    "us_per_remove",
)


def regions(
    subscriptions: Annotated[
        int, typer.Option(help="How many; 0: 100,000, 300,000 and 1,000,000.", min=0)
    ] = 0,
    messages: Annotated[int, typer.Option(help="Messages to find recipients of.", min=1)] = 2_000,
    scans: Annotated[int, typer.Option(help="How many of them are scanned for.", min=1)] = 100,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure how long it takes to find the recipients of a message, in CPU time of one core.

    index: a tree over flat arrays that follows subscriptions as they come and go. scan: all
    subscriptions are looked at, in arrays.
    """
    results: list[Result] = []
    for size in [subscriptions] if subscriptions else SIZES:
        with progress(f"{size:,} subscriptions"):
            results += _measured(size, messages, scans)
    show(results, json, COLUMNS)


def _measured(size: int, count: int, scans: int) -> list[Result]:
    workload = JoinWorkload(size)
    spaces = {points.space.id: points for points in workload.spaces}
    sent = _some(workload, count)
    began = time.process_time()
    for points in spaces.values():
        points.index(RegionIndex)
    build_seconds = time.process_time() - began
    ask = _asking(subscribers, spaces)
    ask(sent[:WARM_MESSAGES])
    index_seconds, found = ask(sent)
    scan = _asking(_scanned, spaces)
    some = sent[:: max(1, len(sent) // scans)]
    scan_seconds, scanned_found = scan(some)
    assert scanned_found == ask(some)[1]
    results = [
        _result("index", size, len(sent), index_seconds, found),
        _result("scan", size, len(some), scan_seconds, scanned_found),
    ]
    results[0]["build_s"] = round(build_seconds, 2)
    results[0] |= _churn(spaces[workload.spaces[0].space.id])
    return results


def _some(workload: JoinWorkload, count: int) -> list[Message]:
    """Messages of changes in both tables, sampled from those of a batch."""
    scheme = make_scheme("ref-sj-gap")
    found: list[Message] = []
    for value, steps in by_group(alternating(workload, max(4_000, count))).items():
        found += each_message(scheme.run(workload.groups[value], steps, workload.spaces))
    chosen = np.linspace(0, len(found) - 1, min(count, len(found))).astype(int)
    return [found[i] for i in chosen.tolist()]


Finder = Callable[[Message, SpacePoints], set[int]]


def _scanned(message: Message, points: SpacePoints) -> set[int]:
    return {point.subscription for point in scanned(message, points)}


def _asking(
    find: Finder, spaces: dict[int, SpacePoints]
) -> Callable[[Iterable[Message]], tuple[float, list[set[int]]]]:
    def ask(messages: Iterable[Message]) -> tuple[float, list[set[int]]]:
        began = time.process_time()
        found = [find(message, spaces[message.space]) for message in messages]
        return time.process_time() - began, found

    return ask


def _result(name: str, size: int, asked: int, seconds: float, found: list[set[int]]) -> Result:
    return {
        "matcher": name,
        "subscriptions": size,
        "messages": asked,
        "recipients_per_message": round(sum(map(len, found)) / asked, 1),
        "us_per_message": round(seconds / asked * 1e6, 1),
        "messages_per_s": round(asked / seconds, 1),
    }


def _churn(points: SpacePoints) -> Result:
    """Microseconds for adding points, and for removing the same ones."""
    random = np.random.default_rng(1)
    lows = random.integers(0, 90_000_000, (CHURN_POINTS, 2)).tolist()
    width = 5_000_000
    fresh = [
        Point(
            PointId(10_000_000 + i, 0, 0),
            points.space.id,
            box({1: Interval(below(a), below(a + width))}),
            Interval(below(c), below(c + width)),
        )
        for i, (a, c) in enumerate(lows)
    ]
    points.forget_indexes()  # indexes from generating the messages would be updated, too
    points.index(RegionIndex).remove(points[points.ids[0]])  # builds what removals need
    began = time.process_time()
    for point in fresh:
        points.add(point)
    added = time.process_time()
    for point in fresh:
        points.remove(point.id)
    removed = time.process_time()
    return {
        "us_per_insert": round((added - began) / CHURN_POINTS * 1e6, 1),
        "us_per_remove": round((removed - added) / CHURN_POINTS * 1e6, 1),
    }
