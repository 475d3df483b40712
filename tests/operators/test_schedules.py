"""One contract for all schedules: the matches of brute force, under churn, no predicate twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import PenstockError
from penstock.operators.schedules import FixedEstimates, Run, Schedule, make_schedule
from penstock.operators.schedules.benefit import Benefit
from penstock.operators.schedules.optimal import expected_optimum, optimum
from penstock.operators.schedules.schedule import Estimates

NAMES = ("naive", "sequential", "sub-order", "benefit", "benefit in rounds")
PREDICATES = 9


def make(name: str, estimates: Estimates) -> Schedule:
    if name == "benefit in rounds":
        return Benefit(estimates, many=0)
    return make_schedule(name, estimates)


def evaluate(run: Run, truths: Sequence[bool] | Mapping[int, bool]) -> list[int]:
    """Carry a run out, batch by batch; returns what it asked for, in order."""
    asked: list[int] = []
    while batch := run.batch():
        assert run.next() in batch
        assert not set(batch) & set(asked)
        asked += batch
        run.tell_many(batch, [truths[predicate] for predicate in batch])
    assert run.next() is None
    return asked


chains = st.lists(st.integers(0, PREDICATES - 1), max_size=5)
events = st.lists(st.booleans(), min_size=PREDICATES, max_size=PREDICATES)
numbers = st.lists(st.floats(0.05, 0.95), min_size=PREDICATES, max_size=PREDICATES)
costs = st.lists(st.sampled_from([1.0, 1.0, 2.0, 7.5]), min_size=PREDICATES, max_size=PREDICATES)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), chains),
        st.tuples(st.just("remove"), st.integers(0, 50)),
        st.tuples(st.just("refresh"), st.none()),
        st.tuples(st.just("event"), events),
    ),
    max_size=60,
)


@pytest.mark.parametrize("name", NAMES)
@given(steps=steps, p=numbers, cost=costs, data=st.data())
def test_matches_are_those_of_brute_force_under_churn(
    name: str,
    steps: list[tuple[str, object]],
    p: list[float],
    cost: list[float],
    data: st.DataObject,
) -> None:
    schedule, branches = make(name, FixedEstimates(p, cost)), dict[int, list[int]]()
    for number, (step, value) in enumerate(steps):
        match value:
            case list() if step == "add":
                branches[number] = value
                schedule.add(number, value)
            case int() if branches:
                branch = sorted(branches)[value % len(branches)]
                schedule.remove(branch)
                del branches[branch]
            case None:
                schedule.refresh()
            case list() if step == "event":
                _check_event(schedule, branches, value, data)


def _check_event(
    schedule: Schedule, branches: dict[int, list[int]], truths: list[bool], data: st.DataObject
) -> None:
    candidates = [b for b in branches if data.draw(st.booleans(), label=f"{b} is a candidate")]
    known = data.draw(st.sets(st.integers(0, PREDICATES + 2)), label="known")
    given_truths = {t: truths[t] if t < PREDICATES else True for t in known}
    run = schedule.start(candidates, given_truths)
    asked = evaluate(run, truths)
    assert run.matched == [b for b in sorted(candidates) if all(truths[t] for t in branches[b])]
    assert len(asked) == len(set(asked))
    assert not set(asked) & known
    wanted = {t for b in candidates for t in branches[b]}
    assert set(asked) <= wanted
    for branch in candidates:  # every refusal has a witness, every match all of them
        seen = [t for t in branches[branch] if t in known or t in asked]
        assert branch in run.matched or any(not truths[t] for t in seen)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("chain", [[], [0], [0, 1]])
def test_candidates_that_are_decided_together_all_match(name: str, chain: list[int]) -> None:
    schedule = make(name, FixedEstimates([0.5, 0.5], [1.0, 1.0]))
    for branch in range(5):
        schedule.add(branch, chain)
    run = schedule.start([1, 3, 4])
    evaluate(run, [True, True])
    assert run.matched == [1, 3, 4]


@pytest.mark.parametrize("name", NAMES)
@given(branches=st.lists(chains, max_size=12), p=numbers, cost=costs, truths=events)
def test_a_replay_evaluates_what_a_run_does(
    name: str, branches: list[list[int]], p: list[float], cost: list[float], truths: list[bool]
) -> None:
    schedule = make(name, FixedEstimates(p, cost))
    for number, chain in enumerate(branches):
        schedule.add(number, chain)
    asked = evaluate(schedule.start(), truths)
    assert sorted(asked) == sorted(_ask_one_by_one(schedule.start(), truths))
    if name != "benefit":  # whose replays are in rounds, and need not wait for all branches
        assert sorted(asked) == sorted(schedule.replay(np.array(truths)).tolist())


def _ask_one_by_one(run: Run, truths: Sequence[bool]) -> list[int]:
    asked = []
    while (predicate := run.next()) is not None:
        assert run.next() == predicate  # until it is told
        asked.append(predicate)
        run.tell(predicate, truths[predicate])
    return asked


@given(branches=st.lists(chains, max_size=12), p=numbers, cost=costs, truths=events)
def test_rounds_that_wait_for_all_branches_evaluate_what_the_heap_does(
    branches: list[list[int]], p: list[float], cost: list[float], truths: list[bool]
) -> None:
    heap = Benefit(FixedEstimates(p, cost))
    rounds = Benefit(FixedEstimates(p, cost), many=0, shares=(1.0,))
    for number, chain in enumerate(branches):
        heap.add(number, chain)
        rounds.add(number, chain)
    asked = evaluate(heap.start(), truths)
    assert sorted(asked) == sorted(evaluate(rounds.start(), truths))


def small_instances() -> list[dict[int, tuple[int, ...]]]:
    """All sets of up to three branches over four predicates, but for names."""
    conjunctions = [(0,), (0, 1), (1, 2), (2, 3), (0, 1, 2), (1, 2, 3), (0, 3), (3,), (0, 1, 2, 3)]
    return [
        dict(enumerate(chosen))
        for size in (1, 2, 3)
        for chosen in product(conjunctions, repeat=size)
        if len(set(chosen)) == size
    ]


@pytest.mark.parametrize(
    "cost", [(1.0, 1.0, 1.0, 1.0), (1.0, 5.0, 2.0, 3.0)], ids=["equal", "different"]
)
def test_sequential_costs_at_most_d_times_the_optimum(cost: tuple[float, ...]) -> None:
    """Theorem 2 and section 4.3, on every event of every instance."""
    estimates, tight = FixedEstimates((0.5,) * 4, cost), 0.0
    for branches in small_instances():
        schedule = make("sequential", estimates)
        for number, chain in branches.items():
            schedule.add(number, chain)
        d = max(map(len, branches.values()))
        for truths in product((False, True), repeat=4):
            spent = sum(cost[t] for t in evaluate(schedule.start(), truths))
            best = optimum(branches, truths, estimates)
            assert spent <= d * max(cost) / min(cost) * best
            tight = max(tight, spent / best)
    assert tight > 1.5


@pytest.mark.parametrize("name", NAMES)
def test_no_schedule_is_better_than_the_optimum(name: str) -> None:
    estimates = FixedEstimates((0.1, 0.6, 0.3, 0.8), (1.0, 2.0, 1.0, 4.0))
    for branches in small_instances()[::7]:
        schedule = make(name, estimates)
        for number, chain in branches.items():
            schedule.add(number, chain)
        expected = 0.0
        for truths in product((False, True), repeat=4):
            spent = sum(estimates.cost(t) for t in evaluate(schedule.start(), truths))
            assert spent >= optimum(branches, truths, estimates) - 1e-9
            expected += spent * _likelihood(truths, estimates)
        assert expected >= expected_optimum(branches, estimates) - 1e-9


def _likelihood(truths: Sequence[bool], estimates: Estimates) -> float:
    found = 1.0
    for predicate, truth in enumerate(truths):
        p = estimates.probability(predicate)
        found *= p if truth else 1 - p
    return found


def test_sequential_goes_on_with_the_predicates_of_a_decided_branch() -> None:
    """Figure 2: S2 is decided by P2, and P3 is evaluated all the same, for S3 has it."""
    schedule = make("sequential", FixedEstimates())
    schedule.add(2, [2, 3])
    schedule.add(1, [1, 2])
    schedule.add(3, [4, 3])
    truths = {1: True, 2: False, 3: True, 4: True}
    assert evaluate(schedule.start(), truths) == [2, 3, 4]  # not 4 before 3
    schedule.remove(3)
    assert evaluate(schedule.start(), truths) == [2]  # nobody undecided has P3


def test_naive_does_not_look_ahead() -> None:
    """It knows that 2 is false when it comes to the second branch, and evaluates 3 before it."""
    schedule = make("naive", FixedEstimates())
    schedule.add(1, [2])
    schedule.add(2, [3, 2])
    assert evaluate(schedule.start(), {2: False, 3: True}) == [2, 3]
    other = make("sub-order", FixedEstimates({3: 0.1}))
    other.add(1, [2])
    other.add(2, [3, 2])
    other.remove(2)
    other.add(2, [2, 3])
    assert 3 in evaluate(other.start([2]), {2: False, 3: False})


def test_benefit_prefers_what_decides_more_for_its_cost() -> None:
    schedule = make("benefit", FixedEstimates({1: 0.9, 2: 0.1, 3: 0.1}, {3: 10.0}))
    for branch in range(4):
        schedule.add(branch, [1, 2, 3])
    assert schedule.start().next() == 2
    schedule.add(9, [1])
    for branch in range(10, 40):
        schedule.add(branch, [1, 100 + branch])
    assert schedule.start().next() == 1  # popular enough, though it is likely to be true


@pytest.mark.parametrize("name", NAMES)
def test_refusals(name: str) -> None:
    schedule = make(name, FixedEstimates())
    schedule.add(1, [7, 8])
    with pytest.raises(PenstockError, match="branch 1 is in the schedule"):
        schedule.add(1, [9])
    with pytest.raises(PenstockError, match="no branch 2"):
        schedule.remove(2)
    with pytest.raises(PenstockError, match="no branch 2"):
        schedule.start([1, 2])
    run = schedule.start()
    run.tell(7, True)
    run.tell(7, True)
    with pytest.raises(PenstockError, match="predicate 7"):
        run.tell(7, False)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(PenstockError, match="no schedule is called 'best'"):
        make_schedule("best", FixedEstimates())
