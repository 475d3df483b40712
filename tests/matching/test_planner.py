"""Which strategy is taken, from measured costs."""

from __future__ import annotations

import pytest

from penstock.matching.planner import PROBE_EVENTS, Planner

STRATEGIES = ("shared", "each")


class Clock:
    def __init__(self) -> None:
        self.now = 0

    def thread_time_ns(self) -> int:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("penstock.matching.planner.time", clock)
    return clock


def spend(planner: Planner, clock: Clock, strategy: str, events: int, nanoseconds: int) -> None:
    def work() -> None:
        clock.now += nanoseconds * events

    planner.timed(strategy, events, work)


def test_every_route_is_tried_and_then_the_cheapest_is_taken(clock: Clock) -> None:
    planner = Planner()
    for cost in (100, 50):
        strategy = planner.choose(STRATEGIES, 100)
        assert planner.cost(strategy, 100) == 0
        spend(planner, clock, strategy, 100, cost)
    taken = [planner.choose(STRATEGIES, 100) for _ in range(256)]
    assert set(taken) == set(STRATEGIES)
    assert taken.count(STRATEGIES[0]) == 2  # a second look now and then: it costs twice as much


def test_a_route_that_shares_work_is_not_given_up_because_of_a_small_batch(clock: Clock) -> None:
    planner = Planner(steady=("each",))
    assert list(planner.probes(STRATEGIES, 100)) == []
    for probe, shared in zip(PROBE_EVENTS, (20_000, 2_000), strict=True):
        assert next(planner.probes(STRATEGIES, 20_000)) == probe
        for strategy in planner.hopeful(STRATEGIES, probe):
            spend(planner, clock, strategy, probe, shared if strategy == "shared" else 1_000)
    assert list(planner.probes(STRATEGIES, 20_000)) == []
    assert planner.choose(STRATEGIES, 20_000) == "shared"
    spend(planner, clock, "shared", 20_000, 300)
    assert planner.choose(STRATEGIES, 20_000) == "shared"
    assert planner.cost("each", 20_000) == 1_000  # known from the small batch


def test_what_is_hopelessly_dear_is_not_tried_on_a_large_batch(clock: Clock) -> None:
    planner = Planner(steady=("each",))
    spend(planner, clock, "shared", 128, 100)
    spend(planner, clock, "each", 128, 1_000)
    assert planner.hopeful(STRATEGIES, 20_000) == ["shared"]
