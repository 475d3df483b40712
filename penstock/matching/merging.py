"""Which segments to merge, and how."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.matching.events import EventBatch
from penstock.matching.segment import BoxSegment, Policy
from penstock.matching.table import BoxTable
from penstock.matching.tiers import TierPolicy

POLICY = TierPolicy(delta_items=1, smallest=64, ratio_bits=2, fanout=4)
"""Sizes in boxes. A subscription is indexed about log4(N / 2000) times (smaller segments are
scanned), and there are at most three segments per tier to match against. The next match turns new
subscriptions into a segment, however few they are."""


def next_merge(segments: Sequence[BoxSegment]) -> list[BoxSegment]:
    """The segments to merge next; empty if no merge is due."""
    for segment in segments:
        if POLICY.is_mostly_dead(segment.dead_count, len(segment.table.ids)):
            return [segment]
    sizes = [(len(segment.table.owners), 0) for segment in segments]
    return [segments[place] for place in POLICY.next_merge(sizes)]


def merge_segments(
    old: Sequence[BoxSegment], sample: EventBatch | None, policy: Policy
) -> BoxSegment:
    """One segment with the living subscriptions of the old ones, which are not changed."""
    dead = [s.dead != 0 if len(s.dead) else np.zeros(len(s.table.ids), np.bool_) for s in old]
    return BoxSegment.build(BoxTable.merge([s.table for s in old], dead), sample, policy)


def bury_missing(merged: BoxSegment, old: Sequence[BoxSegment]) -> None:
    """Mark as dead what was removed from the old segments while they were being merged."""
    for segment in old:
        for subscription in segment.table.ids[: len(segment.dead)][segment.dead == 1].tolist():
            place = merged.table.place_of(subscription)
            lives_on = any(other.place_of(subscription) is not None for other in old)
            if place is not None and not lives_on:
                merged.kill(place)
