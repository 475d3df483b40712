"""Visibility of base rows when a filter value is added or removed, and the reaches for it."""

from __future__ import annotations

from typing import NamedTuple

from penstock.joins.cut_ranges import Flat
from penstock.messages import Reach, Reaches
from penstock.predicates.intervals import ABOVE_NULL, BOTTOM, TOP, Cut


class Exposure(NamedTuple):
    """The points whose interval contains one filter value only, as a reach; and base ranges."""

    reach: Reach
    base: Flat


def reaches(runs: list[tuple[Cut, Cut]]) -> Reaches:
    return tuple([Reach(BOTTOM, last, _above(first), TOP) for last, first in runs])


def _above(cut: Cut) -> Cut:
    """From the cut below a value to the one above it."""
    return (2, cut[1], 1) if len(cut) == 3 else ABOVE_NULL


def exposure(x: Cut | None, cut: Cut, y: Cut | None, base: Flat) -> Exposure | None:
    return Exposure(alone(x, cut, y), base) if base else None


def alone(x: Cut | None, cut: Cut, y: Cut | None) -> Reach:
    """The intervals that contain a filter value and neither of its neighbours."""
    lowest = BOTTOM if x is None else _above(x)
    return Reach(lowest, cut, _above(cut), TOP if y is None else y)
