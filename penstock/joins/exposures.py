"""Who sees base rows come or go with a filter value; and the reaches that say so."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.catalog import Key
from penstock.joins.kernels.follow import NONE_ABOVE, NONE_BELOW, Followed
from penstock.joins.ranges import Flat
from penstock.joins.shadow_segment import Segment
from penstock.messages import Reach, Reaches
from penstock.predicates.intervals import ABOVE_NULL, BOTTOM, TOP, Cut, below


class Exposure(NamedTuple):
    """For whom a filter value was alone in its interval, and the base values that concern them."""

    reach: Reach
    base: Flat


def reaches(runs: list[tuple[Cut, Cut]]) -> Reaches:
    return tuple([Reach(BOTTOM, last, _above(first), TOP) for last, first in runs])


def exposures(
    segment: Segment, followed: Followed, changed: list[Key | None]
) -> list[Exposure | None]:
    found: list[Exposure | None] = [None] * len(changed)
    numbers, first = np.unique(followed.change, return_index=True)
    ends = np.append(first, len(followed.change))
    for number, begin, end in zip(numbers.tolist(), ends[:-1], ends[1:], strict=True):
        before, after = int(followed.before[number]), int(followed.after[number])
        x = None if before == NONE_BELOW else below(before)
        y = None if after == NONE_ABOVE else below(after)
        base = segment.flat(followed.low[begin:end], followed.high[begin:end])
        found[number] = exposure(x, below(changed[number]), y, base)
    return found


def _above(cut: Cut) -> Cut:
    """From the cut below a value to the one above it."""
    return (2, cut[1], 1) if len(cut) == 3 else ABOVE_NULL


def exposure(x: Cut | None, cut: Cut, y: Cut | None, base: Flat) -> Exposure | None:
    if not base:
        return None
    lowest = BOTTOM if x is None else _above(x)
    highest = TOP if y is None else y
    return Exposure(Reach(lowest, cut, _above(cut), highest), base)
