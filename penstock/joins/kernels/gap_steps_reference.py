"""Reference for `apply_steps`: tests every point for every step."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from penstock.joins.kernels.gap_steps import NONE, GroupState, StepOps
from penstock.kernels.trees import Points

Runs = list[tuple[int, int]]
"""By run: the positions of its last and first filter value."""


@dataclass
class Exposed:
    """The neighbours of a filter value that was added or removed, and the base rows exposed."""

    before: int
    after: int
    rows: list[int]


@dataclass
class Meaning:
    """The effects of one step; NEW first, then OLD."""

    regions: list[Runs] = field(default_factory=list)
    exposed: list[Exposed | None] = field(default_factory=list)


def apply_steps_reference(points: Points, group: GroupState, ops: StepOps) -> list[Meaning]:
    """The effects of all steps; does not change `group`."""
    counts, is_there = group.counts.tolist(), group.is_there.tolist()
    base = group.base.tolist()
    meanings = []
    for is_base, new, old in zip(*(array.tolist() for array in ops), strict=True):
        meaning = Meaning()
        for place, change in ((new, 1), (old, -1)):
            if is_base:
                there = [i for i, count in enumerate(counts) if count]
                code = None if place == NONE else base[place]
                meaning.regions.append(_runs(points, group, there, code))
                continue
            meaning.exposed.append(None)
            if place == NONE or new == old:
                continue
            counts[place] += change
            if counts[place] == (change > 0):
                rows = [i for i, here in enumerate(is_there) if here]
                meaning.exposed[-1] = _exposed(points, group, counts, place, rows)
        if is_base:
            for place, here in ((new, True), (old, False)):
                if place != NONE:
                    is_there[place] = here
        meanings.append(meaning)
    return meanings


def _runs(points: Points, group: GroupState, there: list[int], code: int | None) -> Runs:
    selecting = [p for p in points.tolist() if code is not None and p[2] <= code <= p[3]]
    values = group.values.tolist()
    if not any(p[0] <= values[i] <= p[1] for p in selecting for i in there):
        return []
    runs, first = [], there[0]
    for left, right in pairwise(there):
        if any(values[left] < p[0] and p[1] < values[right] for p in selecting):
            runs.append((left, first))
            first = right
    return [*runs, (there[-1], first)]


def _exposed(
    points: Points, group: GroupState, counts: list[int], place: int, rows: list[int]
) -> Exposed:
    values, base = group.values.tolist(), group.base.tolist()
    before = max((i for i in range(place) if counts[i]), default=NONE)
    after = min((i for i in range(place + 1, len(counts)) if counts[i]), default=NONE)
    alone = [
        p
        for p in points.tolist()
        if p[0] <= values[place] <= p[1]
        and (before == NONE or values[before] < p[0])
        and (after == NONE or p[1] < values[after])
    ]
    concerned = [row for row in rows if any(p[2] <= base[row] <= p[3] for p in alone)]
    return Exposed(before, after, concerned)
