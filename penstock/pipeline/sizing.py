"""How many records a batch may have to end within the target latency.

A batch has fixed costs and a cost per record; neither is known beforehand, and both change with the
subscriptions. So the size follows measured batches: one that took too long shrinks the next ones at
once, full and quick ones grow it step by step.
"""

from __future__ import annotations

FEWEST_RECORDS = 100
"""Smaller batches are all fixed cost and would only slow down progress through the log."""
FIRST_RECORDS = 2_000
GROWTH = 1.5
ROOM = 0.7
"""The size grows while a batch takes less than this share of the target."""


class BatchSizer:
    """Adapts to the batches of one run."""

    def __init__(self, most_records: int, target_seconds: float | None) -> None:
        self._most = most_records
        self._target = target_seconds
        self._size = most_records if target_seconds is None else min(FIRST_RECORDS, most_records)

    @property
    def records(self) -> int:
        """How many records the next batch may have."""
        return self._size

    def took(self, records: int, seconds: float) -> None:
        """Record the duration of a batch."""
        if self._target is None:
            return
        if seconds > self._target:
            share = max(0.25, self._target / seconds)
            # A small batch that took too long shows fixed costs, not a cost of its size.
            shrunk = max(FEWEST_RECORDS, int(min(records, self._size) * share))
            self._size = min(self._size, shrunk)
        elif records >= self._size and seconds < ROOM * self._target:
            self._size = min(self._most, int(self._size * GROWTH) + 1)
