"""The experiments of Li, Hou and Jacobsen (2005) at small size: what must hold at any size."""

from __future__ import annotations

import pytest

from penstock.lab.experiments import _li2005_routing as li2005
from penstock.lab.experiments._li2005_workload import RANGES, Workload
from penstock.predicates.boxes import covers
from penstock.predicates.intervals import ABOVE_NULL, TOP


@pytest.mark.slow
def test_tables_shrink_from_state_to_state_and_lose_nothing() -> None:
    states = li2005.states_of(Workload("A", 1_500))
    sizes = [len(boxes) for _, boxes in states.items()]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[1] < sizes[0]
    for boxes in (states.covered, states.perfect, states.imperfect):
        assert all(any(covers(one, wanted) for one in boxes) for wanted in states.boxes[:100])
    events = states.workload.publications(300)
    wanted = li2005._wanted(states.boxes, events)
    assert (li2005._wanted(states.covered, events) == wanted).all()
    assert (li2005._wanted(states.perfect, events) == wanted).all()
    assert (li2005._wanted(states.imperfect, events) >= wanted).all()


def test_scaled_down_sets_have_as_many_of_their_pairs() -> None:
    full, small = Workload("B", 200_000), Workload("B", 2_000)
    assert (full.values, small.values) == (250, 25)
    assert 200_000 / 250**2 == 2_000 / 25**2
    half = Workload("A", 1_000, of=2_000)
    assert half.values == Workload("A", 2_000).values
    boxes = small.boxes()
    assert {len(one) for one in boxes} == {2, 3}
    assert len({pair for one in boxes for pair in one}) <= 20 * 25
    ranges = {p for one in boxes for p in one if p[1].low == ABOVE_NULL or p[1].high == TOP}
    assert len(ranges) == RANGES["B"]
