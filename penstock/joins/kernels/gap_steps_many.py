"""The steps of many groups in one call; `penstock.joins.kernels.gap_steps` handles each group.

Row numbers are contiguous per group; within a group, rows that are present before the first step
come first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.joins.kernels.gap_prepare import GroupEffects, GroupRows, places_of, run_group
from penstock.joins.kernels.gap_steps import (
    AFTER,
    BEFORE,
    BEGIN,
    END,
    NEW,
    NONE,
    OLD,
    PointTree,
    SpanTable,
    StepOps,
)
from penstock.joins.kernels.gaps import ensure_room
from penstock.kernels.compiled import njit
from penstock.kernels.unions import Codes64

SHOWN, HIDDEN = 1, 2
"""Bit flags: what a step does to a joining row; it may do both, for different points."""
LOWER, VALUE, UPPER = 0, 1, 2
"""Columns of `around`: a value that was added or removed, and its neighbours."""


class SideRows(NamedTuple):
    """The rows of many groups on one side, in the codes of one space."""

    codes: Codes64
    """By row: the code of its base or filter value."""
    ranks: Codes64
    """By row: numbers in the order of the values, equal for equal values."""
    begin: Codes64
    """By group: its first row; and the end of the last group."""
    there: Codes64
    """By group: the number of rows present before the first step."""


class ManyEffects(NamedTuple):
    """The effects of the steps of many groups. A filter value is given as a row that has it."""

    regions: SpanTable
    """By step and NEW or OLD: BEGIN and END of the runs of a base row's region."""
    last: Codes64
    first: Codes64
    """By run: rows with its last and first filter values."""
    around: SpanTable
    """By step and NEW or OLD: rows with the values LOWER, VALUE and UPPER, or NONE."""
    steps: Codes64
    rows: Codes64
    marks: Codes64
    """Joining rows that steps show or hide: the step, the base row, and SHOWN, HIDDEN or both."""


@njit
def apply_steps_many(
    tree: PointTree, base: SideRows, filters: SideRows, ops: StepOps, begin: Codes64
) -> ManyEffects:
    """Run all steps, which refer to rows by number; those of group `g` are `begin[g]` up to
    `begin[g + 1]`."""
    count = ops.new.shape[0]
    regions, around = np.zeros((count, 2, 2), np.int64), np.full((count, 2, 3), NONE, np.int64)
    last, first = np.empty(64, np.int64), np.empty(64, np.int64)
    steps, rows, marks = (np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64))
    runs = shown = 0
    for group in range(begin.shape[0] - 1):
        here, end = begin[group], begin[group + 1]
        if here == end:
            continue
        effects, having = _run_group(tree, base, filters, ops, group, here, end)
        step_effects = effects.steps
        found = step_effects.last.shape[0]
        last, first = ensure_room(last, runs + found), ensure_room(first, runs + found)
        for i in range(found):
            last[runs + i], first[runs + i] = (
                having[step_effects.last[i]],
                having[step_effects.first[i]],
            )
        regions[here:end] = step_effects.regions + runs
        runs += found
        most = shown + step_effects.rows.shape[0]
        # Rows both shown and hidden are merged: at most as many as the group's effects list.
        steps, rows = ensure_room(steps, most), ensure_room(rows, most)
        marks = ensure_room(marks, most)
        for s in range(here, end):
            _look_around(effects, s - here, having, around[s])
            exposed = rows[shown:], marks[shown:]
            found = _expose(effects, s - here, base.begin[group], *exposed)
            steps[shown : shown + found] = s
            shown += found
    return ManyEffects(
        regions, last[:runs], first[:runs], around, steps[:shown], rows[:shown], marks[:shown]
    )


@njit
def _run_group(
    tree: PointTree,
    base: SideRows,
    filters: SideRows,
    ops: StepOps,
    group: int,
    here: int,
    end: int,
) -> tuple[GroupEffects, Codes64]:
    """The effects in one group; and, by position of its filter values, rows that have them."""
    first_base, first_filter = base.begin[group], filters.begin[group]
    mine = slice(first_filter, filters.begin[group + 1])
    place, having = places_of(filters.ranks[mine])
    codes = filters.codes[mine][having]
    group_rows = GroupRows(
        base.codes[first_base : base.begin[group + 1]],
        place,
        codes,
        base.there[group],
        filters.there[group],
    )
    new, old = ops.new[here:end].copy(), ops.old[here:end].copy()
    for i in range(end - here):
        before = first_base if ops.is_base[here + i] else first_filter
        new[i] = new[i] - before if new[i] != NONE else NONE
        old[i] = old[i] - before if old[i] != NONE else NONE
    effects = run_group(tree, group_rows, StepOps(ops.is_base[here:end], new, old))
    return effects, having + first_filter


@njit
def _look_around(effects: GroupEffects, step: int, having: Codes64, around: SpanTable) -> None:
    """The neighbours of the values that a step adds and removes, if that exposes any row."""
    for which in range(2):
        span = effects.steps.exposed[step, which]
        if span[BEGIN] < span[END]:
            value = effects.new[step] if which == NEW else effects.old[step]
            around[which, VALUE] = having[value]
            if span[BEFORE] != NONE:
                around[which, LOWER] = having[span[BEFORE]]
            if span[AFTER] != NONE:
                around[which, UPPER] = having[span[AFTER]]


@njit
def _expose(effects: GroupEffects, step: int, first: int, rows: Codes64, marks: Codes64) -> int:
    """Write the base rows that a step shows or hides, each once; returns how many."""
    step_effects, found = effects.steps, 0
    shown, hidden = step_effects.exposed[step, NEW], step_effects.exposed[step, OLD]
    i, k = shown[BEGIN], hidden[BEGIN]
    # A merge: positions ascend in both lists.
    while i < shown[END] or k < hidden[END]:
        is_shown = i < shown[END] and (
            k == hidden[END] or step_effects.rows[i] <= step_effects.rows[k]
        )
        is_hidden = k < hidden[END] and (
            i == shown[END] or step_effects.rows[k] <= step_effects.rows[i]
        )
        place = step_effects.rows[i] if is_shown else step_effects.rows[k]
        rows[found] = first + effects.order[place]
        marks[found] = is_shown * SHOWN + is_hidden * HIDDEN
        found += 1
        i, k = i + is_shown, k + is_hidden
    return found
