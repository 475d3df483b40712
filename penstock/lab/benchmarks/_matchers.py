"""Builds matchers of workloads, and checks them before anything is measured."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.errors import PenstockError
from penstock.lab.workloads.matching import MatchingWorkload
from penstock.matching import EventBatch, Matcher, create
from penstock.matching.events import NumberColumn
from penstock.matching.lanes import LaneMatcher
from penstock.matching.range_boxes import RangeBoxes

SAMPLE_EVENTS = 2000
"""Events given to `lanes` before it is built. They are not among those that are measured."""
CHECKED_EVENTS = 16


@dataclass(frozen=True, slots=True)
class Built:
    matcher: Matcher
    seconds: float
    """CPU time of building."""


def build(workload: MatchingWorkload, algorithm: str, threads: int = 1) -> Built:
    """A matcher with all subscriptions of a workload."""
    options: dict[str, object] = {}
    if algorithm == "lanes":
        options = {"threads": threads, "sample": sample_of(workload), "background": False}
    matcher = create(algorithm, workload.relation, **options)
    began = time.process_time()
    if isinstance(matcher, LaneMatcher):
        matcher.insert_ranges(workload.boxes)
    else:
        matcher.insert_many(workload.boxes.unions())
    return Built(matcher, time.process_time() - began)


def sample_of(workload: MatchingWorkload) -> EventBatch:
    return workload.events.slice(len(workload.events) - SAMPLE_EVENTS, len(workload.events))


def check(workload: MatchingWorkload, matcher: Matcher, events: EventBatch) -> None:
    """PenstockError if the matcher's pairs of some events are not those of brute force."""
    places = np.linspace(0, len(events) - 1, min(CHECKED_EVENTS, len(events))).astype(np.int64)
    offsets, ids = matcher.match_batch(events).by_event()
    for place in places.tolist():
        expected = brute_force(workload.boxes, events, place)
        found = {"batch": ids[offsets[place] : offsets[place + 1]]}
        if len(ids) < _FEW_PAIRS:
            found["single"] = np.array(matcher.match(events.row(place)), np.int64)
        for way, got in found.items():
            if not np.array_equal(got, expected):
                raise PenstockError(
                    f"{workload.name}: event {place} by {way} matches {len(got)} subscriptions, "
                    f"by brute force {len(expected)}",
                    detail="nothing was measured",
                )


_FEW_PAIRS = 1 << 24


def brute_force(boxes: RangeBoxes, events: EventBatch, place: int) -> npt.NDArray[np.int64]:
    """The subscriptions that match one event, by testing every range of every box."""
    values = np.empty(len(events.columns), np.int64)
    for i, column in enumerate(events.columns):
        assert isinstance(column, NumberColumn)
        values[i] = column.keys[place]
    asked = values[boxes.columns]
    failed = (asked < boxes.lows) | (asked > boxes.highs)
    box = np.repeat(np.arange(len(boxes)), np.diff(boxes.offsets))
    holds = np.ones(len(boxes), np.bool_)
    holds[box[failed]] = False
    return np.unique(boxes.subscriptions[holds])
