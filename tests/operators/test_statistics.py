"""Probabilities and costs that are learnt: priors, drift, correlation, limits, plain data."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from penstock.errors import PenstockError
from penstock.operators.statistics import (
    MOST_PAIRS,
    PRIOR_COST,
    PRIOR_PROBABILITY,
    PredicateStatistics,
)


def test_nothing_is_known_at_first() -> None:
    statistics = PredicateStatistics()
    assert statistics.probability(1) == PRIOR_PROBABILITY
    assert statistics.cost(1) == PRIOR_COST


def test_probabilities_and_costs_are_learnt() -> None:
    statistics = PredicateStatistics()
    random = np.random.default_rng(1)
    for _ in range(3_000):
        statistics.observe(1, bool(random.random() < 0.7), cost=5.0)
        statistics.observe(2, bool(random.random() < 0.05))
    assert statistics.probability(1) == pytest.approx(0.7, abs=0.05)
    assert statistics.probability(2) == pytest.approx(0.05, abs=0.02)
    assert statistics.cost(1) == pytest.approx(5.0, rel=0.02)


def test_probabilities_stay_between_0_and_1() -> None:
    statistics = PredicateStatistics()
    for _ in range(20_000):
        statistics.observe(1, True)
        statistics.observe(2, False)
    assert 0.9 < statistics.probability(1) < 1
    assert 0 < statistics.probability(2) < 0.1


def test_new_predicates_start_from_their_operator() -> None:
    statistics = PredicateStatistics()
    statistics.declare(1, "mob", cost=20.0)
    statistics.declare(2, "mob")
    statistics.declare(3, "geo")
    assert statistics.cost(2) == 20.0
    for _ in range(500):
        statistics.observe(1, True, cost=40.0)
    assert statistics.probability(2) > 0.9
    assert statistics.cost(2) == pytest.approx(40.0, rel=0.02)
    assert statistics.probability(3) == PRIOR_PROBABILITY


def test_drift_is_followed() -> None:
    statistics = PredicateStatistics(memory_evaluations=100)
    for _ in range(10_000):
        statistics.observe(1, False, cost=1.0)
    for _ in range(300):
        statistics.observe(1, True, cost=9.0)
    assert statistics.probability(1) > 0.9
    assert statistics.cost(1) > 8.0


def test_correlated_predicates_are_found() -> None:
    statistics = PredicateStatistics()
    random = np.random.default_rng(2)
    for _ in range(400):
        a, b = random.random(2) < 0.5
        statistics.observe_event({1: bool(a), 2: bool(a), 3: not a, 4: bool(b)})
    assert statistics.correlation(2, 1) == pytest.approx(1.0)
    assert statistics.correlation(1, 3) == pytest.approx(-1.0)
    assert abs(statistics.correlation(1, 4) or 0.0) < 0.15
    assert statistics.correlation(1, 99) is None
    assert [pair[:2] for pair in statistics.strongest_correlations(3)] == [(1, 2), (1, 3), (2, 3)]


def test_memory_is_bounded() -> None:
    statistics = PredicateStatistics(most_predicates=10)
    for number in range(1_000):
        statistics.observe(number % 500, True)
        statistics.observe_event({number * 9 + i: True for i in range(9)})
        statistics.observe_event({1: True, 2: False})
    plain = statistics.to_plain()
    assert len(plain["predicates"]) == 10
    assert len(plain["pairs"]) <= MOST_PAIRS
    assert statistics.correlation(1, 2) is not None  # seen often: it outlives the others
    statistics.forget(1)
    assert statistics.correlation(1, 2) is None


def test_plain_data_and_pickles_hold_everything() -> None:
    statistics = PredicateStatistics(memory_evaluations=50)
    statistics.declare(7, "mob", cost=3.0)
    for number in range(20):
        statistics.observe(7, number % 3 == 0, cost=float(number))
        statistics.observe_event({7: True, 8: number % 2 == 0})
    again = PredicateStatistics.from_plain(json.loads(json.dumps(statistics.to_plain())))
    for other in (again, pickle.loads(pickle.dumps(statistics))):
        assert other.to_plain() == statistics.to_plain()
        other.observe(7, True)
        assert other.probability(7) > statistics.probability(7)
        assert other.cost(7) == statistics.cost(7)


def test_refusals() -> None:
    with pytest.raises(PenstockError, match="version 9"):
        PredicateStatistics.from_plain({"version": 9})
    with pytest.raises(PenstockError, match="positive number"):
        PredicateStatistics().declare(1, "x", cost=0.0)
    with pytest.raises(PenstockError, match="room"):
        PredicateStatistics(most_pairs=0)
