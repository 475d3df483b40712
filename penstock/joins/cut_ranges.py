"""Unions of intervals as flat sorted lists of cuts: low, high, low, high, ...

A value lies in the union if the number of cuts at or below it is odd: one binary search.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import TypeAlias

from penstock.predicates.intervals import Cut

Flat: TypeAlias = list[Cut]
NO_RANGES: Flat = []

MAX_RANGES = 1024
"""Larger unions are coarsened by bridging gaps, which makes them supersets."""


def holds(flat: Flat, probe: Cut) -> bool:
    """Whether a union holds the value whose lower cut is `probe`."""
    return bool(bisect_right(flat, probe) & 1)


def union_ranges(flats: Iterable[Flat]) -> Flat:
    """The union of unions; the result may be one of the inputs, not a copy."""
    some = [flat for flat in flats if flat]
    if len(some) <= 1:
        return some[0] if some else NO_RANGES
    ranges = sorted((flat[i], flat[i + 1]) for flat in some for i in range(0, len(flat), 2))
    merged: Flat = []
    for low, high in ranges:
        if merged and low <= merged[-1]:
            merged[-1] = max(merged[-1], high)
        else:
            merged += (low, high)
    return bridge_ranges(merged)


def bridge_ranges(flat: Flat) -> Flat:
    """A superset of the union with at most MAX_RANGES ranges."""
    while len(flat) > 2 * MAX_RANGES:
        flat = [cut for i, cut in enumerate(flat) if i % 4 in (0, 3) or i == len(flat) - 1]
    return flat
