"""The clairvoyant bound: never above the optimum, and close to it."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import PenstockError
from penstock.operators.schedules import FixedEstimates
from penstock.operators.schedules.lower_bound import ClairvoyantBound
from penstock.operators.schedules.optimal import expected_optimum, optimum

PREDICATES = 8
chains = st.lists(st.integers(0, PREDICATES - 1), max_size=4, unique=True).map(tuple)


@given(
    branches=st.lists(chains, max_size=10),
    truths=st.lists(st.booleans(), min_size=PREDICATES, max_size=PREDICATES),
    cost=st.lists(st.sampled_from([1.0, 2.5]), min_size=PREDICATES, max_size=PREDICATES),
)
def test_it_is_never_above_the_optimum(
    branches: list[tuple[int, ...]], truths: list[bool], cost: list[float]
) -> None:
    estimates, named = FixedEstimates(costs=cost), dict(enumerate(branches))
    bound = ClairvoyantBound(named, estimates).of(np.array(truths))
    best = optimum(named, truths, estimates)
    assert bound.lower <= best + 1e-9
    assert best <= bound.upper + 1e-9


def test_prices_stay_small() -> None:
    """Steps along a direction of nearly no length would make them huge, and their sums wrong."""
    estimates = FixedEstimates(costs=[2.5, 1.0])
    bound = ClairvoyantBound({0: (0,), 1: (0, 1)}, estimates).of(np.zeros(2, np.bool_))
    assert bound.lower == 2.5


def test_it_is_tight_where_branches_share_nothing() -> None:
    branches = {number: (3 * number, 3 * number + 1) for number in range(50)}
    truths = np.zeros(150, np.bool_)
    truths[:2] = True  # the first branch matches: two evaluations
    bound = ClairvoyantBound(branches, FixedEstimates()).of(truths)
    assert bound.lower == pytest.approx(51.0, rel=1e-3)
    assert bound.upper == 51.0


def test_it_comes_close_on_random_instances() -> None:
    random = np.random.default_rng(5)
    branches = {
        number: tuple(random.choice(400, 4, replace=False).tolist()) for number in range(800)
    }
    bound = ClairvoyantBound(branches, FixedEstimates()).of(random.random(400) < 0.2)
    assert 0.8 * bound.upper < bound.lower < bound.upper


def test_optimum_of_known_cases() -> None:
    estimates = FixedEstimates([0.5, 0.1])
    assert optimum({1: (0, 1)}, [True, False], estimates) == 1.0
    assert optimum({1: (0, 1)}, [True, True], estimates) == 2.0
    assert expected_optimum({1: (0, 1)}, estimates) == pytest.approx(1.1)
    assert expected_optimum({}, estimates) == 0.0
    with pytest.raises(PenstockError, match="too many"):
        optimum({1: range(20)}, [True] * 20, estimates)


@given(
    branches=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True), max_size=5),
    probabilities=st.lists(st.sampled_from([0.1, 0.3, 0.6, 0.9]), min_size=4, max_size=4),
    cost=st.lists(st.sampled_from([1.0, 2.5]), min_size=4, max_size=4),
)
def test_no_schedule_undercuts_the_bound_of_all(
    branches: list[list[int]], probabilities: list[float], cost: list[float]
) -> None:
    """The best schedule that there is, over all events."""
    estimates = FixedEstimates(probabilities, cost)
    named = {number: tuple(chain) for number, chain in enumerate(branches)}
    bound, mean = ClairvoyantBound(named, estimates), 0.0
    for truths in product((False, True), repeat=4):
        chances = [p if truth else 1 - p for p, truth in zip(probabilities, truths, strict=True)]
        mean += math.prod(chances) * bound.of_any_schedule(np.array(truths))
    assert mean <= expected_optimum(named, estimates) + 1e-9


def test_the_bound_of_all_is_reached_by_single_predicates() -> None:
    """Each must be evaluated: with p = 0.5, every second finds it false, and counts twice."""
    bound = ClairvoyantBound({0: (0,)}, FixedEstimates([0.5]))
    assert bound.of_any_schedule(np.array([False])) == pytest.approx(2.0)
    assert bound.of_any_schedule(np.array([True])) == 0.0
