"""One index of all distinct predicates, each of which is one Boolean variable (Li et al., 2005).

Predicates are found by type, attribute, operator and value. A predicate that many subscriptions
share is stored once and evaluated once per event. Predicates of one attribute depend on each other:
`x > 5` implies `x > 3`; `penstock.routing.diagrams` keeps these implications for covering.
"""

from __future__ import annotations

from collections.abc import Iterable
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
        """In canonical form: equal sets of values give equal predicates."""
        value_type = relation.columns[column].type
        interval = normalise(interval, value_type)
        return cls(value_type.kind, column, operator_of(interval), interval)

    def describe(self, relation: Relation) -> str:
        column = relation.columns[self.column]
        return describe(self.interval, column.name, column.type)


def operator_of(interval: Interval) -> str:
    """The SQL operator that yields such an interval."""
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
    """Predicates and their variables; variables are numbered in order of insertion."""

    def __init__(self, relation: Relation) -> None:
        self.relation = relation
        self.predicates: list[Predicate] = []
        self._known: dict[tuple[int, Interval], int] = {}
        self._variables: dict[str, dict[int, dict[str, dict[Interval, int]]]] = {}

    def __len__(self) -> int:
        return len(self.predicates)

    def variable(self, column: int, interval: Interval) -> int:
        """The variable of a predicate; a new predicate gets a new one."""
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

    def keeping(self, variables: Iterable[int]) -> tuple[PredicateIndex, dict[int, int]]:
        """An index of some of the variables in the same order, and their new names."""
        kept = PredicateIndex(self.relation)
        names = {
            old: kept.variable(self.predicates[old].column, self.predicates[old].interval)
            for old in sorted(variables)
        }
        return kept, names
