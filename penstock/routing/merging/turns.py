"""Iteration over a table that is too large for one call, a few interests at a time."""

from __future__ import annotations

from collections.abc import Callable

from penstock.routing.interests import Interest

_TURNS = 3
"""Sort orders in which a table is iterated."""


class MergeTurns:
    """Each turn has a sort order that makes interests adjacent that can be merged along one
    dimension: siblings that differ in the last column, in the next turn the column before it."""

    def __init__(self) -> None:
        self._queue: list[int] = []
        """Names still to process in this turn, the next one last."""
        self._turn = 0

    @property
    def is_under_way(self) -> bool:
        return bool(self._queue or self._turn)

    def end(self) -> None:
        self._queue, self._turn = [], 0

    def take(
        self,
        unmerged: Callable[[], list[tuple[int, Interest]]],
        find: Callable[[int], Interest | None],
        most: int,
    ) -> list[tuple[int, Interest]]:
        """The next `most` interests. `unmerged` lists all, `find` looks up one of them."""
        if not self._queue:
            found = unmerged()
            if len(found) <= most:
                self.end()
                return found
            found.sort(key=lambda member: _order(member[1], self._turn), reverse=True)
            self._queue = [name for name, _ in found]
        chosen: list[tuple[int, Interest]] = []
        while self._queue and len(chosen) < most:
            name = self._queue.pop()
            interest = find(name)
            if interest is not None:
                chosen.append((name, interest))
        if not self._queue:
            self._turn += 1
            if self._turn == _TURNS:
                self.end()
        return chosen


def _order(interest: Interest, turn: int) -> tuple[object, ...]:
    base = interest.base
    first = len(base) - turn % len(base) if base else 0
    columns = tuple(column for column, _ in base)
    return interest.space, columns, base[first:], base[:first], *interest[2:]
