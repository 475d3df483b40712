"""One index of all distinct predicates, each of which is one Boolean variable (Li et al., 2005).

Predicates are found by type, attribute, operator and value. A predicate that many subscriptions
share is stored once and evaluated once per event. Predicates of one attribute depend on each other:
`x > 5` implies `x > 3`. `dependencies` gives these implications in minimal form: what follows from
others by transitivity is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.catalog import Relation
from penstock.predicates.intervals import (
    ABOVE_NULL,
    BOTTOM,
    IS_NULL,
    NOT_NULL,
    TOP,
    Interval,
    describe,
    normalise,
)


@dataclass(frozen=True, slots=True)
class Predicate:
    """`column operator value`, and the interval of values for which it is true."""

    type: str
    column: int
    operator: str
    interval: Interval

    @classmethod
    def of(cls, relation: Relation, column: int, interval: Interval) -> Predicate:
        """In one spelling: equal sets of values are equal predicates."""
        value_type = relation.columns[column].type
        interval = normalise(interval, value_type)
        return cls(value_type.kind, column, operator_of(interval), interval)

    def describe(self, relation: Relation) -> str:
        column = relation.columns[self.column]
        return describe(self.interval, column.name, column.type)


def operator_of(interval: Interval) -> str:
    """The SQL operator that gives such an interval."""
    low, high = interval.low, interval.high
    if interval == IS_NULL:
        return "is null"
    if interval == NOT_NULL:
        return "is not null"
    if low == BOTTOM:
        return "is null or <"
    if low == ABOVE_NULL:
        return "<=" if high[-1] == 1 else "<"
    if high == TOP:
        return ">" if low[-1] == 1 else ">="
    return "=" if low[1:2] == high[1:2] else "between"


class PredicateIndex:
    """Predicates and their variables; a variable is the position at which its predicate came."""

    def __init__(self, relation: Relation) -> None:
        self.relation = relation
        self.predicates: list[Predicate] = []
        self._known: dict[tuple[int, Interval], int] = {}
        self._variables: dict[str, dict[int, dict[str, dict[Interval, int]]]] = {}

    def __len__(self) -> int:
        return len(self.predicates)

    def variable(self, column: int, interval: Interval) -> int:
        """The variable of a predicate, which is new if the predicate is."""
        known = self._known.get((column, interval))
        if known is not None:
            return known
        predicate = Predicate.of(self.relation, column, interval)
        of_type = self._variables.setdefault(predicate.type, {})
        by_value = of_type.setdefault(column, {}).setdefault(predicate.operator, {})
        variable = by_value.setdefault(predicate.interval, len(self.predicates))
        if variable == len(self.predicates):
            self.predicates.append(predicate)
            self._known[column, predicate.interval] = variable
        return variable

    def find(self, column: int, interval: Interval) -> int | None:
        predicate = Predicate.of(self.relation, column, interval)
        by_operator = self._variables.get(predicate.type, {}).get(column, {})
        return by_operator.get(predicate.operator, {}).get(predicate.interval)

    def of_column(self, column: int) -> list[int]:
        """The variables of one attribute."""
        by_operator = self._variables.get(self.relation.columns[column].type.kind, {})
        return [v for found in by_operator.get(column, {}).values() for v in found.values()]

    def dependencies(self, column: int) -> list[tuple[int, int]]:
        """Pairs (a, b) where the predicate of a implies that of b, and nothing lies between."""
        variables = self.of_column(column)
        pairs = direct_implications([self.predicates[v].interval for v in variables])
        return sorted((variables[a], variables[b]) for a, b in pairs)

    def keeping(self, variables: Iterable[int]) -> tuple[PredicateIndex, dict[int, int]]:
        """An index of some of the variables in the same order, and their new names."""
        kept = PredicateIndex(self.relation)
        names = {
            old: kept.variable(self.predicates[old].column, self.predicates[old].interval)
            for old in sorted(variables)
        }
        return kept, names


def direct_implications(intervals: Sequence[Interval]) -> list[tuple[int, int]]:
    """Pairs (inner, outer) of distinct intervals with no third one between them.

    Outer intervals begin no later. Walking back from the inner one by beginning, an outer interval
    is direct if it ends before all outer ones met on the way: otherwise one of those lies between.
    """
    order = sorted(range(len(intervals)), key=lambda i: (intervals[i].low, intervals[i].high))
    pairs: list[tuple[int, int]] = []
    for place, inner in enumerate(order):
        low, high = intervals[inner].low, intervals[inner].high
        # Among those with the same beginning, the next one is the narrowest that is wider.
        nearest = None
        following = place + 1
        if following < len(order) and intervals[order[following]].low == low:
            pairs.append((inner, order[following]))
            nearest = intervals[order[following]].high
        for outer in _by_beginning_backwards(order, intervals, place):
            end = intervals[outer].high
            if end >= high and (nearest is None or end < nearest):
                pairs.append((inner, outer))
                nearest = end
                if end == high:
                    break
    return pairs


def _by_beginning_backwards(
    order: Sequence[int], intervals: Sequence[Interval], place: int
) -> Iterable[int]:
    """The intervals that begin before the one at `place`: latest first, then narrowest first."""
    own = intervals[order[place]].low
    stop = place
    while stop > 0:
        start = stop - 1
        low = intervals[order[start]].low
        while start > 0 and intervals[order[start - 1]].low == low:
            start -= 1
        if low != own:
            yield from order[start:stop]
        stop = start
