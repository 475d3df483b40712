"""The experiments of Li, Hou and Jacobsen (2005) at small size: what must hold at any size."""

from __future__ import annotations

import pytest

from penstock.lab.experiments import _li2005_routing as li2005
from penstock.predicates.boxes import covers


@pytest.mark.slow
def test_tables_shrink_from_state_to_state_and_lose_nothing() -> None:
    states = li2005.states_of("A", 1_500)
    sizes = [len(boxes) for _, boxes in states.items()]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[1] < sizes[0]
    for boxes in (states.covered, states.perfect, states.imperfect):
        assert all(any(covers(one, wanted) for one in boxes) for wanted in states.boxes[:100])
    events = li2005.draw_publications(300)
    wanted = li2005._concerned(states.boxes, events)
    assert li2005._concerned(states.covered, events) == wanted
    assert li2005._concerned(states.perfect, events) == wanted
    assert li2005._concerned(states.imperfect, events) >= wanted


@pytest.mark.slow
def test_a_larger_threshold_leaves_fewer_entries() -> None:
    results = li2005.figures_14_and_15(800, 200, thresholds=(0.0, 0.3))
    assert results[1]["left_share"] <= results[0]["left_share"]  # type: ignore[operator]
    assert results[0]["false_positive_share"] == 0
    assert all(one["advertised_left_share"] <= one["left_share"] for one in results)  # type: ignore[operator]
