"""Which route to take, from what the routes have cost so far.

A route is one way of matching a segment. What it costs per event depends on the subscriptions, the
events, the size of the batch and the machine, so nothing is predicted: a route that has not been
tried on batches of about this size is tried, and the cheapest is taken from then on. A large batch
is not risked on the unknown: routes are first compared on a few of its events, and one that is
several times dearer there is left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

PROBE_EVENTS = 128
_HOPELESS = 6.0
"""A route so many times dearer than the best one on a smaller batch is not tried on a larger."""
_SECOND_LOOK = 64
"""Every so many batches the second best is taken: times change, and measurements err."""
_LOOK_AGAIN = 16
_MEMORY = 0.2
"""Weight of the latest measurement."""


class Planner:
    """Measured nanoseconds per event, by route and size of batch. Safe to share among threads:
    a lost update loses one measurement."""

    def __init__(self) -> None:
        self._costs: dict[tuple[str, int], float] = {}
        self._rankings: dict[int, tuple[Sequence[str], list[str]]] = {}
        self._choices = 0

    @property
    def costs(self) -> dict[tuple[str, int], float]:
        """By route and size class (powers of four)."""
        return dict(self._costs)

    def cost(self, route: str, events: int) -> float:
        """Nanoseconds per event of a route in batches of about this size; 0 if never taken."""
        return self._costs.get((route, size_class(events)), 0.0)

    def choose(self, routes: Sequence[str], events: int) -> str:
        """The route to take for a batch of so many events."""
        size = size_class(events)
        self._choices += 1
        ranked = self._rankings.get(size)
        if ranked is None or ranked[0] is not routes:
            hopeful = self._hopeful(routes, size)
            by_cost = sorted(hopeful, key=lambda route: self._costs.get((route, size), 0.0))
            ranked = self._rankings[size] = (routes, by_cost)
        by_cost = ranked[1]
        second_look = self._choices % _SECOND_LOOK == 0 and len(by_cost) > 1
        return by_cost[1] if second_look else by_cost[0]

    def needs_probe(self, routes: Sequence[str], events: int) -> bool:
        """Whether the routes should be compared on a few events first."""
        small = size_class(PROBE_EVENTS)
        return (
            len(routes) > 1
            and events > 4 * PROBE_EVENTS
            and any((route, small) not in self._costs for route in routes)
        )

    def timed(self, route: str, events: int, work: Callable[[], T]) -> T:
        """Do the work and remember what it cost (time of this thread, not of the clock).

        Asking for the time of a thread is a system call that may take longer than to match an
        event, so the cost of small batches is looked at only now and then.
        """
        key = (route, size_class(events))
        known = self._costs.get(key)
        if known is not None and events <= PROBE_EVENTS and self._choices % _LOOK_AGAIN:
            return work()
        began = time.thread_time_ns()
        result = work()
        cost = (time.thread_time_ns() - began) / max(1, events)
        self._costs[key] = cost if known is None else known + _MEMORY * (cost - known)
        self._rankings.pop(key[1], None)
        return result

    def _hopeful(self, routes: Sequence[str], size: int) -> list[str]:
        for smaller in range(size - 1, -1, -1):
            known = {r: self._costs[r, smaller] for r in routes if (r, smaller) in self._costs}
            if len(known) > 1:
                limit = _HOPELESS * min(known.values())
                return [route for route in routes if known.get(route, 0.0) <= limit]
        return list(routes)


def size_class(events: int) -> int:
    """1, 2–4, 5–16, 17–64, ..."""
    return (max(1, events) - 1).bit_length() + 1 >> 1
