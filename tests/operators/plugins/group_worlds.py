"""Random groups of predicates with results, and what they mean by brute force."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from hypothesis import strategies as st

from penstock.operators import BIGINT, DOUBLE, VARCHAR, Argument, Output, decimal_type, operator
from penstock.operators.groups import GroupDefinition, Predicate
from penstock.operators.interface import Operator, Result
from penstock.operators.terms import (
    Arithmetic,
    ColumnTerm,
    Comparison,
    Constant,
    Leaf,
    Term,
    Variable,
    satisfies,
)

MONEY = decimal_type(9, 2)
SUBJECT = Argument("subject", VARCHAR)
OPERATORS: Mapping[str, Operator] = {
    one.name: one
    for one in (
        operator("test", [SUBJECT])(bool),
        operator("count", [SUBJECT], outputs=[Output("n", BIGINT)])(bool),
        operator("other", [SUBJECT, Argument("k", BIGINT)], outputs=[Output("n", BIGINT)])(bool),
        operator("pair", [SUBJECT], outputs=[Output("a", BIGINT), Output("b", BIGINT)])(bool),
        operator("price", [SUBJECT], outputs=[Output("p", MONEY), Output("n", BIGINT)])(bool),
        operator("weight", [SUBJECT], outputs=[Output("w", DOUBLE)])(bool),
    )
}
COLUMNS = {"subject": VARCHAR, "size": BIGINT, "name": VARCHAR}
ROW: dict[str, object] = {"subject": "s", "size": 2, "name": None}
INTEGERS, MONIES, DOUBLES = ("x", "y", "z"), ("m",), ("w",)
_NAMES = {BIGINT: INTEGERS, MONEY: MONIES, DOUBLE: DOUBLES}
_VALUES = {
    BIGINT: st.none() | st.integers(0, 2),
    MONEY: st.none() | st.integers(0, 3).map(lambda n: n * 50),
    DOUBLE: st.none() | st.sampled_from([0.0, 0.5, 1.0, -0.0, float("nan")]),
}


@dataclass(frozen=True)
class GroupWorld:
    group: GroupDefinition
    results: list[Result]


@st.composite
def predicates(draw: st.DrawFn) -> Predicate:
    chosen = draw(st.sampled_from(sorted(OPERATORS)))
    arguments: tuple[Leaf, ...] = (ColumnTerm("subject"),)
    if chosen == "other":
        second: list[Leaf] = [Constant(1), Constant(2), ColumnTerm("size")]
        arguments += (draw(st.sampled_from(second)),)
    outputs: list[Leaf] = []
    for output in OPERATORS[chosen].outputs:
        variable = st.sampled_from(_NAMES[output.type]).map(Variable)
        constant = Constant(output.type.show(output.type.store(1)))
        outputs.append(draw(variable | variable | st.just(constant)))
    return Predicate(chosen, arguments, tuple(outputs))


def results_of(predicate: Predicate) -> st.SearchStrategy[Result]:
    outputs = OPERATORS[predicate.operator].outputs
    if not outputs:
        return st.sampled_from([True, True, False, None])
    binding = st.tuples(*(_VALUES[output.type] for output in outputs))
    return st.none() | st.lists(binding, max_size=4).map(tuple)


def terms(names: list[str]) -> st.SearchStrategy[Term]:
    constants = st.sampled_from([0, 1, 2, 1.5, Decimal("0.5")]).map(Constant)
    leaves: st.SearchStrategy[Term] = constants | st.just(ColumnTerm("size"))
    if names:
        leaves = st.sampled_from(names).map(Variable) | leaves
    return st.recursive(
        leaves,
        lambda inner: st.builds(Arithmetic, st.sampled_from("+-*/"), inner, inner),
        max_leaves=4,
    )


@st.composite
def group_worlds(draw: st.DrawFn, max_predicates: int = 4) -> GroupWorld:
    chosen = draw(st.lists(predicates(), min_size=1, max_size=max_predicates))
    names = GroupDefinition(tuple(chosen)).variables()
    signs = st.sampled_from(["<", "<=", "=", "<>", ">", ">="])
    comparisons = st.builds(Comparison, signs, terms(names), terms(names))
    constraints = draw(st.lists(comparisons, max_size=3))
    results = [draw(results_of(one)) for one in chosen]
    return GroupWorld(GroupDefinition(tuple(chosen), tuple(constraints)), results)


def brute_force(world: GroupWorld) -> bool | None:
    """Every combination of bindings, each condition by itself; the best answer of all wins."""
    answers = [
        _answer(world, combination)
        for combination in itertools.product(*map(_rows, world.group.predicates, world.results))
    ]
    return True if True in answers else None if None in answers else False


Row = tuple[bool | None, tuple[object, ...]]


def _rows(predicate: Predicate, result: Result) -> list[Row]:
    outputs = OPERATORS[predicate.operator].outputs
    if isinstance(result, tuple):
        return [
            (
                True,
                tuple(
                    None if value is None else output.type.show(value)
                    for output, value in zip(outputs, row, strict=True)
                ),
            )
            for row in result
        ]
    return [] if result is False else [(result, (None,) * len(outputs))]


def _answer(world: GroupWorld, combination: tuple[Row, ...]) -> bool | None:
    conditions = [known for known, _ in combination]
    occurrences: dict[str, list[object]] = {}
    for predicate, (_, values) in zip(world.group.predicates, combination, strict=True):
        for term, value in zip(predicate.outputs, values, strict=True):
            if isinstance(term, Constant):
                conditions.append(_equal(value, term.value))
            else:
                assert isinstance(term, Variable)
                occurrences.setdefault(term.name, []).append(value)
    for values_of_one in occurrences.values():
        conditions += [_equal(a, b) for a, b in itertools.combinations(values_of_one, 2)]
    bound = {
        name: next((value for value in values if value is not None), None)
        for name, values in occurrences.items()
    }
    conditions += [satisfies(one, bound, ROW) for one in world.group.constraints]
    return False if False in conditions else None if None in conditions else True


def _equal(one: object, other: object) -> bool | None:
    if one is None or other is None:
        return None
    return one == other or (one != one and other != other)  # NaN equals itself
