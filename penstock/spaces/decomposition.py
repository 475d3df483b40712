"""How a query over several tables is split into semijoins: a choice for each branch and node.

Each node of a query is the base of one select-semijoin (Chandramouli and Yang, 2008, section 4):
its rows are filtered by one neighbour in the join graph, and some or all of that neighbour's
conditions bound the filter. Any choice is correct: a neighbour and some of its conditions never
exclude a row that the whole query needs. Choices differ in cost only. So a decomposition is *data*:
chosen once, stored with the subscription, and read by all processes that must agree on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, islice
from typing import NamedTuple, TypeAlias

from penstock.catalog.derived import ExtendedRelation
from penstock.predicates.boxes import Box
from penstock.predicates.intervals import EVERYTHING, Interval
from penstock.query import Query

MAX_FILTER_COLUMNS = 4
"""A region has two dimensions per filter column; with more, regions grow for little gain."""


class Choice(NamedTuple):
    """The neighbour that filters a node, and the columns of its box that do, in ascending order."""

    neighbour: int
    columns: tuple[int, ...]


Decomposition: TypeAlias = tuple[tuple[Choice, ...], ...]
"""By branch and node; one row may stand for all branches. A query over one table has none: `()`."""


class Replan(NamedTuple):
    """A subscription has another decomposition from this record of the log on."""

    offset: int
    subscription: int
    decomposition: Decomposition


def plain_rule(query: Query) -> Decomposition:
    """The choice without statistics, and the default of stored subscriptions: the neighbour and the
    one column that are expected to exclude most rows. It must never change."""
    if len(query.nodes) == 1:
        return ()
    return tuple(
        tuple(_plain_choice(query, branch, node) for node in range(len(query.nodes)))
        for branch in query.branches
    )


def decomposition_of(query: Query, chosen: Decomposition | None) -> Decomposition:
    """The chosen decomposition, branch by branch, if it fits the query; else the plain rule's."""
    if chosen is not None and fits(query, chosen):
        return chosen * len(query.branches) if len(chosen) == 1 else chosen
    return plain_rule(query)


def fits(query: Query, chosen: Decomposition) -> bool:
    """Whether a decomposition names neighbours and conditions that the query has."""
    if len(query.nodes) == 1:
        return chosen == ()
    rows = chosen * len(query.branches) if len(chosen) == 1 else chosen
    return len(rows) == len(query.branches) and all(
        len(choices) == len(query.nodes)
        and all(_is_possible(query, branch, node, one) for node, one in enumerate(choices))
        for branch, choices in zip(query.branches, rows, strict=True)
    )


def _is_possible(query: Query, branch: tuple[Box, ...], node: int, choice: Choice) -> bool:
    if choice.neighbour not in neighbours(query, node):
        return False
    constrained = [column for column, _ in filter_box(query, branch, choice.neighbour)]
    return list(choice.columns) == [c for c in constrained if c in choice.columns]


def filter_box(query: Query, branch: tuple[Box, ...], node: int) -> Box:
    """The conditions on a node that may filter its neighbours: those on columns that every row has.
    Operator columns may be absent."""
    relation = query.nodes[node].relation
    if not isinstance(relation, ExtendedRelation) or not relation.lazy_columns:
        return branch[node]
    return tuple((c, interval) for c, interval in branch[node] if c not in relation.lazy_columns)


def neighbours(query: Query, node: int) -> list[int]:
    """The nodes that a node is joined with, in the order of the query's joins."""
    return [
        join.right if node == join.left else join.left
        for join in query.joins
        if node in (join.left, join.right)
    ]


def candidates(query: Query, branch: int, node: int) -> Iterator[Choice]:
    """Every choice worth considering for a node: each neighbour, by each of its conditions alone,
    by any two, and by as many as there are (up to a limit)."""
    for other in neighbours(query, node):
        columns = [column for column, _ in filter_box(query, query.branches[branch], other)]
        widest = min(len(columns), MAX_FILTER_COLUMNS)
        if not columns:
            yield Choice(other, ())
        for width in sorted({1, 2, widest} & set(range(1, widest + 1))):
            for some in combinations(columns, width):
                yield Choice(other, some)


def has_choice(query: Query) -> bool:
    """Whether there is more than one decomposition."""
    return len(query.nodes) > 1 and any(
        len(list(islice(candidates(query, branch, node), 2))) > 1
        for branch in range(len(query.branches))
        for node in range(len(query.nodes))
    )


def compact(chosen: Decomposition) -> Decomposition:
    """The same decomposition with one row if all branches are equal."""
    return chosen[:1] if chosen and all(row == chosen[0] for row in chosen) else chosen


def plain_decomposition(chosen: Decomposition) -> list[list[list[int]]]:
    """As plain lists, for storing."""
    return [[[one.neighbour, *one.columns] for one in row] for row in compact(chosen)]


def decomposition_from_plain(plain: Sequence[Sequence[Sequence[int]]]) -> Decomposition:
    """The inverse of `plain_decomposition`; ValueError if a choice is empty."""
    if not all(one for row in plain for one in row):
        raise ValueError("a choice without a neighbour")
    return tuple(tuple(Choice(one[0], tuple(one[1:])) for one in row) for row in plain)


def _plain_choice(query: Query, branch: tuple[Box, ...], node: int) -> Choice:
    others = neighbours(query, node)
    other = others[0]
    if len(others) > 1:
        other = max(others, key=lambda one: _promise(tightest(filter_box(query, branch, one))[1]))
    column, _ = tightest(filter_box(query, branch, other))
    return Choice(other, () if column is None else (column,))


def tightest(box: Box) -> tuple[int | None, Interval]:
    """The column of a box that is expected to exclude most rows, and its interval."""
    if not box:
        return None, EVERYTHING
    if len(box) == 1:
        return box[0]
    return max(box, key=lambda pair: (_promise(pair[1]), -pair[0]))


def _promise(interval: Interval) -> int:
    """A heuristic without statistics: equality beats a range, a range beats a half-open one."""
    if interval == EVERYTHING:
        return 0
    low, high = interval.low, interval.high
    if len(low) == 1 or len(high) == 1:
        return 1
    is_point = low[1] == high[1] or (isinstance(low[1], int) and low[1] + 1 == high[1])
    return 3 if is_point else 2
