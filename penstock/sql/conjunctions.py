"""Conditions that are nothing but columns compared with literals, all of which must hold.

Most subscriptions are of this form, and come by the thousand. Each comparison is one interval, so
their conjunction is one interval per column, and nothing has to be multiplied out or simplified.
What is empty, or excludes nothing, is left to the usual way, which has something to say about it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from sqlglot import exp

from penstock.catalog import DecimalType, DoubleType, IntegerType, StringType, ValueType
from penstock.predicates.boxes import Box
from penstock.predicates.intervals import (
    ABOVE_NULL,
    NOT_NULL,
    TOP,
    Cut,
    Interval,
    above,
    below,
    normalise,
)
from penstock.predicates.simplify import Place
from penstock.sql.literals import MAX_DIGITS, Constant
from penstock.sql.placing import place

Placing: TypeAlias = Callable[[str], tuple[Cut, Cut]]
"""The cuts below and above a literal, as it is written, among the values of a column."""

_ENDS: dict[type[exp.Expr], Callable[[Cut, Cut], Interval]] = {
    exp.EQ: Interval,
    exp.LT: lambda low, _: Interval(ABOVE_NULL, low),
    exp.LTE: lambda _, high: Interval(ABOVE_NULL, high),
    exp.GT: lambda _, high: Interval(high, TOP),
    exp.GTE: lambda low, _: Interval(low, TOP),
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column compared with the literal of some number in the statement."""

    place: Place
    value_type: ValueType
    kind: type[exp.Expr]
    literal: int
    sign: str = ""
    """A minus before the literal."""


class Conjunction:
    """Comparisons of which all must hold, over literals that are yet to come.

    Literals are plain: digits with at most one point between them (18 at most on either side), or a
    string in quotes without quotes in it.
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
    """A literal as it is written; one that is plain is never too long."""
    if literal.startswith("'"):
        return Constant("string", literal[1:-1])
    if "." in literal:
        return Constant("decimal", Decimal(literal))
    return Constant("integer", int(literal))


def _placing(value_type: ValueType) -> Placing:
    """Like `penstock.sql.placing.place`, without a look at what cannot be."""

    def usual(literal: str) -> tuple[Cut, Cut]:
        return place(literal_constant(literal), value_type)

    if isinstance(value_type, StringType):
        return lambda text: _on_string(text) if text.startswith("'") else usual(text)
    if isinstance(value_type, DoubleType):
        return lambda text: usual(text) if text.startswith("'") else _on_double(text, value_type)
    if isinstance(value_type, IntegerType | DecimalType):
        scale = value_type.scale if isinstance(value_type, DecimalType) else 0
        lowest, highest = value_type.key_range
        assert isinstance(lowest, int)
        assert isinstance(highest, int)

        def number(text: str) -> tuple[Cut, Cut]:
            whole, _, fraction = text.partition(".")
            if text.startswith("'") or len(fraction) > scale or len(whole) + scale > MAX_DIGITS:
                return usual(text)
            key = int(whole + fraction.ljust(scale, "0"))
            if key > highest:
                return TOP, TOP
            return (below(key), above(key)) if key >= lowest else (ABOVE_NULL, ABOVE_NULL)

        return number
    return usual


def _on_string(text: str) -> tuple[Cut, Cut]:
    return below(text[1:-1]), above(text[1:-1])


def _on_double(text: str, value_type: DoubleType) -> tuple[Cut, Cut]:
    key = value_type.key(float(text))
    return below(key), above(key)
