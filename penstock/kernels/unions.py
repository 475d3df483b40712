"""Unions of ranges of codes, as two sorted arrays: the lows and highs of maximal ranges.

Ranges are closed and codes are integers, so adjacent ranges (..3, 4..) are merged.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from penstock.kernels.compiled import njit_when_large

Codes64 = npt.NDArray[np.int64]


@njit_when_large
def unite(low: Codes64, high: Codes64) -> int:
    """Replace ranges in any order by their union, in place; returns its number of ranges."""
    count = low.shape[0]
    order = np.argsort(low)
    sorted_low, sorted_high = low[order], high[order]
    kept = 0
    for i in range(count):
        if kept > 0 and sorted_low[i] <= high[kept - 1] + 1:
            high[kept - 1] = max(high[kept - 1], sorted_high[i])
        else:
            low[kept], high[kept] = sorted_low[i], sorted_high[i]
            kept += 1
    return kept


@njit_when_large
def merge(
    low: Codes64,
    high: Codes64,
    first: tuple[int, int],
    second: tuple[int, int],
    out_low: Codes64,
    out_high: Codes64,
) -> int:
    """Merge two unions of the same arrays into `out_low` and `out_high`; returns the number of
    ranges, which is at most that of both together."""
    i, j, kept = first[0], second[0], 0
    while i < first[1] or j < second[1]:
        if j >= second[1] or (i < first[1] and low[i] <= low[j]):
            start, end = low[i], high[i]
            i += 1
        else:
            start, end = low[j], high[j]
            j += 1
        if kept > 0 and start <= out_high[kept - 1] + 1:
            out_high[kept - 1] = max(out_high[kept - 1], end)
        else:
            out_low[kept], out_high[kept] = start, end
            kept += 1
    return kept


@njit_when_large
def coarsen(low: Codes64, high: Codes64, count: int, most: int) -> int:
    """Coarsen to at most `most` ranges by bridging neighbours, in place; returns the number."""
    while count > most:
        kept = 0
        for i in range(0, count, 2):
            low[kept] = low[i]
            high[kept] = high[min(i + 1, count - 1)]
            kept += 1
        count = kept
    return count


@njit_when_large
def stabs(low: Codes64, high: Codes64, start: int, end: int, code: int) -> bool:
    """Whether the union in [start, end) of two arrays contains a code."""
    first = start
    while start < end:
        middle = (start + end) >> 1
        if low[middle] <= code:
            start = middle + 1
        else:
            end = middle
    return start > first and high[start - 1] >= code


def union_reference(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Reference for `unite`."""
    united: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if united and low <= united[-1][1] + 1:
            united[-1] = (united[-1][0], max(united[-1][1], high))
        else:
            united.append((low, high))
    return united
