"""The content of all points of a space, as regions, for many groups at a time.

All rows of a group have the same region: the filter intervals that contain a partner's value. Two
neighbouring values share a box if no interval lies between them. That may take more boxes than a
skyline (`penstock.joins.skyline`), but only one array lookup per value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from penstock.joins.group import Group
from penstock.joins.initial_regions import newcomer_messages
from penstock.joins.kernels.starting import containing_any, selected_by_any
from penstock.joins.point_arrays import CodeArray, CodedRanges
from penstock.joins.points import SpacePoints
from penstock.messages import Message, Position, Reach, Reaches
from penstock.predicates.intervals import BOTTOM, TOP

SCANNED_POINTS = 4_096
"""Up to this many points, scanning all of them for each row in a kernel is cheaper than shadows."""
ROWS_AT_ONCE = 65_536
"""Rows of groups that are encoded together; bounds memory."""


def content_messages(
    position: Position, groups: Iterable[Group], points: SpacePoints
) -> Iterator[Message]:
    """The rows that belong to the semijoins of `points`, which are all points of their space."""
    both = (group for group in groups if group.sides[0] and group.sides[1])
    if points.has_envelopes or len(points) > SCANNED_POINTS:
        for group in both:
            yield from newcomer_messages(position, group, points, since=0)
        return
    for part in _parts(both):
        yield from _of_groups(position, part, points)


def _parts(groups: Iterable[Group]) -> Iterator[list[Group]]:
    part: list[Group] = []
    rows = 0
    for group in groups:
        part.append(group)
        rows += len(group.sides[0]) + len(group.sides[1])
        if rows >= ROWS_AT_ONCE:
            yield part
            part, rows = [], 0
    if part:
        yield part


def _of_groups(position: Position, groups: list[Group], points: SpacePoints) -> Iterator[Message]:
    side, filters, space = points.space.side, points.filters, points.space.id
    partners = [item for group in groups for item in group.sides[1 - side].items()]
    rows = [item for group in groups for item in group.sides[side].items()]
    values, value_begin = _distinct(
        filters.codes.all_values(points.filter_values(partners)),
        [len(group.sides[1 - side]) for group in groups],
    )
    is_joint = _is_joint(values, filters)
    codes, table = points.base_codes(rows), points.base_table
    begin = 0
    for number, group in enumerate(groups):
        low, high = value_begin[number], value_begin[number + 1]
        end = begin + len(group.sides[side])
        joined = containing_any(filters.low, filters.high, values[low:high], filters.codes.top)
        if len(joined):
            wanted = selected_by_any(*table, joined, codes[begin:end]).tolist()
            region = _region(values[low:high], is_joint[low : high - 1], filters) if wanted else ()
            for key, row in (rows[begin + i] for i in wanted):
                yield Message(position, space, key, row, region)
        begin = end


def _distinct(codes: CodeArray, sizes: Sequence[int]) -> tuple[CodeArray, list[int]]:
    """The distinct codes of each group, sorted, and where those of each group begin."""
    of_group = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((codes, of_group))
    codes, of_group = codes[order], of_group[order]
    is_new = np.ones(len(codes), np.bool_)
    is_new[1:] = (codes[1:] != codes[:-1]) | (of_group[1:] != of_group[:-1])
    begins = np.searchsorted(of_group[is_new], np.arange(len(sizes) + 1))
    return codes[is_new], begins.tolist()


def _is_joint(values: CodeArray, filters: CodedRanges) -> CodeArray:
    """Whether no interval lies between a value and the next."""
    # By code + 1: the least high end of all intervals that begin at the code or later.
    ends = np.full(filters.codes.top + 4, filters.codes.top + 1, np.int64)
    np.minimum.at(ends, filters.low + 1, filters.high)
    ends = np.minimum.accumulate(ends[::-1])[::-1]
    return np.asarray(ends[values[:-1] + 2] >= values[1:])


def _region(values: CodeArray, is_joint: CodeArray, filters: CodedRanges) -> Reaches:
    """The intervals that contain one of a group's values."""
    cuts = np.flatnonzero(~is_joint)
    firsts = values[np.concatenate(([0], cuts + 1))].tolist()
    lasts = values[np.concatenate((cuts, [len(values) - 1]))].tolist()
    codes = filters.codes
    return tuple(
        Reach(BOTTOM, codes.low_cut(last), codes.high_cut(first), TOP)
        for first, last in zip(firsts, lasts, strict=True)
    )
