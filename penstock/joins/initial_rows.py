"""The initial content of new points: the rows of many groups that belong to their semijoins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from penstock.joins.group import Group, KeyedRow
from penstock.joins.kernels.starting import Portions, starting_each
from penstock.joins.points import SpacePoints
from penstock.messages import Message, Position

ROWS_AT_ONCE = 65_536
"""Rows of groups that are processed together; bounds memory."""

Listed: TypeAlias = tuple[list[KeyedRow], list[int]]
"""The rows of many groups on one side, and the number of rows per group."""


def initial_semijoins(
    position: Position, groups: Iterable[Group], points: SpacePoints
) -> Iterator[Message]:
    """The rows of groups that belong to the semijoins of these points, addressed by name."""
    for base, partners in _portions(groups, points.space.side):
        yield from _starting(position, base, partners, points)


def _portions(groups: Iterable[Group], side: int) -> Iterator[tuple[Listed, Listed]]:
    base: Listed = ([], [])
    partners: Listed = ([], [])
    for group in groups:
        here, there = group.sides[side], group.sides[1 - side]
        if here and there:
            base[0].extend(here.items())
            base[1].append(len(here))
            partners[0].extend(there.items())
            partners[1].append(len(there))
            if len(base[0]) + len(partners[0]) >= ROWS_AT_ONCE:
                yield base, partners
                base, partners = ([], []), ([], [])
    if base[0]:
        yield base, partners


def _starting(
    position: Position, base: Listed, partners: Listed, points: SpacePoints
) -> Iterator[Message]:
    rows, _ = base
    filters = points.all_filters
    low, high = (np.stack([getattr(f, end) for f in filters]) for end in ("low", "high"))
    tops = np.array([ranges.codes.top for ranges in filters], np.int64)
    mine = (points.base_codes(rows), _begins(base[1]))
    begin, found = starting_each(
        (low, high), tops, _vectors(partners, points), points.base_table, mine
    )
    ids, is_sorted, space = points.ids, points.ids_are_sorted, points.space.id
    numbers = found.tolist()
    begins = begin.tolist()
    for row_number in np.flatnonzero(np.diff(begin)).tolist():
        key, row = rows[row_number]
        chosen = [ids[i] for i in numbers[begins[row_number] : begins[row_number + 1]]]
        recipients = tuple(chosen if is_sorted else sorted(chosen))
        yield Message(position, space, key, row=row, recipients=recipients)


def _vectors(partners: Listed, points: SpacePoints) -> Portions:
    """The codes of rows on the filter side; sorted within each group if there is one column."""
    rows, counts = partners
    codes, begins = points.filter_codes(rows), _begins(counts)
    if codes.shape[1] == 1:
        group = np.repeat(np.arange(len(counts)), counts)
        codes = codes[np.lexsort((codes[:, 0], group))]
    return codes, begins


def _begins(counts: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([0, *accumulate(counts)], np.int64)
