"""Fast path for conditions that only compare columns with literals, combined by AND.

Most subscriptions are of this form, and come by the thousand. Each comparison is one interval, so
their conjunction is one interval per column, and nothing has to be expanded or simplified. Empty
conjunctions and conditions that exclude nothing use the general path, which gives warnings about
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from penstock.catalog import ValueType
from penstock.predicates.boxes import Box
from penstock.predicates.intervals import (
    ABOVE_NULL,
    NOT_NULL,
    TOP,
    Cut,
    Interval,
    normalise,
)
from penstock.predicates.simplify import Place
from penstock.sql.constants import Constant
from penstock.sql.literal_rules import Placing, place, rules_of

_ENDS: dict[type[exp.Expr], Callable[[Cut, Cut], Interval]] = {
    exp.EQ: Interval,
    exp.LT: lambda low, _: Interval(ABOVE_NULL, low),
    exp.LTE: lambda _, high: Interval(ABOVE_NULL, high),
    exp.GT: lambda _, high: Interval(high, TOP),
    exp.GTE: lambda low, _: Interval(low, TOP),
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column compared with the n-th literal of the statement."""

    place: Place
    value_type: ValueType
    kind: type[exp.Expr]
    literal: int
    sign: str = ""
    """A minus before the literal."""


class Conjunction:
    """ANDed comparisons with literals that are given later.

    Literals are plain: digits with at most one point between them (18 at most on either side), or a
    quoted string without quotes in it.
    """

    def __init__(self, comparisons: Sequence[Comparison], tables: int) -> None:
        self._tests = [
            (i, one.sign, one.literal, _placing(one.value_type), _ENDS[one.kind], one.value_type)
            for i, one in _by_place(comparisons)
        ]
        self._places = sorted({one.place for one in comparisons})
        self._tables = tables

    def branches(self, literals: Sequence[str]) -> tuple[tuple[Box, ...], ...] | None:
        """The only branch; None if there may be none, or if a condition excludes no value.

        SqlError if a literal does not compare.
        """
        limits: list[Interval] = [NOT_NULL] * len(self._places)
        for i, sign, number, placing, ends, value_type in self._tests:
            interval = normalise(ends(*placing(sign + literals[number])), value_type)
            low, high = max(limits[i].low, interval.low), min(limits[i].high, interval.high)
            if low >= high:
                return None
            limits[i] = Interval(low, high)
        boxes: list[list[tuple[int, Interval]]] = [[] for _ in range(self._tables)]
        for (table, column), limit in zip(self._places, limits, strict=True):
            if limit == NOT_NULL:
                return None
            boxes[table].append((column, limit))
        return (tuple(map(tuple, boxes)),)


def _by_place(comparisons: Sequence[Comparison]) -> list[tuple[int, Comparison]]:
    places = sorted({one.place for one in comparisons})
    return [(places.index(one.place), one) for one in comparisons]


def literal_constant(literal: str) -> Constant:
    """A literal as written; a plain one is never too long."""
    if literal.startswith("'"):
        return Constant("string", literal[1:-1])
    if "." in literal:
        return Constant("decimal", Decimal(literal))
    return Constant("integer", int(literal))


def _placing(value_type: ValueType) -> Placing:
    """`penstock.sql.literal_rules.place` for plain literals."""

    def usual(literal: str) -> tuple[Cut, Cut]:
        return place(literal_constant(literal), value_type)

    plain_placing = rules_of(value_type).plain_placing
    return usual if plain_placing is None else plain_placing(usual, value_type)
