"""A batch of steps of one join value: the effect of each on the points of one space.

Computes what `ValueShadows` does step by step, without a Python object per step. All values that
the group has or will have are known beforehand, so each has a fixed position in a sorted array and
a count of rows that have it; shadows of gaps are stored by the value on their left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.joins.kernels.gaps import MIDDLE, RIGHT, all_gaps, any_point, ensure_room, split_gap
from penstock.joins.kernels.probes import exposed_values, gaps_holding
from penstock.kernels.compiled import njit_when_large
from penstock.kernels.trees import Forest, Unions
from penstock.kernels.unions import Codes64, stabs, unite

Flags = npt.NDArray[np.bool_]
SpanTable = npt.NDArray[np.int64]

NONE = -1
"""No row, or no value."""
NEW, OLD = 0, 1
"""What a step adds, and what it removes."""
BEGIN, END, BEFORE, AFTER = 0, 1, 2, 3
"""Columns of a span: where its entries lie, and the neighbours of the value added or removed."""
KEPT, GAPS, USED, LOOSE = 0, 1, 2, 3
"""Whether shadows are kept; how many gaps have one; how much of the pool is used; whether the
shadow of the affected points may be too large."""
FEW_PROBES = 4
"""Up to this many base rows, tree walks are cheaper than the shadows of all gaps."""


class PointTree(NamedTuple):
    """The points of a space."""

    forest: Forest
    unions: Unions
    next_high: Codes64
    """By code, from NULL's (-1) on: the least high end of the points that start there or later."""
    top: int
    """The largest code of a filter value."""


class GroupState(NamedTuple):
    """All rows that the group has or will have, in codes; counts and flags as of the next step."""

    values: Codes64
    """The codes of the filter values, sorted; different values may have the same code."""
    counts: Codes64
    """By filter value, the number of rows that have it."""
    base: Codes64
    """The codes of the base rows, sorted."""
    is_there: Flags
    """By base row, whether it is present."""


class StepOps(NamedTuple):
    """By step: the positions of the rows or values that it adds and removes, or NONE."""

    is_base: Flags
    new: Codes64
    old: Codes64


class StepEffects(NamedTuple):
    """The effects of the steps."""

    regions: SpanTable
    """By step and NEW or OLD: BEGIN and END of the runs of a base row's region."""
    last: Codes64
    first: Codes64
    """By run, the positions of its last and first filter values."""
    exposed: SpanTable
    """By step and NEW (shown) or OLD (hidden): BEGIN and END in `rows`, and the filter values
    BEFORE and AFTER."""
    rows: Codes64
    """The positions of base rows that become visible or invisible."""


@njit_when_large
def apply_steps(
    tree: PointTree, group: GroupState, ops: StepOps, few_probes: int = FEW_PROBES
) -> StepEffects:
    """Run all steps; updates `counts` and `is_there` to the state after them."""
    steps = ops.new.shape[0]
    regions, exposed = np.zeros((steps, 2, 2), np.int64), np.zeros((steps, 2, 4), np.int64)
    last, first, rows = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
    runs = shown = 0
    probes = 0
    for s in range(steps):
        if ops.is_base[s]:
            probes += (ops.new[s] != NONE) + (ops.old[s] != NONE)
    shadows = _shadows(tree, group, probes > few_probes)
    marks = np.zeros(group.base.shape[0], np.bool_)
    for s in range(steps):
        for which in range(2):
            place = ops.new[s] if which == NEW else ops.old[s]
            if place == NONE:
                continue
            if ops.is_base[s]:
                # A region has one run more than there are gaps whose shadow holds the row.
                most = 1 + (shadows.state[GAPS] if shadows.state[KEPT] else group.values.shape[0])
                last, first = ensure_room(last, runs + most), ensure_room(first, runs + most)
                here = (last[runs:], first[runs:])
                found = _describe(tree, group, shadows, group.base[place], *here)
                regions[s, which, BEGIN], regions[s, which, END] = runs, runs + found
                runs += found
            elif ops.new[s] != ops.old[s]:
                group.counts[place] += 1 if which == NEW else -1
                if group.counts[place] != (1 if which == NEW else 0):
                    continue
                # A value exposes each base row at most once.
                rows = ensure_room(rows, shown + group.base.shape[0])
                span = exposed[s, which]
                span[BEFORE], span[AFTER] = _neighbours(group.counts, place)
                found, shadows = _expose(
                    tree, group, shadows, (span[BEFORE], place, span[AFTER]), marks, rows[shown:]
                )
                span[BEGIN], span[END] = shown, shown + found
                shown += found
        if ops.is_base[s]:
            if ops.new[s] != NONE:
                group.is_there[ops.new[s]] = True
            if ops.old[s] != NONE:
                group.is_there[ops.old[s]] = False
    return StepEffects(regions, last[:runs], first[:runs], exposed, rows[:shown])


