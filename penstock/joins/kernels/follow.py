"""Many filter values of one join value that come and go, followed in one go.

What `ValueShadows.show` and `hide` do one by one, for whole numbers and one tree, without a Python
object per value: keep the sorted values, find the gap of each change, and find the base rows that
are selected by points inside the gap that contain the value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.joins.kernels.gaps import code_of
from penstock.joins.kernels.probes import exposed_values
from penstock.joins.kernels.trees import Forest, Unions
from penstock.joins.kernels.unions import Codes64
from penstock.matching.compiled import njit

NONE_BELOW = -(1 << 62) - 1
NONE_ABOVE = (1 << 62) + 1
"""Stand for the neighbour that a smallest or largest value does not have."""


class Lookup(NamedTuple):
    """How one segment codes filter values and tells empty gaps."""

    constants: Codes64
    next_high: Codes64
    """By code from NULL's (-1) on: the lowest high of the points that start there or later."""


class Followed(NamedTuple):
    """The values after all changes, and what the changes showed or hid."""

    values: Codes64
    counts: Codes64
    change: Codes64
    """For each range that follows, the number of the change; ascending."""
    low: Codes64
    high: Codes64
    before: Codes64
    after: Codes64
    """For each change, the values next to the one that came or went."""


@njit
def follow(
    forest: Forest,
    unions: Unions,
    lookup: Lookup,
    values: Codes64,
    counts: Codes64,
    changed: Codes64,
    signs: Codes64,
    base: Codes64,
) -> Followed:
    """Changes are values that come (+1) or go (-1); `values` are sorted, with `counts` of each.

    `base` has the sorted codes of the base rows there are: only they can be shown or hidden.
    """
    size, changes = values.shape[0], changed.shape[0]
    room = size + changes
    keys, codes, held = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    for i in range(size):
        keys[i], held[i], codes[i] = values[i], counts[i], code_of(lookup.constants, values[i])
    top = 2 * lookup.constants.shape[0]
    before, after = np.full(changes, NONE_BELOW), np.full(changes, NONE_ABOVE)
    change, low, high = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
    used = 0
    marks = np.zeros(base.shape[0], np.bool_)
    for e in range(changes):
        place = np.searchsorted(keys[:size], changed[e])
        is_held = place < size and keys[place] == changed[e]
        if is_held and (signs[e] > 0 or held[place] > 1):
            held[place] += signs[e]
            continue
        if signs[e] > 0:
            code = code_of(lookup.constants, changed[e])
            keys[place + 1 : size + 1] = keys[place:size].copy()
            codes[place + 1 : size + 1] = codes[place:size].copy()
            held[place + 1 : size + 1] = held[place:size].copy()
            keys[place], codes[place], held[place] = changed[e], code, 1
            size += 1
            following = place + 1
        else:
            code = codes[place]
            size -= 1
            keys[place:size] = keys[place + 1 : size + 1].copy()
            codes[place:size] = codes[place + 1 : size + 1].copy()
            held[place:size] = held[place + 1 : size + 1].copy()
            following = place
        x = codes[place - 1] if place > 0 else -2
        y = codes[following] if following < size else top + 1
        if base.shape[0] == 0 or lookup.next_high[x + 2] >= y:
            continue  # no base rows, or nobody fits into the gap
        found = exposed_values(forest, unions, x, code, y, base, marks)
        if found == 0:
            continue
        if place > 0:
            before[e] = keys[place - 1]
        if following < size:
            after[e] = keys[following]
        if used + found > low.shape[0]:
            need = used + found
            change, low, high = _grown(change, need), _grown(low, need), _grown(high, need)
        for i in range(base.shape[0]):
            if marks[i]:
                change[used], low[used], high[used] = e, base[i], base[i]
                marks[i] = False
                used += 1
    return Followed(keys[:size], held[:size], change[:used], low[:used], high[:used], before, after)


@njit
def _grown(array: Codes64, need: int) -> Codes64:
    grown = np.empty(2 * need, np.int64)
    grown[: array.shape[0]] = array
    return grown
