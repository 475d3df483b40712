"""From the rows of a group to the effects of its steps, in one kernel call.

The preparation is little work on small arrays: sorting rows, finding their codes and positions. For
a group of a hundred rows, doing it from Python took longer than the steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.joins.kernels.gap_steps import (
    FEW_PROBES,
    NONE,
    Flags,
    GroupState,
    PointTree,
    StepEffects,
    StepOps,
    apply_steps,
)
from penstock.joins.kernels.gaps import code_of
from penstock.kernels.compiled import njit_when_large
from penstock.kernels.unions import Codes64


class GroupRows(NamedTuple):
    """The rows of a group, by number, in the codes of one space."""

    base: Codes64
    """The codes of the base rows."""
    place: Codes64
    """By row on the filter side, the position of its value in `values`."""
    values: Codes64
    """The codes of the distinct filter values, sorted; different values may have the same code."""
    base_there: int
    filters_there: int
    """By side, the number of rows present before the first step: those with the lowest numbers."""


class GroupEffects(NamedTuple):
    """The effects of steps of a group."""

    steps: StepEffects
    order: Codes64
    """The numbers of the base rows, sorted by code: positions in `steps` index this array."""
    new: Codes64
    old: Codes64
    """By step: the positions of the rows or values that it adds and removes, or NONE."""


@njit_when_large
def run_group(
    tree: PointTree, group_rows: GroupRows, steps: StepOps, few_probes: int = FEW_PROBES
) -> GroupEffects:
    """Run all steps, which refer to rows by number."""
    base, place = group_rows.base, group_rows.place
    order = np.argsort(base, kind="mergesort")
    rank = np.empty(base.shape[0], np.int64)
    for i in range(base.shape[0]):
        rank[order[i]] = i
    counts = np.zeros(group_rows.values.shape[0], np.int64)
    for i in range(group_rows.filters_there):
        counts[place[i]] += 1
    group = GroupState(group_rows.values, counts, base[order], order < group_rows.base_there)
    new = _places(steps.is_base, rank, place, steps.new)
    old = _places(steps.is_base, rank, place, steps.old)
    return GroupEffects(
        apply_steps(tree, group, StepOps(steps.is_base, new, old), few_probes), order, new, old
    )


@njit_when_large
def _places(is_base: Flags, rank: Codes64, place: Codes64, rows: Codes64) -> Codes64:
    """Row numbers of steps as positions: among sorted base rows, or among filter values."""
    found = np.full(rows.shape[0], NONE, np.int64)
    for i in range(rows.shape[0]):
        if rows[i] != NONE:
            found[i] = rank[rows[i]] if is_base[i] else place[rows[i]]
    return found


class CodedNumbers(NamedTuple):
    """Numeric values of one column, and the sorted constants that define their codes."""

    constants: Codes64
    values: Codes64


@njit_when_large
def run_group_numbers(
    tree: PointTree,
    base: CodedNumbers,
    filters: CodedNumbers,
    base_there: int,
    filters_there: int,
    steps: StepOps,
) -> tuple[Codes64, GroupEffects]:
    """The distinct filter values, sorted, and `run_group` for columns that hold numbers only."""
    place, firsts = places_of(filters.values)
    distinct = filters.values[firsts]
    group_rows = GroupRows(
        _codes(base.constants, base.values),
        place,
        _codes(filters.constants, distinct),
        base_there,
        filters_there,
    )
    return distinct, run_group(tree, group_rows, steps)


@njit_when_large
def places_of(values: Codes64) -> tuple[Codes64, Codes64]:
    """The position of each value among the distinct ones; and, by position, a row that has it."""
    order = np.argsort(values, kind="mergesort")
    place, firsts = np.empty(order.shape[0], np.int64), np.empty(order.shape[0], np.int64)
    count = 0
    for row in order:
        if count == 0 or values[firsts[count - 1]] != values[row]:
            firsts[count] = row
            count += 1
        place[row] = count - 1
    return place, firsts[:count]


@njit_when_large
def _codes(constants: Codes64, values: Codes64) -> Codes64:
    codes = np.empty(values.shape[0], np.int64)
    for i in range(values.shape[0]):
        codes[i] = code_of(constants, values[i])
    return codes
