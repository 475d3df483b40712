"""Choice of a matching strategy by measured cost.

A strategy is one way of matching a segment. Its cost per event depends on the subscriptions, the
events, the batch size and the machine, so nothing is predicted: a strategy that was never run on
batches of about this size is tried, and from then on the cheapest is used. Large batches are not
risked on an unmeasured strategy: strategies are first compared on a few of their events, then on
some more, and far too expensive ones are dropped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")

PROBE_EVENTS = (128, 2048)
"""Strategies are compared on prefixes of these lengths before a larger batch."""
_HOPELESS = 6.0
"""Cost relative to the best, on smaller batches, above which a strategy is not tried on larger."""
_SECOND_LOOK = 64
"""The second best is used every this many batches, because costs change and measurements err. The
interval grows with its relative cost, so that this costs 2 % at most."""
_LOOK_AGAIN = 16
_MEMORY = 0.2
"""Weight of the latest measurement."""


class Planner:
    """Measured nanoseconds per event, by strategy and batch size. Safe to share among threads: a
    lost update loses one measurement.

    `steady` strategies take one event at a time, so their cost per event does not depend on the
    batch size. The others may be many times cheaper per event in a larger batch.
    """

    def __init__(self, steady: Collection[str] = ()) -> None:
        self._steady = frozenset(steady)
        self._costs: dict[tuple[str, int], float] = {}
        self._rankings: dict[int, tuple[Sequence[str], str, str, int]] = {}
        self._choices = 0

    @property
    def costs(self) -> dict[tuple[str, int], float]:
        """By strategy and size class (powers of four)."""
        return dict(self._costs)

    def cost(self, strategy: str, events: int) -> float:
        """Nanoseconds per event of a strategy in batches of about this size; 0 if not measured."""
        return self._costs.get(self._key(strategy, size_class(events)), 0.0)

    def choose(self, strategies: Sequence[str], events: int) -> str:
        """The strategy for a batch of `events` events; one that was never tried comes first."""
        size = size_class(events)
        self._choices += 1
        ranked = self._rankings.get(size)
        if ranked is None or ranked[0] is not strategies:
            ranked = self._rankings[size] = (strategies, *self._ranked(strategies, events))
        _, first, second, interval = ranked
        return second if self._choices % interval == 0 else first

    def _ranked(self, strategies: Sequence[str], events: int) -> tuple[str, str, int]:
        """The cheapest strategy, the second, and the interval at which the second is used."""
        by_cost = sorted(
            self.hopeful(strategies, events), key=lambda strategy: self.cost(strategy, events)
        )
        first, second = by_cost[0], by_cost[min(1, len(by_cost) - 1)]
        ratio = self.cost(second, events) / max(1.0, self.cost(first, events))
        return first, second, int(_SECOND_LOOK * max(1.0, ratio))

    def probes(self, strategies: Sequence[str], events: int) -> Iterator[int]:
        """The prefix lengths to compare strategies on before a batch of `events` events."""
        for probe in PROBE_EVENTS if len(strategies) > 1 else ():
            if events > 4 * probe and any(
                self.cost(strategy, probe) == 0.0 for strategy in self.hopeful(strategies, probe)
            ):
                yield probe

    def timed(self, strategy: str, events: int, work: Callable[[], T]) -> T:
        """Do the work and record its cost (thread CPU time, not wall time).

        Reading the thread clock is a system call that may take longer than matching an event, so
        small batches are measured only now and then.
        """
        key = self._key(strategy, size_class(events))
        known = self._costs.get(key)
        if known is not None and events <= PROBE_EVENTS[0] and self._choices % _LOOK_AGAIN:
            return work()
        began = time.thread_time_ns()
        result = work()
        cost = max(1, time.thread_time_ns() - began) / max(1, events)
        self._costs[key] = cost if known is None else known + _MEMORY * (cost - known)
        self._rankings = {}
        return result

    def hopeful(self, strategies: Sequence[str], events: int) -> list[str]:
        """The strategies without those that smaller batches showed to be far too expensive.

        The limit is looser for strategies that are not steady: their cost per event may fall as
        batches grow.
        """
        size = size_class(events)
        for smaller in range(size - 1, -1, -1):
            known = {r: self._costs[r, smaller] for r in strategies if (r, smaller) in self._costs}
            if len(known) > 1:
                limit = _HOPELESS * min(known.values())
                return [
                    strategy
                    for strategy in strategies
                    if known.get(strategy, 0.0)
                    <= limit * (1 if strategy in self._steady else 4 ** (size - smaller))
                ]
        return list(strategies)

    def _key(self, strategy: str, size: int) -> tuple[str, int]:
        largest = size_class(PROBE_EVENTS[0])
        return (strategy, min(size, largest) if strategy in self._steady else size)


def size_class(events: int) -> int:
    """1, 2–4, 5–16, 17–64, ..."""
    return (max(1, events) - 1).bit_length() + 1 >> 1
