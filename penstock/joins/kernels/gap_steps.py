"""Many steps of one join value, taken in one go: what each means to the points of one space.

What `ValueShadows` says step by step, without a Python object per step. All values that the group
has now or will have are known beforehand, so each has a place in a sorted array and is merely there
or not; shadows of gaps are kept by the value on their left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.joins.kernels.gaps import MIDDLE, RIGHT, all_gaps, anyone, room, split_gap
from penstock.joins.kernels.probes import exposed_values, gaps_holding
from penstock.kernels.compiled import njit
from penstock.kernels.trees import Forest, Unions
from penstock.kernels.unions import Codes64, stabs, unite

Flags = npt.NDArray[np.bool_]
Spans = npt.NDArray[np.int64]

NONE = -1
"""No row, or no value."""
NEW, OLD = 0, 1
"""What a step brings, and what it takes away."""
BEGIN, END, BEFORE, AFTER = 0, 1, 2, 3
"""Columns of a span: where its entries lie, and the values next to the one that came or went."""
KEPT, GAPS, USED, LOOSE = 0, 1, 2, 3
"""Whether shadows are kept; how many gaps have one; how much of the pool is used; whether the
shadow of the affected may hold values that it should not."""
FEW_PROBES = 4
"""For so few base rows walks are cheaper than the shadows of all gaps."""


class PointTree(NamedTuple):
    """The points of a space."""

    forest: Forest
    unions: Unions
    next_high: Codes64
    """By code from NULL's (-1) on: the lowest high of the points that start there or later."""
    top: int
    """The largest code of a filter value."""


class GroupState(NamedTuple):
    """All rows that the group has or will have, in codes, as they are before the first step."""

    values: Codes64
    """The codes of the filter values, sorted; different values may have the same."""
    counts: Codes64
    """How many rows have each filter value."""
    base: Codes64
    """The codes of the base rows, sorted."""
    is_there: Flags
    """Whether each base row is there."""


class StepOps(NamedTuple):
    """What each step does: the places of the rows or values that it brings and takes, or NONE."""

    is_base: Flags
    new: Codes64
    old: Codes64


class StepEffects(NamedTuple):
    """What the steps mean."""

    regions: Spans
    """By step, and by what is new and old: BEGIN and END of the runs of a base row's region."""
    last: Codes64
    first: Codes64
    """Runs: the places of their last and first filter values."""
    exposed: Spans
    """By step, and by what is shown and hidden: BEGIN and END of the base rows, and the filter
    values BEFORE and AFTER."""
    rows: Codes64
    """The places of base rows."""


@njit
def apply_steps(
    wishes: PointTree, cast: GroupState, script: StepOps, few_probes: int = FEW_PROBES
) -> StepEffects:
    """Take all steps; `counts` and `is_there` are brought to the state after them."""
    steps = script.new.shape[0]
    regions, exposed = np.zeros((steps, 2, 2), np.int64), np.zeros((steps, 2, 4), np.int64)
    last, first, rows = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
    runs = shown = 0
    probes = 0
    for s in range(steps):
        if script.is_base[s]:
            probes += (script.new[s] != NONE) + (script.old[s] != NONE)
    shadows = _shadows(wishes, cast, probes > few_probes)
    marks = np.zeros(cast.base.shape[0], np.bool_)
    for s in range(steps):
        for which in range(2):
            place = script.new[s] if which == NEW else script.old[s]
            if place == NONE:
                continue
            if script.is_base[s]:
                most = 1 + (shadows.state[GAPS] if shadows.state[KEPT] else cast.values.shape[0])
                last, first = room(last, runs + most), room(first, runs + most)
                here = (last[runs:], first[runs:])
                found = _describe(wishes, cast, shadows, cast.base[place], *here)
                regions[s, which, BEGIN], regions[s, which, END] = runs, runs + found
                runs += found
            elif script.new[s] != script.old[s]:
                cast.counts[place] += 1 if which == NEW else -1
                if cast.counts[place] != (1 if which == NEW else 0):
                    continue
                rows = room(rows, shown + cast.base.shape[0])
                span = exposed[s, which]
                span[BEFORE], span[AFTER] = _neighbours(cast.counts, place)
                found, shadows = _expose(
                    wishes, cast, shadows, (span[BEFORE], place, span[AFTER]), marks, rows[shown:]
                )
                span[BEGIN], span[END] = shown, shown + found
                shown += found
        if script.is_base[s]:
            if script.new[s] != NONE:
                cast.is_there[script.new[s]] = True
            if script.old[s] != NONE:
                cast.is_there[script.old[s]] = False
    return StepEffects(regions, last[:runs], first[:runs], exposed, rows[:shown])


