"""The usual alternative: a partially ordered set of filters, as in Siena.

A filter is below those that cover it. A message is compared with the roots, and with the filters
below one only if that one matches.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.catalog import Relation
from penstock.messages import Message
from penstock.routing.interests import Interest, concerns


@dataclass(eq=False)
class _Filter:
    interest: Interest | None
    link: int
    below: list[_Filter] = field(default_factory=list)


class Poset:
    def __init__(self, base: Relation) -> None:
        self._base = base
        self._root = _Filter(None, 0)

    def add(self, interest: Interest, link: int) -> None:
        at = self._root
        while True:
            covers = (f for f in at.below if f.interest and f.interest.covers(interest))
            following = next(covers, None)
            if following is None:
                break
            at = following
        fresh = _Filter(interest, link)
        fresh.below = [f for f in at.below if f.interest and interest.covers(f.interest)]
        at.below = [f for f in at.below if f not in fresh.below] + [fresh]

    def links(self, message: Message) -> int:
        found, waiting = 0, [self._root]
        while waiting:
            for one in waiting.pop().below:
                if one.interest and concerns(message, one.interest, self._base):
                    found |= 1 << one.link
                    waiting.append(one)
        return found
