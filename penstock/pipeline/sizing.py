"""How many records a batch takes, so that it ends within a target.

A batch has fixed costs and a cost per record, neither of which is known beforehand, and both of
which change with the subscriptions. So the size follows what batches took: a batch that took too
long makes the next ones smaller at once, batches that were full and quick make them larger step by
step.
"""

from __future__ import annotations

FEWEST_RECORDS = 100
"""Smaller batches are all fixed cost: they would only take longer to get through the log."""
FIRST_RECORDS = 2_000
GROWTH = 1.5
ROOM = 0.7
"""Larger batches are tried while one takes less than this share of the target."""


class BatchSizer:
    """Follows the batches of one run."""

    def __init__(self, most_records: int, target_seconds: float | None) -> None:
        self._most = most_records
        self._target = target_seconds
        self._size = most_records if target_seconds is None else min(FIRST_RECORDS, most_records)

    @property
    def records(self) -> int:
        """How many records the next batch may have."""
        return self._size

    def took(self, records: int, seconds: float) -> None:
        """A batch of so many records took so long."""
        if self._target is None:
            return
        if seconds > self._target:
            share = max(0.25, self._target / seconds)
            # A small batch that took too long says something of fixed costs, not of its size.
            shrunk = max(FEWEST_RECORDS, int(min(records, self._size) * share))
            self._size = min(self._size, shrunk)
        elif records >= self._size and seconds < ROOM * self._target:
            self._size = min(self._most, int(self._size * GROWTH) + 1)
