"""Linked chains: links that never cross, savings of pairs, the path, and where new chains go."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.operators.schedules import FixedEstimates
from penstock.operators.schedules.chain_order import (
    PAIRS_PER_NODE,
    choose_pairs,
    greedy_path,
    measure_nodes,
    pair_saving,
)
from penstock.operators.schedules.packed import pack
from penstock.operators.schedules.schedule import Chain
from penstock.operators.schedules.sub_order import SubOrder

PREDICATES = 6
numbers = st.lists(st.floats(0.02, 0.98), min_size=PREDICATES, max_size=PREDICATES)
costs = st.lists(st.sampled_from([1.0, 3.0]), min_size=PREDICATES, max_size=PREDICATES)
chains = st.lists(st.integers(0, PREDICATES - 1), min_size=1, max_size=5, unique=True)


def cost_of_order(first: Chain, second: Chain, p: Sequence[float], cost: Sequence[float]) -> float:
    """The expected cost of two chains one after the other, by going through all truths."""
    expected = 0.0
    for truths in product((False, True), repeat=PREDICATES):
        likelihood = np.prod([p[t] if truth else 1 - p[t] for t, truth in enumerate(truths)])
        known: set[int] = set()
        for chain in (first, second):
            if any(t in known and not truths[t] for t in chain):
                continue
            for t in chain:
                known.add(t)
                if not truths[t]:
                    break
        expected += float(likelihood) * sum(cost[t] for t in known)
    return expected


@given(u=chains, v=chains, p=numbers, cost=costs)
def test_the_saving_of_a_pair_is_the_difference_of_expected_costs(
    u: list[int], v: list[int], p: list[float], cost: list[float]
) -> None:
    """With any number of links, for equal and different costs."""

    def key(t: int) -> tuple[float, int]:
        return (p[t] - 1) / cost[t], t

    first, second = tuple(sorted(u, key=key)), tuple(sorted(v, key=key))
    packed = pack([(1, first), (2, second)])
    names = packed.predicate_names
    nodes = measure_nodes(packed, np.array(p)[names], np.array(cost)[names])
    difference = cost_of_order(second, first, p, cost) - cost_of_order(first, second, p, cost)
    assert pair_saving(packed, nodes, 0, 1) == pytest.approx(difference, abs=1e-9)


def test_one_link_as_published() -> None:
    """(1 - p) (P C' - P' C): section 4.2.4, with a = 2 and b = 3."""
    p = {0: 0.2, 1: 0.3, 2: 0.4, 3: 0.9}
    packed = pack([(1, (0, 3)), (2, (1, 2, 3))])
    nodes = measure_nodes(packed, np.array([p[t] for t in range(4)]), np.ones(4))
    assert nodes.above[[1, 4]] == pytest.approx([0.2, 0.3 * 0.4])
    assert nodes.spent[[1, 4]] == pytest.approx([1.0, 1.3])
    assert pair_saving(packed, nodes, 0, 1) == pytest.approx(0.1 * (0.2 * 1.3 - 0.12 * 1.0))


@given(given_chains=st.lists(chains, max_size=40), p=numbers, cost=costs, data=st.data())
def test_links_never_cross(
    given_chains: list[list[int]], p: list[float], cost: list[float], data: st.DataObject
) -> None:
    """Also among equal keys, and after estimates have changed between two additions."""
    probabilities = dict(enumerate(np.round(p, 1).clip(0.1, 0.9)))
    schedule = SubOrder(FixedEstimates(probabilities, cost))
    for number, chain in enumerate(given_chains):
        schedule.add(number, chain)
        probabilities[data.draw(st.integers(0, PREDICATES - 1))] = 0.5
        if number % 7 == 6:
            schedule.refresh()
        if number % 5 == 4:
            schedule.remove(number)
    found = dict(schedule._chains.items())
    for u, v in combinations(found.values(), 2):
        shared = set(u) & set(v)
        assert [t for t in u if t in shared] == [t for t in v if t in shared]
    assert sorted(schedule.order()) == sorted(found)


def test_chains_are_in_increasing_probability_of_being_true() -> None:
    schedule = SubOrder(FixedEstimates([0.9, 0.1, 0.5, 0.1]))
    schedule.add(1, [0, 1, 2, 3])
    assert schedule._chains[1] == (1, 3, 2, 0)
    dear = SubOrder(FixedEstimates([0.9, 0.1, 0.5, 0.1], [1.0, 100.0, 1.0, 1.0]))
    dear.add(1, [0, 1, 2, 3])
    assert dear._chains[1] == (3, 2, 0, 1)


def instance(count: int, predicates: int, seed: int) -> tuple[list[tuple[int, Chain]], list[float]]:
    random = np.random.default_rng(seed)
    p = random.uniform(0.02, 0.6, predicates).round(2)
    drawn = [random.choice(predicates, random.integers(2, 6), replace=False) for _ in range(count)]
    return [
        (number, tuple(sorted(chain.tolist(), key=lambda t: (p[t], t))))
        for number, chain in enumerate(drawn)
    ], p.tolist()


def test_the_number_of_pairs_is_bounded_though_all_chains_are_linked() -> None:
    popular: list[tuple[int, Chain]] = [(number, (0, number + 1)) for number in range(500)]
    packed = pack(popular)
    nodes = measure_nodes(packed, np.full(501, 0.5), np.ones(501))
    left, right = choose_pairs(packed, nodes)
    assert (left < right).all()
    assert 0 < len(left) <= PAIRS_PER_NODE * len(packed.predicates)
    assert len(set(zip(left.tolist(), right.tolist(), strict=True))) == len(left)


@pytest.mark.parametrize("seed", range(3))
def test_the_path_has_all_chains_and_costs_less_than_its_reverse(seed: int) -> None:
    drawn, p = instance(300, 40, seed)
    packed = pack(drawn)
    nodes = measure_nodes(packed, np.array(p)[packed.predicate_names], np.ones(len(p)))
    path = greedy_path(packed, nodes).tolist()
    assert sorted(path) == list(range(300))
    along = [pair_saving(packed, nodes, u, v) for u, v in pairwise(path)]
    left, right = choose_pairs(packed, nodes)
    savings = [pair_saving(packed, nodes, u, v) for u, v in zip(left, right, strict=True)]
    best = int(np.argmax(np.abs(savings)))
    pair = (left[best], right[best]) if savings[best] > 0 else (right[best], left[best])
    assert path.index(pair[1]) == path.index(pair[0]) + 1  # the largest saving is always taken
    assert sum(along) > 0


def test_a_new_chain_goes_where_it_saves() -> None:
    """Chain 2 has the shared predicate on top: it decides the others, and comes first."""
    p = {0: 0.1, 1: 0.2, 9: 0.3}
    schedule = SubOrder(FixedEstimates(p))
    schedule.add(0, [0, 9])
    schedule.add(1, [1, 9])
    schedule.add(2, [9])
    assert schedule.order()[0] == 2
    schedule.add(3, [50])  # linked to nobody: at the end
    assert schedule.order()[-1] == 3


def test_many_insertions_at_one_place_make_the_path_again() -> None:
    """Places are numbers between those of neighbours, and halve each time."""
    schedule = SubOrder(FixedEstimates({0: 0.1, 9: 0.3}))
    for number in range(40):
        schedule.add(number, [number + 100, 9])
    order = schedule.order()
    for number in range(40, 130):
        schedule.add(number, [9] if number % 2 else [9, 0])
        if number % 30 == 0:
            schedule.order()
    assert sorted(schedule.order()) == list(range(130))
    assert len(order) == 40
