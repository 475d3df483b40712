"""Schedules over overlapping subscriptions: the evaluations of each for the same events."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from penstock.lab.evidence.model import Report, Row
from penstock.lab.evidence.summaries import interval_95, mean
from penstock.lab.workloads.overlapping import Overlapping, OverlappingDraw
from penstock.operators.schedules import FixedEstimates, Run, Schedule, make_schedule
from penstock.operators.schedules.lower_bound import ClairvoyantBound

PUBLISHED = ("naive", "sequential", "sub-order")
SCHEDULES = (*PUBLISHED, "benefit")
BOUND = "clairvoyant bound"
ANY_BOUND = "bound of any schedule"
"""A bound for schedules that learn truths only by evaluating."""


@dataclass(frozen=True, slots=True)
class Effort:
    """The amount of measurement."""

    events: int
    bounded_events: int
    """The number of events per seed for which the bound is computed: it takes seconds."""
    seeds: int = 3
    any_bound: bool = False
    """Whether the bound of all schedules is computed, too."""


@dataclass(slots=True)
class Costs:
    """Of one setting: by series, the mean cost per event of each seed."""

    by_series: dict[str, list[float]] = field(default_factory=dict)
    to_bound: dict[str, list[float]] = field(default_factory=dict)
    """By schedule: its cost for the events with a bound, as a multiple of it."""
    to_any_bound: dict[str, list[float]] = field(default_factory=dict)

    def note_bound(
        self,
        name: str,
        lower: list[float],
        spent: Mapping[str, list[float]],
        ratios: dict[str, list[float]],
    ) -> None:
        """Bounds of the first events of a seed, with the schedules' costs for them."""
        self.by_series.setdefault(name, []).append(mean(lower))
        for schedule, each in spent.items():
            ratio = sum(each[: len(lower)]) / sum(lower)
            ratios.setdefault(schedule, []).append(ratio)

    def rows(self, x: object, paper: Mapping[str, float]) -> Iterable[Row]:
        for series, values in self.by_series.items():
            yield {
                "series": series,
                "x": x,
                "ours": round(mean(values), 1),
                "interval_95": _rounded(interval_95(values)),
                "paper": paper.get(series),
                "of_bound": _mean_of(self.to_bound.get(series)),
                "of_any_bound": _mean_of(self.to_any_bound.get(series)),
            }


def _mean_of(ratios: list[float] | None) -> float | None:
    return None if not ratios else round(mean(ratios), 3)


def _rounded(value: float | None, digits: int = 1) -> float | None:
    return None if value is None else round(value, digits)


def measure_costs(
    settings: Overlapping, effort: Effort, report: Report, *, cost_ratio: float = 1.0
) -> Costs:
    """Every schedule over the same branches and events; with `cost_ratio`, different costs."""
    costs = Costs()
    for seed in range(1, effort.seeds + 1):
        what = f"{settings.subscriptions:,} subscriptions, {settings.predicates:,} predicates"
        report(f"{what}, seed {seed} of {effort.seeds}")
        draw = replace(settings, seed=seed).draw()
        prices = draw.costs(cost_ratio)
        estimates = FixedEstimates(draw.probabilities.tolist(), prices.tolist())
        events = [draw.event() for _ in range(effort.events)]
        spent: dict[str, list[float]] = {}
        for name in SCHEDULES:
            schedule = fill_schedule(name, draw, estimates)
            spent[name] = [float(prices[schedule.replay(event)].sum()) for event in events]
            costs.by_series.setdefault(name, []).append(mean(spent[name]))
        if effort.bounded_events:
            bound = ClairvoyantBound(dict(enumerate(draw.chains)), estimates)
            bounded = events[: effort.bounded_events]
            lower = [bound.of(event).lower for event in bounded]
            costs.note_bound(BOUND, lower, spent, costs.to_bound)
            if effort.any_bound:
                of_any = [bound.of_any_schedule(event) for event in bounded]
                costs.note_bound(ANY_BOUND, of_any, spent, costs.to_any_bound)
    return costs


def fill_schedule(name: str, draw: OverlappingDraw, estimates: FixedEstimates) -> Schedule:
    schedule = make_schedule(name, estimates)
    for branch, chain in enumerate(draw.chains):
        schedule.add(branch, chain)
    return schedule


def bound_if_all_false(settings: Overlapping) -> float:
    """The clairvoyant cost if no predicate is true: the cheapest event of all."""
    draw = settings.draw()
    bound = ClairvoyantBound(dict(enumerate(draw.chains)), FixedEstimates())
    return bound.of(np.zeros(settings.predicates, np.bool_)).lower


def milliseconds_per_event(
    settings: Overlapping, events: int, report: Report, name: str = "benefit"
) -> list[float]:
    """The CPU time of a schedule per event in this thread, without evaluations."""
    draw = settings.draw()
    schedule = fill_schedule(name, draw, FixedEstimates(draw.probabilities.tolist()))
    report(f"scheduling {events} events with {settings.subscriptions:,} subscriptions")
    _time_run(schedule, draw)  # compiles kernels, and builds arrays
    return [1_000 * _time_run(schedule, draw) for _ in range(events)]


def _time_run(schedule: Schedule, draw: OverlappingDraw) -> float:
    truths = draw.event()
    began = time.thread_time()
    run: Run = schedule.start()
    spent = time.thread_time() - began
    while True:
        began = time.thread_time()
        batch = run.batch()
        spent += time.thread_time() - began
        if not batch:
            return spent
        results = truths[batch]
        began = time.thread_time()
        run.tell_many(batch, results)
        spent += time.thread_time() - began
