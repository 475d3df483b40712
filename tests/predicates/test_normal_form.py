"""AND over OR becomes OR over AND: the same rows, within limits."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog import Column, IntegerType, Relation
from penstock.predicates import boxes
from penstock.predicates.budget import MAX_WORK, Budget, TooComplexError
from penstock.predicates.intervals import ABOVE_NULL, NOT_NULL, TOP, Interval, below, point
from penstock.predicates.normal_form import (
    FALSE,
    MAX_BRANCHES,
    TRUE,
    All,
    Atom,
    Condition,
    Findings,
    Some,
    branches_of,
)
from penstock.predicates.unions import ANY_BUT_NULL, Union, subtract, union, union_covers
from tests.examples import examples
from tests.predicates.strategies import small_intervals

RELATION = Relation("t", tuple(Column(name, IntegerType()) for name in "xy"), ())
VALUES = [None, 0, 1, 3, 4, 6]
ROWS = list(itertools.product(VALUES, repeat=3))

places = st.sampled_from([(0, 0), (0, 1), (1, 0)])
atoms = st.builds(Atom, places, st.lists(small_intervals, max_size=2).map(union))
conditions: st.SearchStrategy[Condition] = st.recursive(
    st.one_of(atoms, st.sampled_from([TRUE, FALSE])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(lambda parts: All(tuple(parts))),
        st.lists(inner, max_size=4).map(lambda parts: Some(tuple(parts))),
    ),
    max_leaves=10,
)


def true_of(condition: Condition, row: tuple[int | None, ...]) -> bool:
    if isinstance(condition, Atom):
        key = row[[(0, 0), (0, 1), (1, 0)].index(condition.place)]
        return any(interval.contains(key) for interval in condition.values)
    results = [true_of(part, row) for part in condition.parts]
    return all(results) if isinstance(condition, All) else any(results)


@settings(max_examples=examples(150))
@given(conditions, st.sets(places))
def test_branches_mean_the_condition(condition: Condition, never: set[tuple[int, int]]) -> None:
    branches = branches_of(condition, 2, frozenset(never))
    forbidden = [i for i, place in enumerate([(0, 0), (0, 1), (1, 0)]) if place in never]
    for row in ROWS:
        if any(row[i] is None for i in forbidden):
            continue
        first, second = row[:2], (row[2], None)
        found = any(
            boxes.contains(one, RELATION, first) and boxes.contains(other, RELATION, second)
            for one, other in branches
        )
        assert found == true_of(condition, row)


def equal(column: int, *values: int) -> Atom:
    return Atom((0, column), union(map(point, values)))


def test_findings() -> None:
    findings = Findings()
    low, high = Interval(ABOVE_NULL, below(5)), Interval(below(5), TOP)
    tautology = Some((Atom((0, 0), (low,)), Atom((0, 0), (high,))))
    contradiction = All((equal(1, 1), equal(1, 2)))
    assert branches_of(All((tautology, contradiction)), 1, findings=findings) == ()
    assert findings.tautologies == [((0, 0), ANY_BUT_NULL)]
    assert findings.contradictions == [(0, 1)]


@pytest.mark.slow
def test_a_blow_up_is_noticed_while_multiplying() -> None:
    pairs = [Some((equal(2 * i, 1), equal(2 * i + 1, 1))) for i in range(40)]
    with pytest.raises(TooComplexError) as caught:
        branches_of(All(tuple(pairs)), 1)
    assert caught.value.branches > MAX_BRANCHES
    assert len(branches_of(All(tuple(pairs[:10])), 1)) == 1_024


def test_lists_do_not_multiply_before_they_must() -> None:
    """Multiplied out first, this would be a million steps; only the same column matters."""
    members = equal(0, *range(0, 2_000, 2))
    condition = All((Some((members, equal(1, 1))), Some((members, equal(2, 1)))))
    assert len(branches_of(condition, 1)) == 1_001


@pytest.mark.slow
def test_long_products_are_refused() -> None:
    def alternative(start: int) -> All:
        return All(tuple(equal(start + i, 1) for i in range(40)))

    wide = [Some((alternative(100 * i), alternative(100 * i + 50))) for i in range(10)]
    with pytest.raises(TooComplexError):
        branches_of(All(tuple(wide)), 1)
    lists = All(tuple(equal(i, *range(0, 100, 2)) for i in range(3)))
    with pytest.raises(TooComplexError) as caught:
        branches_of(lists, 1)
    assert caught.value.size > 100_000


def unequal(column: int, value: int) -> Atom:
    return Atom((0, column), subtract(NOT_NULL, union([point(value)])))


def less(column: int, value: int) -> Atom:
    return Atom((0, column), (Interval(ABOVE_NULL, below(value)),))


def below_or_above(value: int) -> Some:
    low, high = Interval(ABOVE_NULL, below(value)), Interval(below(value), TOP)
    return Some((Atom((0, 0), (low,)), Atom((0, 1), (high,))))


BOMBS = {
    "pairs": [Some((unequal(0, i), unequal(1, i))) for i in range(4_500)],
    "quadruples": [Some(tuple(unequal(c, i) for c in range(4))) for i in range(2_400)],
    "stairs": [below_or_above(i) for i in range(4_000)],
}


@pytest.mark.slow
@pytest.mark.parametrize("bomb", sorted(BOMBS))
def test_work_is_counted_and_limited(bomb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Conditions that took 7 to 19 s: no function of the room is called more often than the budget
    allows, most of them far less."""
    compared = 0

    def counting(one: Union, other: Union) -> bool:
        nonlocal compared
        compared += 1
        return union_covers(one, other)

    monkeypatch.setattr("penstock.predicates.simplify.union_covers", counting)
    with pytest.raises(TooComplexError):
        branches_of(All(tuple(BOMBS[bomb])), 1)
    assert compared <= MAX_WORK / 2


@pytest.mark.parametrize("bomb", sorted(BOMBS))
def test_a_few_of_them_are_no_bomb(bomb: str) -> None:
    assert branches_of(All(tuple(BOMBS[bomb][:4])), 1)


def test_a_budget_is_spent_once() -> None:
    budget = Budget(10)
    budget.spend(10)
    with pytest.raises(TooComplexError):
        budget.spend(1)


def test_the_first_coverer_ends_the_search() -> None:
    """Each is inside all that follow: pairs are charged as they are compared, not all at once."""
    chain = Some(tuple(All((less(0, i), less(1, i))) for i in range(2_000)))
    assert len(branches_of(chain, 1)) == 1


def test_many_steps_are_refused() -> None:
    one = Some(tuple(All((equal(0, i), equal(1, i))) for i in range(900)))
    other = Some(tuple(All((equal(1, i), equal(2, i))) for i in range(900)))
    with pytest.raises(TooComplexError):
        branches_of(All((one, other)), 1)
