"""Operations and their acknowledgements: one is done when all operations it caused are done.

The issuing node numbers its operations, so several can be in flight over one link.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from penstock.errors import NetworkError

Operation: TypeAlias = tuple[int, int]
"""A link and a number: requested over that link, or issued to it."""


class Acknowledgements:
    def __init__(self) -> None:
        self._next = 1
        self._issued: dict[Operation, Operation | None] = {}
        """By issued operation: the requested operation that caused it."""
        self._open: dict[Operation, set[Operation]] = {}
        """By requested operation: the issued operations that are still in flight."""

    def number(self) -> int:
        number, self._next = self._next, self._next + 1
        return number

    def issue(self, link: int) -> int:
        """A number for an operation that is about to be issued."""
        number = self.number()
        self._issued[link, number] = None
        return number

    def begin(self, asked: Operation, issued: Iterable[Operation]) -> bool:
        """Register a requested operation and those it caused; True if all are done already."""
        under_way = {one for one in issued if one in self._issued}
        if not under_way:
            return True
        self._open[asked] = under_way
        for one in under_way:
            self._issued[one] = asked
        return False

    def done(self, link: int, number: int) -> list[Operation]:
        """An issued operation is done; returns the requested operations that are done with it."""
        if (link, number) not in self._issued:
            raise NetworkError(
                f"an acknowledgement of operation {number} over link {link}",
                detail="no such operation is under way",
            )
        return self._end((link, number))

    def fail(self, link: int) -> list[Operation]:
        """A session has failed: tables will be compared, so nothing is awaited over it."""
        ended: list[Operation] = []
        for issued in [one for one in self._issued if one[0] == link]:
            ended += self._end(issued)
        for asked in [one for one in self._open if one[0] == link]:
            for issued in self._open.pop(asked):
                self._issued[issued] = None
        return [one for one in ended if one[0] != link]

    def _end(self, issued: Operation) -> list[Operation]:
        asked = self._issued.pop(issued)
        if asked is None or asked not in self._open:
            return []
        self._open[asked].discard(issued)
        if self._open[asked]:
            return []
        del self._open[asked]
        return [asked]
