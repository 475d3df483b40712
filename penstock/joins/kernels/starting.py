"""The initial content of many new points: which rows of groups belong to which point."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from penstock.joins.kernels.gaps import ensure_room
from penstock.kernels.compiled import njit_when_large
from penstock.kernels.unions import Codes64

Table64 = npt.NDArray[np.int64]
Ranges: TypeAlias = tuple[Table64, Table64]
Portions: TypeAlias = tuple[Table64, Codes64]


@njit_when_large
def containing_any(low: Codes64, high: Codes64, values: Codes64, top: int) -> Codes64:
    """The ranges of codes (from NULL's, -1, to `top`) that contain one of the sorted values.

    `following[code + 1]` is the first value at or above a code, `top + 1` if there is none.
    """
    following = np.empty(top + 3, np.int64)
    begin = 0
    for value in values:
        following[begin : value + 2] = value
        begin = value + 2
    following[begin:] = top + 1
    found = np.empty(low.shape[0], np.int64)
    count = 0
    for i in range(low.shape[0]):
        if following[low[i] + 1] <= high[i]:
            found[count] = i
            count += 1
    return found[:count]


@njit_when_large
def containing_any_vector(low: Table64, high: Table64, vectors: Table64) -> Codes64:
    """The boxes, given as code ranges by column and box, that contain at least one vector."""
    found = np.empty(low.shape[1], np.int64)
    count = 0
    for i in range(low.shape[1]):
        for vector in vectors:
            is_inside = True
            for column in range(low.shape[0]):
                code = vector[column]
                is_inside &= (low[column, i] <= code) & (code <= high[column, i])
            if is_inside:
                found[count] = i
                count += 1
                break
    return found[:count]


@njit_when_large
def starting_each(
    filters: Ranges, tops: Codes64, vectors: Portions, base: Ranges, rows: Portions
) -> tuple[Codes64, Codes64]:
    """For each row the points whose initial content has it: where each row begins, and the points.

    `filters` and `base` are the lows and highs of all points, by column and point; the codes of a
    filter column end at `tops`. `vectors` and `rows` are the codes of the rows of many groups on
    the filter side and on the base side, by row and column, and where each group begins. If there
    is one filter column, the vectors of a group are sorted. Per row, room is made for all points
    whose filter contains a vector of the group.
    """
    codes, begin_rows = rows
    partners, begin_partners = vectors
    begin = np.zeros(codes.shape[0] + 1, np.int64)
    found = np.empty(64, np.int64)
    count = 0
    for group in range(begin_rows.shape[0] - 1):
        mine = partners[begin_partners[group] : begin_partners[group + 1]]
        if filters[0].shape[0] == 1:
            points = containing_any(filters[0][0], filters[1][0], mine[:, 0], tops[0])
        else:
            points = containing_any_vector(filters[0], filters[1], mine)
        for row in range(begin_rows[group], begin_rows[group + 1]):
            found = ensure_room(found, count + points.shape[0])
            for point in points:
                is_selecting = True
                for column in range(base[0].shape[0]):
                    code = codes[row, column]
                    is_selecting &= base[0][column, point] <= code
                    is_selecting &= code <= base[1][column, point]
                found[count] = point
                count += is_selecting
            begin[row + 1] = count
    return begin, found[:count]


@njit_when_large
def selected_by_any(low: Table64, high: Table64, points: Codes64, codes: Table64) -> Codes64:
    """The rows that at least one of the points selects.

    `low` and `high` have a row per column and an entry per point, `codes` a row per row.
    """
    found = np.empty(codes.shape[0], np.int64)
    count = 0
    for row in range(codes.shape[0]):
        for point in points:
            is_selecting = True
            for column in range(low.shape[0]):
                code = codes[row, column]
                is_selecting &= (low[column, point] <= code) & (code <= high[column, point])
            if is_selecting:
                found[count] = row
                count += 1
                break
    return found[:count]