class _Shadows(NamedTuple):
    """The shadows of the gaps between filter values, and of the points that contain a value."""

    gaps: SpanTable
    """By filter value: BEGIN and END in `pool` of the shadow of the gap to its right."""
    lefts: Codes64
    """The values with a non-empty shadow, sorted; the first `state[GAPS]` entries are valid."""
    pool: SpanTable
    """Ranges of base codes, as a row of lows and a row of highs; `state[USED]` are valid."""
    affected: SpanTable
    """The shadow of the points that contain a value, in the same form."""
    state: Codes64
    """KEPT, GAPS, USED and LOOSE."""


@njit_when_large
def _shadows(tree: PointTree, group: GroupState, is_kept: bool) -> _Shadows:
    size = group.values.shape[0]
    gaps, lefts = np.zeros((size, 2), np.int64), np.zeros(size, np.int64)
    state = np.array([is_kept, 0, 0, 0], np.int64)
    there = np.flatnonzero(group.counts > 0)
    count = there.shape[0]
    if count == 0 or not is_kept:
        nothing = np.empty((2, 0), np.int64)
        return _Shadows(gaps, lefts, nothing, nothing, state)
    begin, low, high = all_gaps(tree.forest, tree.unions, group.values[there])
    for part in range(1, count):
        if begin[part] < begin[part + 1]:
            left = there[part - 1]
            gaps[left, BEGIN], gaps[left, END] = begin[part], begin[part + 1]
            lefts[state[GAPS]] = left
            state[GAPS] += 1
    state[USED] = begin[count + 1]
    pool = np.stack((low, high))
    return _Shadows(gaps, lefts, pool, pool[:, state[USED] :].copy(), state)


@njit_when_large
def _neighbours(counts: Codes64, place: int) -> tuple[int, int]:
    """The nearest present values on both sides, or NONE."""
    before, after = place - 1, place + 1
    while before >= 0 and counts[before] == 0:
        before -= 1
    while after < counts.shape[0] and counts[after] == 0:
        after += 1
    return max(before, NONE), after if after < counts.shape[0] else NONE


@njit_when_large
def _describe(
    tree: PointTree, group: GroupState, shadows: _Shadows, code: int, last: Codes64, first: Codes64
) -> int:
    """Write the runs of filter values that describe the points that select a base row and contain a
    value; returns how many. The caller makes room for one run more than there are gaps."""
    if not shadows.state[KEPT]:
        return _describe_by_walk(tree, group, code, last, first)
    low, high = shadows.affected
    begin = _neighbours(group.counts, NONE)[1]
    if begin == NONE or not stabs(low, high, 0, low.shape[0], code):
        return 0
    found = 0
    low, high = shadows.pool
    for left in shadows.lefts[: shadows.state[GAPS]]:
        if stabs(low, high, shadows.gaps[left, BEGIN], shadows.gaps[left, END], code):
            last[found], first[found] = left, begin
            found += 1
            begin = _neighbours(group.counts, left)[1]
    last[found], first[found] = _neighbours(group.counts, group.counts.shape[0])[0], begin
    found += 1
    if shadows.state[LOOSE]:
        ends, begins = group.values[last[:found]], group.values[first[:found]]
        if not any_point(tree.forest, tree.unions, code, ends, begins):
            return 0
    return found


