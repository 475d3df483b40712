"""Which segments to merge, and how."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.matching.events import EventBatch
from penstock.matching.segment import Policy, Segment
from penstock.matching.table import BoxTable

FANOUT = 4
"""So many segments of one tier become one of the next. A subscription is then indexed about
log4(N / 2000) times, and there are at most three segments per tier to match against."""


def next_merge(segments: Sequence[Segment]) -> list[Segment]:
    """The segments to merge next, of the smallest tier that is full; none if all is well.

    A segment of which half is dead is merged alone.
    """
    tiers: dict[int, list[Segment]] = {}
    for segment in segments:
        if 2 * segment.dead_count > len(segment.table.ids):
            return [segment]
        tiers.setdefault(_tier(segment), []).append(segment)
    for tier in sorted(tiers):
        if len(tiers[tier]) >= FANOUT:
            return tiers[tier]
    return []


def _tier(segment: Segment) -> int:
    """0 for up to 64 boxes, then one more for each factor of four."""
    return max(0, (len(segment.table.owners) // 64).bit_length() + 1 >> 1)


def merge_segments(old: Sequence[Segment], sample: EventBatch | None, policy: Policy) -> Segment:
    """One segment with all that is alive in the old ones, which stay as they are."""
    dead = [s.dead != 0 if len(s.dead) else np.zeros(len(s.table.ids), np.bool_) for s in old]
    return Segment.build(BoxTable.merge([s.table for s in old], dead), sample, policy)


def bury_missing(merged: Segment, old: Sequence[Segment]) -> None:
    """Mark dead what has died in the old segments since they were merged."""
    for segment in old:
        for subscription in segment.table.ids[: len(segment.dead)][segment.dead == 1].tolist():
            place = merged.table.place_of(subscription)
            lives_on = any(other.place_of(subscription) is not None for other in old)
            if place is not None and not lives_on:
                merged.kill(place)
