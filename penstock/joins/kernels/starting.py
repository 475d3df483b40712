"""Who starts with which rows of a group: for many new points at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from penstock.joins.kernels.gaps import room
from penstock.joins.kernels.unions import Codes64
from penstock.matching.compiled import njit

Table64 = npt.NDArray[np.int64]


@njit
def containing_any(low: Codes64, high: Codes64, values: Codes64, top: int) -> Codes64:
    """The ranges of codes (from NULL's, -1, to `top`) that contain one of some sorted values."""
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


@njit
def selecting_each(
    low: Table64, high: Table64, points: Codes64, codes: Table64
) -> tuple[Codes64, Codes64]:
    """Which of some points select each row: where the numbers of each row begin, and the numbers.

    `low` and `high` have a row per column and an entry per point, `codes` a row per row.
    """
    begin = np.zeros(codes.shape[0] + 1, np.int64)
    found = np.empty(64, np.int64)
    count = 0
    for row in range(codes.shape[0]):
        found = room(found, count + points.shape[0])
        for point in points:
            is_selecting = True
            for column in range(low.shape[0]):
                code = codes[row, column]
                is_selecting &= (low[column, point] <= code) & (code <= high[column, point])
            found[count] = point
            count += is_selecting
        begin[row + 1] = count
    return begin, found[:count]
