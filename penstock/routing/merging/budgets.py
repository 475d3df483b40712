"""A budget of false positives per link: measured and enforced at the node that merged.

The merging node keeps the parts, so it knows which messages it received only because of a merger.
When their share exceeds the budget, the mergers that caused most of them are dissolved, and later
ones must be better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

WINDOW_MESSAGES = 1_000
"""Counts are halved after this many messages, so that recent ones weigh more."""
ENOUGH_MESSAGES = 50
"""Minimum messages for a decision."""


class FalsePositives:
    """False positives of one link. `budget` is their maximum share of received messages."""

    def __init__(self, budget: float) -> None:
        self.budget = budget
        self.received = 0
        self.in_vain = 0
        self._by_merger: Counter[int] = Counter()
        self._window = 0.0
        self._window_in_vain = 0.0

    @property
    def share(self) -> float:
        return self._window_in_vain / self._window if self._window else 0.0

    def needed(self, count: int = 1) -> None:
        self.received += count
        self._slide(count)

    def wasted(self, mergers: Iterable[int]) -> None:
        """Count a message that concerned these mergers and none of their parts."""
        self.received += 1
        self.in_vain += 1
        self._window_in_vain += 1
        self._by_merger.update(mergers)
        self._slide(1)

    def to_take_back(self) -> list[int]:
        """The mergers with the most false positives, until the rest is within budget."""
        if self._window < ENOUGH_MESSAGES or self.share <= self.budget:
            return []
        excess = self._window_in_vain - self.budget * self._window
        found: list[int] = []
        for merger, count in self._by_merger.most_common():
            if excess <= 0:
                break
            found.append(merger)
            excess -= count
        for merger in found:
            self._window_in_vain = max(0.0, self._window_in_vain - self._by_merger.pop(merger))
        return found

    def _slide(self, count: int) -> None:
        self._window += count
        if self._window >= WINDOW_MESSAGES:
            self._window /= 2
            self._window_in_vain /= 2
            self._by_merger = Counter({m: n // 2 for m, n in self._by_merger.items() if n > 1})