class _Shadows(NamedTuple):
    """The shadows of the gaps between filter values, and that of those who contain one."""

    gaps: Spans
    """By filter value: BEGIN and END, in the pool, of the shadow of the gap to its right."""
    lefts: Codes64
    """The values with such a shadow, sorted."""
    pool: Spans
    """Ranges, as a row of lows and a row of highs."""
    affected: Spans
    """The ranges of those who contain a value, likewise."""
    state: Codes64
    """KEPT, GAPS, USED and LOOSE."""


@njit
def _shadows(wishes: PointTree, cast: GroupState, is_kept: bool) -> _Shadows:
    size = cast.values.shape[0]
    gaps, lefts = np.zeros((size, 2), np.int64), np.zeros(size, np.int64)
    state = np.array([is_kept, 0, 0, 0], np.int64)
    there = np.flatnonzero(cast.counts > 0)
    count = there.shape[0]
    if count == 0 or not is_kept:
        nothing = np.empty((2, 0), np.int64)
        return _Shadows(gaps, lefts, nothing, nothing, state)
    begin, low, high = all_gaps(wishes.forest, wishes.unions, cast.values[there])
    for part in range(1, count):
        if begin[part] < begin[part + 1]:
            left = there[part - 1]
            gaps[left, BEGIN], gaps[left, END] = begin[part], begin[part + 1]
            lefts[state[GAPS]] = left
            state[GAPS] += 1
    state[USED] = begin[count + 1]
    pool = np.stack((low, high))
    return _Shadows(gaps, lefts, pool, pool[:, state[USED] :].copy(), state)


@njit
def _neighbours(counts: Codes64, place: int) -> tuple[int, int]:
    """The nearest values on both sides that are there; NONE where there are none."""
    before, after = place - 1, place + 1
    while before >= 0 and counts[before] == 0:
        before -= 1
    while after < counts.shape[0] and counts[after] == 0:
        after += 1
    return max(before, NONE), after if after < counts.shape[0] else NONE


@njit
def _describe(
    wishes: PointTree, cast: GroupState, shadows: _Shadows, code: int, last: Codes64, first: Codes64
) -> int:
    """The runs of filter values that describe who selects a base row and contains a value."""
    if not shadows.state[KEPT]:
        return _describe_by_walk(wishes, cast, code, last, first)
    low, high = shadows.affected
    begin = _neighbours(cast.counts, NONE)[1]
    if begin == NONE or not stabs(low, high, 0, low.shape[0], code):
        return 0
    found = 0
    low, high = shadows.pool
    for left in shadows.lefts[: shadows.state[GAPS]]:
        if stabs(low, high, shadows.gaps[left, BEGIN], shadows.gaps[left, END], code):
            last[found], first[found] = left, begin
            found += 1
            begin = _neighbours(cast.counts, left)[1]
    last[found], first[found] = _neighbours(cast.counts, cast.counts.shape[0])[0], begin
    found += 1
    if shadows.state[LOOSE]:
        ends, begins = cast.values[last[:found]], cast.values[first[:found]]
        if not anyone(wishes.forest, wishes.unions, code, ends, begins):
            return 0
    return found


@njit
def _describe_by_walk(
    wishes: PointTree, cast: GroupState, code: int, last: Codes64, first: Codes64
) -> int:
    there = np.flatnonzero(cast.counts > 0)
    count = there.shape[0]
    if count == 0:
        return 0
    held = gaps_holding(wishes.forest, wishes.unions, cast.values[there], code)
    if not held[count + 1]:
        return 0
    found = begin = 0
    for gap in range(1, count):
        if held[gap]:
            last[found], first[found] = there[gap - 1], there[begin]
            found += 1
            begin = gap
    last[found], first[found] = there[count - 1], there[begin]
    return found + 1


