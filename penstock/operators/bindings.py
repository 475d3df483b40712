"""Whether one joint substitution satisfies a group of predicates, given the operators' results.

The bindings of each predicate are a relation over its variables. The relations are joined,
constraints are applied as soon as their variables are bound, and variables that are no longer
needed are projected away. The group is true if a row is left.

NULL follows SQL: every combination of bindings satisfies the equalities of repeated variables and
the constraints, does not, or leaves it unknown because of a NULL. The group is true if one
combination satisfies all, unknown if none does but some are unknown, else false, as with SQL's ANY.
A predicate whose result is unknown counts as one unknown binding of NULLs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from penstock.catalog import Key, Outside, Stored, ValueType
from penstock.operators.failures import FailureKind, OperatorFailure
from penstock.operators.groups import GroupDefinition, Predicate
from penstock.operators.interface import Operator, Result
from penstock.operators.terms import Comparison, Constant, Variable, leaves_of, satisfies

MAX_COMBINATIONS = 100_000
"""Maximum per group and row, a tenth of a second of work. Bindings are few (the paper assumes so);
two predicates with a thousand each and no variable in common would exceed it."""

Value: TypeAlias = tuple[Key, Outside] | None
"""The value of a variable: its comparison key, and its outside form."""
Binding: TypeAlias = tuple[Value, ...]


class TooManyCombinationsError(Exception):
    """The join of the bindings is too large."""


@dataclass(slots=True, eq=False)
class Relation:
    """Bindings of some variables. `rows` maps each to whether it is certain, or unknown because of
    a NULL."""

    variables: tuple[str, ...]
    rows: dict[Binding, bool]

    def project(self, wanted: Iterable[str]) -> Relation:
        kept = [place for place, name in enumerate(self.variables) if name in wanted]
        projected = Relation(tuple(self.variables[place] for place in kept), {})
        for binding, certain in self.rows.items():
            projected.add(tuple(binding[place] for place in kept), certain)
        return projected

    def add(self, binding: Binding, certain: bool) -> None:
        self.rows[binding] = certain or self.rows.get(binding, False)


class GroupEvaluation:
    """A group of predicates, prepared for evaluation on many rows."""

    def __init__(self, group: GroupDefinition, operators: Mapping[str, Operator]) -> None:
        """`group` must have been checked (`check_group`) against the same operators."""
        self._group = group
        self._types = [
            tuple(output.type for output in operators[one.operator].outputs)
            for one in group.predicates
        ]
        self._needs = [_variables_of(one) for one in group.constraints]

    def evaluate(
        self, results: Sequence[Result], columns: Mapping[str, Outside]
    ) -> bool | OperatorFailure | None:
        """The value of the group, from one result per predicate and the row's columns (outside
        values)."""
        relations = [
            relation_of(predicate, types, result)
            for predicate, types, result in zip(
                self._group.predicates, self._types, results, strict=True
            )
        ]
        try:
            return self._join(relations, columns)
        except TooManyCombinationsError:
            names = ", ".join(dict.fromkeys(one.operator for one in self._group.predicates))
            reason = f"more than {MAX_COMBINATIONS:,} combinations of bindings"
            return OperatorFailure(names, "", FailureKind.JOIN, reason)

    def _join(self, relations: list[Relation], columns: Mapping[str, Outside]) -> bool | None:
        if not all(one.rows for one in relations):
            return False
        budget = _Budget(MAX_COMBINATIONS)
        constraints = list(zip(self._group.constraints, self._needs, strict=True))
        joined = Relation((), {(): True})
        while relations:
            following = _take_best(relations, joined)
            later = {name for one in relations for name in one.variables}
            later.update(name for _, needs in constraints for name in needs)
            joined = join(joined, following.project(later | {*joined.variables}), budget)
            bound = {*joined.variables}
            ready = [one for one, needs in constraints if needs <= bound]
            # A variable that is NULL so far may be bound by a predicate still to come.
            coming = {name for one in relations for name in one.variables}
            constraints = [
                (one, needs) for one, needs in constraints if not needs <= bound or needs & coming
            ]
            joined = _constrain(joined, ready, columns).project(
                {name for one in relations for name in one.variables}
                | {name for _, needs in constraints for name in needs}
            )
        if any(joined.rows.values()):
            return True
        return None if joined.rows else False


def relation_of(predicate: Predicate, types: Sequence[ValueType], result: Result) -> Relation:
    """The bindings of a predicate's variables, each variable once."""
    names = tuple(dict.fromkeys(one.name for one in predicate.outputs if type(one) is Variable))
    if not isinstance(result, tuple):
        nothing: Binding = (None,) * len(names)
        return Relation(names, {} if result is False else {nothing: result is True})
    relation = Relation(names, {})
    for stored in result:
        _add_binding(relation, predicate, types, stored)
    return relation


