"""The fewest boxes that describe which filter intervals are affected.

A filter interval is a pair of codes (low, high). Affected intervals are those that contain one of
the partner values; the others must not be described. A box `low <= x and high >= y` describes all
intervals that extend from x or below to y or above. Covering the minimal affected intervals (those
that contain no other) covers all, and neighbouring ones can share a box unless that box would
contain an unaffected interval. Extending each box as far as possible, from the left, gives the
fewest boxes in O(k log k).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.joins.point_arrays import CodeArray, Mask


@dataclass(frozen=True, slots=True)
class SkylinePoint:
    """Describes the intervals with `low <= x` and `high >= y`, in codes; x may exceed y."""

    x: int
    y: int


def affected(low: CodeArray, high: CodeArray, partners: CodeArray) -> Mask:
    """Which intervals contain at least one of the sorted partner codes."""
    if not len(partners):
        return np.zeros(len(low), np.bool_)
    following = np.searchsorted(partners, low)
    nearest = partners[np.minimum(following, len(partners) - 1)]
    return (following < len(partners)) & (nearest <= high)


def fewest_points(low: CodeArray, high: CodeArray, hit: Mask) -> list[SkylinePoint]:
    """The fewest points that cover every interval with `hit` and none without."""
    minimal = minimal_ranges(low[hit], high[hit])
    missed_low, missed_reach = _reach_of_missed(low[~hit], high[~hit])
    points: list[SkylinePoint] = []
    start = 0
    for i in range(len(minimal)):
        following = minimal[i + 1] if i + 1 < len(minimal) else None
        if following is not None:
            j = int(np.searchsorted(missed_low, following[0], side="right")) - 1
            if j < 0 or missed_reach[j] < minimal[start][1]:
                continue  # one box from `start` to `following` contains no unaffected interval
        points.append(SkylinePoint(minimal[i][0], minimal[start][1]))
        start = i + 1
    return points


def minimal_ranges(low: CodeArray, high: CodeArray) -> list[tuple[int, int]]:
    """The intervals that contain no other, by ascending low (and so ascending high)."""
    order = np.lexsort((-low, high))
    x, y = low[order], high[order]
    furthest = np.maximum.accumulate(x) if len(x) else x
    kept = np.append(True, x[1:] > furthest[:-1]) if len(x) else np.zeros(0, np.bool_)
    return list(zip(x[kept].tolist(), y[kept].tolist(), strict=True))


def _reach_of_missed(low: CodeArray, high: CodeArray) -> tuple[CodeArray, CodeArray]:
    """The lows, ascending, and for each the greatest high of all intervals that start no later."""
    order = np.argsort(low, kind="stable")
    return low[order], np.maximum.accumulate(high[order]) if len(low) else high