@njit_when_large
def _describe_by_walk(
    tree: PointTree, group: GroupState, code: int, last: Codes64, first: Codes64
) -> int:
    there = np.flatnonzero(group.counts > 0)
    count = there.shape[0]
    if count == 0:
        return 0
    held = gaps_holding(tree.forest, tree.unions, group.values[there], code)
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


@njit_when_large
def _expose(
    tree: PointTree,
    group: GroupState,
    shadows: _Shadows,
    around: tuple[int, int, int],
    marks: Flags,
    rows: Codes64,
) -> tuple[int, _Shadows]:
    """A filter value was added or removed between two others: the number of base rows that this
    shows or hides (written to `rows`), and the shadows afterwards."""
    before, place, after = around
    code = group.values[place]
    x = group.values[before] if before != NONE else -2
    y = group.values[after] if after != NONE else tree.top + 1
    if tree.next_high[x + 2] >= y:
        return 0, shadows  # no interval fits into the gap
    if not shadows.state[KEPT]:
        if exposed_values(tree.forest, tree.unions, x, code, y, group.base, marks) == 0:
            return 0, shadows
        return _take_marked(group.is_there, marks, rows), shadows
    begin, low, high = split_gap(tree.forest, tree.unions, x, code, y)
    middle, right = begin[MIDDLE], begin[RIGHT]
    found = _within(group, low[middle:right], high[middle:right], rows)
    if group.counts[place] == 0:  # it was removed
        shadows.state[LOOSE] |= middle < right
        shadows = _put(shadows, place, low[:0], high[:0])
        inner = unite(low, high) if before != NONE and after != NONE else 0
        return found, _put(shadows, before, low[:inner], high[:inner])
    shadows = _put(shadows, before, low[:middle], high[:middle])
    if after != NONE:
        shadows = _put(shadows, place, low[right:], high[right:])
    return found, _affect(shadows, low[middle:right], high[middle:right])


@njit_when_large
def _take_marked(is_there: Flags, marks: Flags, rows: Codes64) -> int:
    """Write the marked rows that are present, and clear all marks; returns how many."""
    found = 0
    for row in range(marks.shape[0]):
        if marks[row]:
            marks[row] = False
            if is_there[row]:
                rows[found] = row
                found += 1
    return found


@njit_when_large
def _within(group: GroupState, low: Codes64, high: Codes64, rows: Codes64) -> int:
    """Write the present base rows that lie in one of the disjoint ranges; returns how many."""
    found = 0
    for i in range(low.shape[0]):
        row = np.searchsorted(group.base, low[i])
        while row < group.base.shape[0] and group.base[row] <= high[i]:
            if group.is_there[row]:
                rows[found] = row
                found += 1
            row += 1
    return found


@njit_when_large
def _put(shadows: _Shadows, left: int, low: Codes64, high: Codes64) -> _Shadows:
    """Replace the shadow of the gap to the right of a value; does nothing for NONE."""
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
    # Append-only: replaced shadows stay in the pool, unused, until the steps are done.
    used = state[USED]
    need = used + low.shape[0]
    pool = shadows.pool
    if need > pool.shape[1]:
        pool = np.empty((2, 2 * need), np.int64)
        pool[:, :used] = shadows.pool[:, :used]
    pool[0, used:need], pool[1, used:need] = low, high
    gaps[left, BEGIN], gaps[left, END], state[USED] = used, need, need
    return _Shadows(gaps, lefts, pool, shadows.affected, state)


@njit_when_large
def _affect(shadows: _Shadows, low: Codes64, high: Codes64) -> _Shadows:
    """Add ranges to the shadow of the points that contain a value."""
    if low.shape[0] == 0:
        return shadows
    all_low = np.concatenate((shadows.affected[0], low))
    all_high = np.concatenate((shadows.affected[1], high))
    count = unite(all_low, all_high)
    affected = np.stack((all_low[:count], all_high[:count]))
    return _Shadows(shadows.gaps, shadows.lefts, shadows.pool, affected, shadows.state)