def _add_binding(
    relation: Relation, predicate: Predicate, types: Sequence[ValueType], stored: Sequence[Stored]
) -> None:
    found: dict[str, Value] = {}
    certain = True
    for term, type_, one in zip(predicate.outputs, types, stored, strict=True):
        value = None if one is None else (type_.join_key(one), type_.show(one))
        if not isinstance(term, Variable):
            assert isinstance(term, Constant)
            key = type_.join_key(type_.store(term.value))
            same = None if value is None else value[0] == key
        elif term.name in found:
            same = _are_equal(found[term.name], value)
            found[term.name] = found[term.name] or value
        else:
            found[term.name] = value
            continue
        if same is False:
            return
        certain = certain and same is True
    relation.add(tuple(found.values()), certain)


def _are_equal(one: Value, other: Value) -> bool | None:
    return None if one is None or other is None else one[0] == other[0]


@dataclass(slots=True)
class _Budget:
    left: int

    def spend(self, combinations: int) -> None:
        self.left -= combinations
        if self.left < 0:
            raise TooManyCombinationsError


def join(one: Relation, other: Relation, budget: _Budget) -> Relation:
    """All combinations that agree in the shared variables, or may agree: NULL is unknown."""
    shared = [name for name in other.variables if name in one.variables]
    ours = [one.variables.index(name) for name in shared]
    theirs = [other.variables.index(name) for name in shared]
    new = [place for place, name in enumerate(other.variables) if name not in one.variables]
    by_values: defaultdict[Binding, list[Binding]] = defaultdict(list)
    with_null: list[Binding] = []
    for binding in other.rows:
        values = tuple(binding[place] for place in theirs)
        (with_null if None in values else by_values[_keys(values)]).append(binding)
    joined = Relation(one.variables + tuple(other.variables[place] for place in new), {})
    for binding, certain in one.rows.items():
        values = tuple(binding[place] for place in ours)
        matching = other.rows if None in values else by_values.get(_keys(values), []) + with_null
        budget.spend(len(matching))
        for candidate in matching:
            agreed = _agree(binding, candidate, ours, theirs)
            if agreed is not None:
                combined, is_known = agreed
                combined += tuple(candidate[place] for place in new)
                joined.add(combined, certain and is_known and other.rows[candidate])
    return joined


def _keys(values: Binding) -> Binding:
    """Comparison keys: equal for equal values, whatever their types."""
    return tuple(None if value is None else (value[0], None) for value in values)


def _agree(
    binding: Binding, candidate: Binding, ours: list[int], theirs: list[int]
) -> tuple[Binding, bool] | None:
    """A binding completed with the candidate's values of the shared variables, and whether both had
    all of them; None if they differ."""
    values = list(binding)
    is_known = True
    for mine, place in zip(ours, theirs, strict=True):
        same = _are_equal(values[mine], candidate[place])
        if same is False:
            return None
        is_known = is_known and same is True
        values[mine] = values[mine] or candidate[place]
    return tuple(values), is_known


def _take_best(relations: list[Relation], joined: Relation) -> Relation:
    """Removes the relation to join next: one that shares variables, with the fewest bindings."""
    best = min(relations, key=lambda one: (not _shares(one, joined), len(one.rows)))
    relations.remove(best)
    return best


def _shares(one: Relation, other: Relation) -> bool:
    return not set(one.variables).isdisjoint(other.variables)


def _variables_of(constraint: Comparison) -> frozenset[str]:
    return frozenset(one.name for one in leaves_of(constraint) if type(one) is Variable)


def _constrain(
    joined: Relation, constraints: Sequence[Comparison], columns: Mapping[str, Outside]
) -> Relation:
    if not constraints:
        return joined
    kept = Relation(joined.variables, {})
    for binding, certain in joined.rows.items():
        bound = {
            name: None if value is None else value[1]
            for name, value in zip(joined.variables, binding, strict=True)
        }
        answers = [satisfies(one, bound, columns) for one in constraints]
        if False not in answers:
            kept.add(binding, certain and None not in answers)
    return kept
