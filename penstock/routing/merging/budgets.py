"""A budget of false positives per link: measured at the node that merged, and held by it.

Whoever merges keeps the parts, so it can tell which messages it received for a merger alone. When
their share exceeds the budget, the mergers that brought most of them are taken back, and later ones
must be better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

WINDOW_MESSAGES = 1_000
"""Counts are halved when so many messages were received, so that the past fades."""
ENOUGH_MESSAGES = 50
"""Of fewer messages nothing is concluded."""


class FalsePositives:
    """Of one link. `budget` is the share of received messages that may be in vain."""

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
        """A message that concerned these mergers and nobody here."""
        self.received += 1
        self.in_vain += 1
        self._window_in_vain += 1
        self._by_merger.update(mergers)
        self._slide(1)

    def to_take_back(self) -> list[int]:
        """The mergers that brought the most, until the rest is within budget."""
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
