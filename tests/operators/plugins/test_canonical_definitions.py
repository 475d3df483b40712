"""Groups that mean the same have the same definition, and no others."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.operators import OperatorFailure
from penstock.operators.bindings import GroupEvaluation
from penstock.operators.canonical import canonical_group, canonical_predicate
from penstock.operators.groups import (
    GroupDefinition,
    Predicate,
)
from penstock.operators.terms import (
    Arithmetic,
    Comparison,
    Constant,
    Term,
    Variable,
)
from tests.examples import examples
from tests.operators.plugins.group_worlds import (
    OPERATORS,
    ROW,
    GroupWorld,
    group_worlds,
)
from tests.operators.plugins.test_bindings import X, Y, Z, count, pair

# Canonical definitions.


def rewritten(world: GroupWorld, seed: int) -> GroupWorld:
    """The same group in another order, with other names, and comparisons the other way round."""
    chance = random.Random(seed)
    names = world.group.variables()
    renamed = dict(zip(names, chance.sample([f"n{i}" for i in range(9)], len(names)), strict=True))

    def term(one: Term) -> Term:
        if isinstance(one, Variable):
            return Variable(renamed[one.name])
        if not isinstance(one, Arithmetic):
            return one
        left, right = term(one.left), term(one.right)
        turned = one.sign in "+*" and chance.random() < 0.5
        return Arithmetic(one.sign, right, left) if turned else Arithmetic(one.sign, left, right)

    def comparison(one: Comparison) -> Comparison:
        left, right = term(one.left), term(one.right)
        if chance.random() < 0.5:
            return Comparison(one.sign, left, right)
        mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
        return Comparison(mirrored.get(one.sign, one.sign), right, left)

    order = chance.sample(range(len(world.results)), len(world.results))
    predicates = [
        Predicate(
            one.operator.upper(),
            one.arguments,
            tuple(
                Variable(renamed[out.name]) if isinstance(out, Variable) else out
                for out in one.outputs
            ),
        )
        for one in world.group.predicates
    ]
    constraints = [comparison(one) for one in world.group.constraints]
    chance.shuffle(constraints)
    return GroupWorld(
        GroupDefinition(tuple(predicates[i] for i in order), tuple(constraints)),
        [world.results[i] for i in order],
    )


@settings(max_examples=examples(150))
@given(group_worlds(max_predicates=5), st.integers())
def test_equal_groups_have_equal_definitions(world: GroupWorld, seed: int) -> None:
    canonical = canonical_group(world.group)
    assert canonical_group(rewritten(world, seed).group) == canonical
    assert canonical_group(canonical) == canonical


@settings(max_examples=examples(150))
@given(group_worlds())
def test_equal_definitions_are_of_equal_groups(world: GroupWorld) -> None:
    """Evaluating the canonical definition gives what the group gives."""
    results = {
        (one.operator, one.arguments, len(one.outputs)): result
        for one, result in zip(world.group.predicates, world.results, strict=True)
    }

    def under(group: GroupDefinition) -> bool | OperatorFailure | None:
        ordered = [
            results[one.operator, one.arguments, len(one.outputs)] for one in group.predicates
        ]
        return GroupEvaluation(group, OPERATORS).evaluate(ordered, ROW)

    assert under(canonical_group(world.group)) is under(world.group)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ([pair(X, Y)], [pair(Y, X)], True),
        ([pair(X, Y)], [pair(X, X)], False),
        ([count(X), pair(X, Y)], [pair(Z, X), count(Z)], True),
        ([count(X), pair(X, Y)], [pair(X, Z), count(Z)], False),
        ([count(X), count(X)], [count(Y)], True),
        ([pair(X, Y), pair(Y, Z), pair(Z, X)], [pair(Y, X), pair(Z, Y), pair(X, Z)], True),
        ([pair(X, Y), pair(Y, Z), pair(Z, X)], [pair(X, Y), pair(Y, Z), pair(X, Z)], False),
        ([count(Constant(1))], [count(Constant(2))], False),
    ],
)
def test_what_unifies(one: list[Predicate], other: list[Predicate], same: bool) -> None:
    first, second = (canonical_group(GroupDefinition(tuple(some))) for some in (one, other))
    assert (first == second) is same
    assert (first.text() == second.text()) is same


def named(numbers: Sequence[int], *pairs: tuple[int, int]) -> GroupDefinition:
    """Pairs of variables, under names that a permutation gives them."""
    return GroupDefinition(
        tuple(pair(*(Variable(f"x{numbers[place]}") for place in both)) for both in pairs)
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "pairs",
    [
        [(n, n + 8) for n in range(8)],  # eight alike, each pair by itself
        [(n, (n + 1) % 16) for n in range(16)],  # a circle
        [(0, n) for n in range(1, 16)],  # a star
        [(a, b) for a in range(5) for b in range(5) if a != b],  # each with each
        [(n, (n + 1) % 5) for n in range(5)] + [(n + 5, 5 + (n + 2) % 5) for n in range(5)],
    ],
)
def test_symmetric_groups(pairs: list[tuple[int, int]]) -> None:
    count_of_variables = 1 + max(max(both) for both in pairs)
    order = list(range(count_of_variables))
    expected = canonical_group(named(order, *pairs))
    for seed in range(3):
        chance = random.Random(seed)
        chance.shuffle(order)
        chance.shuffle(pairs)
        assert canonical_group(named(order, *pairs)) == expected


def test_predicates_by_themselves() -> None:
    assert canonical_predicate(pair(Y, X)) == canonical_predicate(pair(X, Z))
    assert canonical_predicate(pair(Y, X)) != canonical_predicate(pair(X, X))
    assert pair(Y, X).call == pair(X, X).call
