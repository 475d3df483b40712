"""Operations and their acknowledgements: one is done when all that follow from it are.

Operations have numbers of the node that issued them, so several that are under way over one link
are not confused.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from penstock.errors import NetworkError

Operation: TypeAlias = tuple[int, int]
"""A link and a number: asked for over that link, or issued to it."""


class Acknowledgements:
    def __init__(self) -> None:
        self._next = 1
        self._issued: dict[Operation, Operation | None] = {}
        """What was issued, and for which operation that was asked for."""
        self._open: dict[Operation, set[Operation]] = {}
        """What was asked for, and what of it is still under way."""

    def number(self) -> int:
        number, self._next = self._next, self._next + 1
        return number

    def issue(self, link: int) -> int:
        """A number for an operation that is about to be issued."""
        number = self.number()
        self._issued[link, number] = None
        return number

    def begin(self, asked: Operation, issued: Iterable[Operation]) -> bool:
        """Something was asked for, and these follow from it. Whether it is done already."""
        under_way = {one for one in issued if one in self._issued}
        if not under_way:
            return True
        self._open[asked] = under_way
        for one in under_way:
            self._issued[one] = asked
        return False

    def done(self, link: int, number: int) -> list[Operation]:
        """What was issued has been done; returns what was asked for and is done with it."""
        if (link, number) not in self._issued:
            raise NetworkError(
                f"an acknowledgement of operation {number} over link {link}",
                detail="no such operation is under way",
            )
        return self._end((link, number))

    def fail(self, link: int) -> list[Operation]:
        """A session has failed: tables will be compared, so nothing is waited for any more."""
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
