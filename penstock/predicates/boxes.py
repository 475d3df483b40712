"""Boxes: one interval per attribute of one table, the normal form of a local condition.

A box is a tuple of (column position, interval) pairs, sorted by column; columns that are not
named are unconstrained. A union of boxes stands for OR. Boxes are plain data: they are compared,
hashed, stored and sent as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from penstock.catalog.relations import Relation, Row
from penstock.predicates.intervals import EVERYTHING, Interval, describe

Box: TypeAlias = tuple[tuple[int, Interval], ...]

ANY_ROW: Box = ()


def box(intervals: Mapping[int, Interval]) -> Box:
    return tuple(sorted((c, i) for c, i in intervals.items() if i != EVERYTHING))


def is_empty(one: Box) -> bool:
    return any(interval.is_empty for _, interval in one)


def interval_of(one: Box, column: int) -> Interval:
    return next((interval for c, interval in one if c == column), EVERYTHING)


def intersect(one: Box, other: Box) -> Box:
    intervals = dict(one)
    for column, interval in other:
        intervals[column] = interval.intersect(intervals.get(column, EVERYTHING))
    return box(intervals)


def covers(one: Box, other: Box) -> bool:
    """Whether every row of `other` is in `one`."""
    return all(interval.covers(interval_of(other, column)) for column, interval in one)


def contains(one: Box, relation: Relation, row: Row) -> bool:
    """Whether a stored row satisfies every interval."""
    for column, interval in one:
        value = row[column]
        key = None if value is None else relation.columns[column].type.key(value)
        if not interval.contains(key):
            return False
    return True


def describe_box(one: Box, relation: Relation) -> list[str]:
    """One readable condition per constrained column."""
    columns = relation.columns
    return [describe(interval, columns[c].name, columns[c].type) for c, interval in one]


def simplify_union(branches: Iterable[Sequence[Box]]) -> list[tuple[Box, ...]]:
    """The same union of branches (one box per table each) with fewer of them.

    Empty branches go, branches inside another one go, and two that differ in one interval and
    touch there become one. Repeated until nothing changes; the number of branches is bounded by
    the caller, so quadratic passes are fine.
    """
    kept = [tuple(b) for b in branches if not any(is_empty(one) for one in b)]
    while True:
        kept = _without_covered(kept)
        merged = _merge_one_pair(kept)
        if merged is None:
            return kept
        kept = merged


def _without_covered(branches: list[tuple[Box, ...]]) -> list[tuple[Box, ...]]:
    kept: list[tuple[Box, ...]] = []
    for branch in dict.fromkeys(branches):
        if any(_branch_covers(other, branch) for other in kept):
            continue
        kept = [other for other in kept if not _branch_covers(branch, other)]
        kept.append(branch)
    return kept


def _branch_covers(one: Sequence[Box], other: Sequence[Box]) -> bool:
    return all(covers(a, b) for a, b in zip(one, other, strict=True))


def _merge_one_pair(branches: list[tuple[Box, ...]]) -> list[tuple[Box, ...]] | None:
    for i, one in enumerate(branches):
        for j in range(i + 1, len(branches)):
            merged = _merge(one, branches[j])
            if merged is not None:
                return [*branches[:i], merged, *branches[i + 1 : j], *branches[j + 1 :]]
    return None


def _merge(one: Sequence[Box], other: Sequence[Box]) -> tuple[Box, ...] | None:
    """Both as one branch, if they differ in exactly one interval and touch in it."""
    tables = [t for t, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]
    if len(tables) != 1:
        return None
    a, b = dict(one[tables[0]]), dict(other[tables[0]])
    columns = [c for c in a.keys() | b.keys() if a.get(c, EVERYTHING) != b.get(c, EVERYTHING)]
    if len(columns) != 1:
        return None
    column = columns[0]
    first, second = a.get(column, EVERYTHING), b.get(column, EVERYTHING)
    if not first.touches(second):
        return None
    a[column] = first.hull(second)
    return (*one[: tables[0]], box(a), *one[tables[0] + 1 :])
