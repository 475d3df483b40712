"""Conditions over predicates with AND, OR and NOT, for diagrams that are not unions of boxes.

A predicate is true or not true here; NOT is the plain complement. (SQL's NOT of an unknown is
unknown; the binder has pushed it into the predicates before boxes are made.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from penstock.matching.matchers.diagram.nodes import FALSE, TRUE, NodeTable, TooLargeError
from penstock.matching.matchers.diagram.predicates import PredicateIndex
from penstock.predicates.boxes import Box
from penstock.predicates.intervals import EVERYTHING, Interval
from penstock.predicates.normal_form import All, Atom, Condition, Some, branches_of
from penstock.predicates.unions import subtract


@dataclass(frozen=True, slots=True)
class Is:
    """The value of a column is in an interval."""

    column: int
    interval: Interval


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: Expression


Expression: TypeAlias = Is | And | Or | Not

MAX_STEPS = 30_000
"""Maximum steps of one AND or OR, about 0.1 s; diagrams can be exponentially large."""
MAX_NEW_NODES = 100_000


def diagram_of(expression: Expression, index: PredicateIndex, nodes: NodeTable) -> int:
    """The root of an expression; TooLargeError, with all nodes rolled back, if it is too large."""
    before = len(nodes)
    try:
        return _built(expression, index, nodes, before + MAX_NEW_NODES)
    except TooLargeError:
        nodes.forget_after(before)
        raise


def _built(expression: Expression, index: PredicateIndex, nodes: NodeTable, most: int) -> int:
    if isinstance(expression, Is):
        if expression.interval.is_empty or expression.interval == EVERYTHING:
            return FALSE if expression.interval.is_empty else TRUE
        variable = index.variable(expression.column, expression.interval)
        return nodes.node(variable, FALSE, TRUE)
    if isinstance(expression, Not):
        return nodes.negation(_built(expression.part, index, nodes, most))
    root = TRUE if isinstance(expression, And) else FALSE
    combine = nodes.both if isinstance(expression, And) else nodes.either
    for part in expression.parts:
        root = combine(root, _built(part, index, nodes, most), MAX_STEPS)
        if len(nodes) > most:
            raise TooLargeError
    return root


def boxes_of(expression: Expression) -> tuple[Box, ...]:
    """The same condition as a union of boxes; TooComplexError if there are too many."""
    return tuple(one for (one,) in branches_of(_condition(expression, True), 1))


def _condition(expression: Expression, wanted: bool) -> Condition:
    """The expression, or its complement, with NOT pushed into the predicates."""
    if isinstance(expression, Not):
        return _condition(expression.part, not wanted)
    if isinstance(expression, Is):
        inside = () if expression.interval.is_empty else (expression.interval,)
        return Atom((0, expression.column), inside if wanted else subtract(EVERYTHING, inside))
    parts = tuple(_condition(part, wanted) for part in expression.parts)
    return All(parts) if isinstance(expression, And) == wanted else Some(parts)
