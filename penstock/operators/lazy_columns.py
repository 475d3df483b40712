"""Derived columns computed by operators: the calls they need, and their values.

Such a column is boolean: whether a group of predicates is true (`penstock.operators.groups`). What
is evaluated for a row, at most once, are *calls*: predicates without their variables. So columns
that differ only in variables and constraints share the expensive part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from penstock.catalog import Outside, Relation, Row
from penstock.catalog.derived import Definition
from penstock.operators.bindings import GroupEvaluation
from penstock.operators.failures import OperatorFailure
from penstock.operators.groups import GroupDefinition, Predicate, read_group
from penstock.operators.interface import Operator, Result
from penstock.predicates.intervals import Interval


class Literal(NamedTuple):
    """A call that must be satisfied, or (under NOT) must not, or whose result must only be known
    (None)."""

    call: Predicate
    wanted: bool | None = True

    def holds(self, result: Result) -> bool:
        if result is None:
            return False
        return self.wanted is None or bool(result) is self.wanted


@dataclass(frozen=True)
class LazyColumn:
    group: GroupDefinition

    @cached_property
    def calls(self) -> tuple[Predicate, ...]:
        return tuple(one.call for one in self.group.predicates)

    def literals(self, interval: Interval) -> Iterator[Literal]:
        """Necessary conditions for the value of the column to lie in an interval."""
        assert not interval.contains(None)  # the binder never asks for NULL
        may_be_true, may_be_false = interval.contains(1), interval.contains(0)
        wanted = None if may_be_true and may_be_false else may_be_true
        for one in self.calls:
            yield Literal(one, wanted)

    def value(
        self,
        results: Mapping[Predicate, Result],
        operators: Mapping[str, Operator],
        table: Relation,
        row: Row,
    ) -> bool | OperatorFailure | None:
        """Whether the group is true, given the known results of its calls; None if unknown."""
        found = [results.get(one) for one in self.calls]
        if any(one is not None and not one for one in found):
            return False
        if any(one is None for one in found):
            return None
        if not self.group.variables() and len(found) == 1 and found[0] is True:
            return True
        return self._evaluation(operators).evaluate(found, self._columns(table, row))

    def _evaluation(self, operators: Mapping[str, Operator]) -> GroupEvaluation:
        return GroupEvaluation(self.group, operators)

    def _columns(self, table: Relation, row: Row) -> dict[str, Outside]:
        shown = {}
        for name in self.group.columns():
            position = table.positions[name.lower()]
            value = row[position]
            shown[name] = None if value is None else table.columns[position].type.show(value)
        return shown


@lru_cache(maxsize=100_000)
def lazy_column(definition: Definition) -> LazyColumn:
    """The column that a definition describes."""
    return LazyColumn(read_group(definition.plan))
