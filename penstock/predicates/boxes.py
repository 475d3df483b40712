"""Boxes: one interval per attribute of one table, the normal form of a local condition.

A box is a tuple of (column position, interval) pairs, sorted by column; other columns are
unconstrained. A union of boxes stands for OR. Boxes are plain data: they are compared, hashed,
stored and sent without conversion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from penstock.catalog.derived import shown_column
from penstock.catalog.relations import Relation, Row
from penstock.predicates.intervals import EVERYTHING, Interval, describe
from penstock.predicates.simplify import Product, simplify

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
    return [
        describe(interval, shown_column(relation, c), relation.columns[c].type)
        for c, interval in one
    ]


def simplify_union(branches: Iterable[Sequence[Box]]) -> list[tuple[Box, ...]]:
    """The same union of branches (one box per table each) with fewer of them, sorted.

    Empty branches and branches inside another one are dropped, and branches that differ in one
    interval and touch there are merged.
    """
    given = [tuple(branch) for branch in branches]
    products = [_as_product(b) for b in given if not any(is_empty(one) for one in b)]
    tables = len(given[0]) if given else 0
    return [as_branch(product, tables) for product in simplify(products, split=True)]


def _as_product(branch: Sequence[Box]) -> Product:
    return tuple(
        ((table, column), (interval,))
        for table, one in enumerate(branch)
        for column, interval in one
        if interval != EVERYTHING
    )


def as_branch(product: Product, tables: int) -> tuple[Box, ...]:
    """A product of single intervals as one box per table."""
    intervals: list[dict[int, Interval]] = [{} for _ in range(tables)]
    for (table, column), (interval,) in product:
        intervals[table][column] = interval
    return tuple(map(box, intervals))
