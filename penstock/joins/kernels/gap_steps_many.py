"""The steps of many groups, in one call: what `penstock.joins.kernels.gap_steps` says of each.

Rows are numbered through all groups, those of one group next to each other, and first the rows that
are there before the first step.
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
"""What a step does to a joining row; it may do both, for different points."""
LOWER, VALUE, UPPER = 0, 1, 2
"""Columns of what is around: the values below and above one that came or went, and this."""


class SideRows(NamedTuple):
    """The rows of many groups on one side, as one space sees them."""

    codes: Codes64
    """Of the values that matter on this side."""
    ranks: Codes64
    """Numbers in the order of the values, equal for equal ones."""
    begin: Codes64
    """By group, and the end of the last."""
    there: Codes64
    """By group, how many are there before the first step."""


class ManyEffects(NamedTuple):
    """What the steps of many groups mean. Filter values are known by a row that has them."""

    regions: SpanTable
    """By step, and by what is new and old: BEGIN and END of the runs of a base row's region."""
    last: Codes64
    first: Codes64
    """Runs: rows with their last and first filter values."""
    around: SpanTable
    """By step, and by what comes and goes: rows with the values LOWER, VALUE and UPPER, or NONE."""
    steps: Codes64
    rows: Codes64
    marks: Codes64
    """Joining rows that steps show or hide: the step, the base row, and `SHOWN` or `HIDDEN`."""


@njit
def apply_steps_many(
    tree: PointTree, base: SideRows, filters: SideRows, ops: StepOps, begin: Codes64
) -> ManyEffects:
    """Take all steps, which name rows by their numbers; `begin` says where those of each group
    begin."""
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
        # A step exposes each of its rows once: at most as many as the group's effects list.
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
    """The effects in one group; and rows that have its filter values, by place."""
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
    """Which values are around those that a step brings and takes away, if that matters."""
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
    """The base rows that a step shows or hides, each once."""
    step_effects, found = effects.steps, 0
    shown, hidden = step_effects.exposed[step, NEW], step_effects.exposed[step, OLD]
    i, k = shown[BEGIN], hidden[BEGIN]
    # Places ascend in both.
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
