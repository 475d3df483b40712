"""Covering among the interests that a node sends over one link.

To the receiver they all come from one last hop, this node; so an interest that another one covers
need not be sent. Only the *maximal* interests are sent. A covered one is stored with one of its
covers, and reconsidered when that one is removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from penstock.routing.interest_index import InterestIndex
from penstock.routing.interests import Interest, Shapes, shape_of


@dataclass(slots=True)
class Changed:
    """Interests to send and to withdraw. Send the new ones first, so that no message is missed."""

    added: dict[int, Interest] = field(default_factory=dict)
    removed: dict[int, Interest] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)

    def add(self, name: int, interest: Interest) -> None:
        if name in self.removed:
            del self.removed[name]
        else:
            self.added[name] = interest

    def remove(self, name: int, interest: Interest) -> None:
        if name in self.added:
            del self.added[name]
        else:
            self.removed[name] = interest


class CoverTable:
    """Interests by name, of any number of spaces; a name identifies an interest's value, so a name
    is added once. `covers=False` keeps all of them maximal, for comparison."""

    def __init__(self, shapes: Shapes, *, covers: bool = True) -> None:
        self._shapes = shapes
        self._covers = covers
        self._maximal: dict[int, InterestIndex] = {}
        self._spaces: dict[int, int] = {}
        """By name of a maximal interest: its space."""
        self._below: dict[int, dict[int, Interest]] = {}
        """By name of a maximal interest: the covered ones stored with it."""
        self._cover_of: dict[int, int] = {}
        """By name of a covered interest: the maximal one it is stored with."""

    def __len__(self) -> int:
        return len(self._spaces) + len(self._cover_of)

    def __contains__(self, name: int) -> bool:
        return name in self._spaces or name in self._cover_of

    def maximal(self) -> Iterator[tuple[int, Interest]]:
        for index in self._maximal.values():
            for name, interest, _ in index.members():
                yield name, interest

    def is_maximal(self, name: int) -> bool:
        return name in self._spaces

    def cover_of(self, name: int) -> int | None:
        """The maximal interest that a covered one is stored with."""
        return self._cover_of.get(name)

    def maximal_within(self, interest: Interest) -> Iterator[tuple[int, Interest]]:
        """The maximal interests that an interest covers."""
        index = self._index(interest.space)
        return ((name, index[name]) for name in index.covered(interest))

    def insert(self, name: int, interest: Interest) -> Changed:
        changed = Changed()
        if name not in self:
            self._insert(name, interest, changed)
        return changed

    def insert_many(self, interests: Iterable[tuple[int, Interest]]) -> Changed:
        """Widest first, so that few interests are sent and withdrawn again."""
        changed = Changed()
        for name, interest in sorted(interests, key=_by_width):
            if name not in self:
                self._insert(name, interest, changed)
        return changed

    def remove(self, name: int) -> Changed:
        changed = Changed()
        cover = self._cover_of.pop(name, None)
        if cover is not None:
            del self._below[cover][name]
        elif name in self._spaces:
            interest, freed = self._withdraw(name)
            changed.remove(name, interest)
            for one, freed_interest in sorted(freed.items(), key=_by_width):
                self._insert(one, freed_interest, changed)
        return changed

    def _insert(self, name: int, interest: Interest, changed: Changed) -> None:
        index = self._index(interest.space)
        if self._covers:
            cover = index.covering(interest)
            if cover is not None:
                self._below.setdefault(cover, {})[name] = interest
                self._cover_of[name] = cover
                return
            for covered in index.covered(interest):
                self._subordinate(covered, name, changed)
        index.add(name, interest)
        self._spaces[name] = interest.space
        changed.add(name, interest)

    def _subordinate(self, covered: int, cover: int, changed: Changed) -> None:
        """Move a maximal interest, and the covered ones stored with it, below a new one."""
        interest, freed = self._withdraw(covered)
        changed.remove(covered, interest)
        below = self._below.setdefault(cover, {})
        for name, one in (*freed.items(), (covered, interest)):
            below[name] = one
            self._cover_of[name] = cover

    def _withdraw(self, name: int) -> tuple[Interest, dict[int, Interest]]:
        space = self._spaces.pop(name)
        interest = self._maximal[space].remove(name)
        assert interest is not None
        freed = self._below.pop(name, {})
        for one in freed:
            del self._cover_of[one]
        return interest, freed

    def _index(self, space: int) -> InterestIndex:
        index = self._maximal.get(space)
        if index is None:
            index = self._maximal[space] = InterestIndex(shape_of(self._shapes, space))
        return index


def _by_width(member: tuple[int, Interest]) -> tuple[int, int]:
    """Fewer conditions first; names break ties, so that the order is the same on all nodes."""
    name, interest = member
    return len(interest.base), name


def maximal_of(interests: dict[int, Interest]) -> dict[int, Interest]:
    """Reference: the maximal interests by testing every pair. Of equal ones the first stays."""
    kept: dict[int, Interest] = {}
    for name, one in interests.items():
        if any(other.covers(one) for other in kept.values()):
            continue
        kept = {n: other for n, other in kept.items() if not one.covers(other)}
        kept[name] = one
    return kept