@njit
def _expose(
    wishes: PointTree,
    cast: GroupState,
    shadows: _Shadows,
    around: tuple[int, int, int],
    marks: Flags,
    rows: Codes64,
) -> tuple[int, _Shadows]:
    """A filter value has come or gone between two others: how many base rows that shows or hides,
    and the shadows after it."""
    before, place, after = around
    code = cast.values[place]
    x = cast.values[before] if before != NONE else -2
    y = cast.values[after] if after != NONE else wishes.top + 1
    if wishes.next_high[x + 2] >= y:
        return 0, shadows  # nobody fits into the gap
    if not shadows.state[KEPT]:
        if exposed_values(wishes.forest, wishes.unions, x, code, y, cast.base, marks) == 0:
            return 0, shadows
        return _take_marked(cast.is_there, marks, rows), shadows
    begin, low, high = split_gap(wishes.forest, wishes.unions, x, code, y)
    middle, right = begin[MIDDLE], begin[RIGHT]
    found = _within(cast, low[middle:right], high[middle:right], rows)
    if cast.counts[place] == 0:  # it has gone
        shadows.state[LOOSE] |= middle < right
        shadows = _put(shadows, place, low[:0], high[:0])
        inner = unite(low, high) if before != NONE and after != NONE else 0
        return found, _put(shadows, before, low[:inner], high[:inner])
    shadows = _put(shadows, before, low[:middle], high[:middle])
    if after != NONE:
        shadows = _put(shadows, place, low[right:], high[right:])
    return found, _affect(shadows, low[middle:right], high[middle:right])


@njit
def _take_marked(is_there: Flags, marks: Flags, rows: Codes64) -> int:
    """The marked rows that are there; no mark is left."""
    found = 0
    for row in range(marks.shape[0]):
        if marks[row]:
            marks[row] = False
            if is_there[row]:
                rows[found] = row
                found += 1
    return found


@njit
def _within(cast: GroupState, low: Codes64, high: Codes64, rows: Codes64) -> int:
    """The base rows that are there and lie in one of some ranges."""
    found = 0
    for i in range(low.shape[0]):
        row = np.searchsorted(cast.base, low[i])
        while row < cast.base.shape[0] and cast.base[row] <= high[i]:
            if cast.is_there[row]:
                rows[found] = row
                found += 1
            row += 1
    return found


@njit
def _put(shadows: _Shadows, left: int, low: Codes64, high: Codes64) -> _Shadows:
    """Replace the shadow of the gap to the right of a value (of none: do nothing)."""
    if left == NONE:
        return shadows
    gaps, lefts, state = shadows.gaps, shadows.lefts, shadows.state
    count, at = state[GAPS], np.searchsorted(lefts[: state[GAPS]], left)
    was_empty, is_empty = gaps[left, BEGIN] == gaps[left, END], low.shape[0] == 0
    if is_empty and not was_empty:
        lefts[at : count - 1] = lefts[at + 1 : count].copy()
        state[GAPS] -= 1
    elif was_empty and not is_empty:
        lefts[at + 1 : count + 1] = lefts[at:count].copy()
        lefts[at] = left
        state[GAPS] += 1
    used = state[USED]
    need = used + low.shape[0]
    pool = shadows.pool
    if need > pool.shape[1]:
        pool = np.empty((2, 2 * need), np.int64)
        pool[:, :used] = shadows.pool[:, :used]
    pool[0, used:need], pool[1, used:need] = low, high
    gaps[left, BEGIN], gaps[left, END], state[USED] = used, need, need
    return _Shadows(gaps, lefts, pool, shadows.affected, state)


@njit
def _affect(shadows: _Shadows, low: Codes64, high: Codes64) -> _Shadows:
    """More points contain a value."""
    if low.shape[0] == 0:
        return shadows
    all_low = np.concatenate((shadows.affected[0], low))
    all_high = np.concatenate((shadows.affected[1], high))
    count = unite(all_low, all_high)
    affected = np.stack((all_low[:count], all_high[:count]))
    return _Shadows(shadows.gaps, shadows.lefts, shadows.pool, affected, shadows.state)
