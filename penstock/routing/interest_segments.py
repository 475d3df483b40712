"""An immutable segment: interests of one space in one tree; members can only be removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import numpy as np

from penstock.predicates.intervals import EVERYTHING
from penstock.routing.cut_codes import HIGHEST, LOWEST, CutCodes
from penstock.routing.interest_kernels import (
    Codes,
    Ints,
    Words,
    boxes_within,
    links_within,
    plant,
    strike_out,
)
from penstock.routing.probes import NUMBERS, Probe, Sides

_WORD = 64


class Segment:
    """Members are identified by name; `links` gives the link of each."""

    def __init__(self, members: Mapping[int, tuple[Sides, int]]) -> None:
        self.names = list(members)
        sides = [one for one, _ in members.values()]
        links = [link for _, link in members.values()]
        self.dimensions = sorted(set(chain.from_iterable(sides)))
        self._codes = {d: _codes_of(d, sides) for d in self.dimensions}
        self._words = max(links) // _WORD + 1
        self._tree = plant(self._boxes(sides), _link_words(links, self._words), self._split_by())
        self._places: dict[int, int] | None = None
        self.alive = len(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def _split_by(self) -> Ints:
        """All ends except those of subscription numbers, which hardly any query bounds."""
        width = len(self.dimensions)
        chosen = [i for i, dimension in enumerate(self.dimensions) if dimension != NUMBERS]
        columns = [*chosen, *(width + i for i in chosen)]
        return np.array(columns or range(max(1, 2 * width)), np.int64)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._tree)

    def _boxes(self, sides: Sequence[Sides]) -> Codes:
        width = len(self.dimensions)
        boxes = np.empty((len(sides), max(1, 2 * width)), np.int32)
        boxes[:] = 0
        for i, dimension in enumerate(self.dimensions):
            intervals = [one.get(dimension, EVERYTHING) for one in sides]
            codes = self._codes[dimension]
            boxes[:, i] = codes.all_codes([interval.low for interval in intervals])
            boxes[:, width + i] = codes.all_codes([interval.high for interval in intervals])
        return boxes

    def strike_out(self, name: int) -> bool:
        """Remove a member; False if it is not held."""
        if self._places is None:
            order = self._tree.order.tolist()
            self._places = {self.names[number]: place for place, number in enumerate(order)}
        place = self._places.pop(name, None)
        if place is None:
            return False
        strike_out(self._tree, place)
        self.alive -= 1
        return True

    def living(self) -> list[int]:
        is_alive = np.empty(len(self.names), np.bool_)
        is_alive[self._tree.order] = self._tree.alive
        return [self.names[number] for number in np.flatnonzero(is_alive).tolist()]

    def add_links(self, probes: Sequence[Probe], asked: Ints, found: Words) -> None:
        """Add the links of members that admit probe i to row asked[i] of `found`."""
        at_least, at_most = self._ranges(probes)
        links_within(self._tree, at_least, at_most, asked, found[:, : self._words])

    def admitting(self, probes: Sequence[Probe], links: int, most: int) -> list[int]:
        """At most `most` members of the given links (a bit each) that admit one of the probes."""
        return self._found(*self._ranges(probes), links, most)

    def within(self, outer: Sides, links: int, most: int) -> list[int]:
        """At most `most` members of the given links that lie within a box."""
        if any(dimension not in self._codes for dimension in outer):
            return []  # no member bounds that dimension
        width = len(self.dimensions)
        at_least = np.full((1, max(1, 2 * width)), LOWEST, np.int32)
        at_most = np.full((1, max(1, 2 * width)), HIGHEST, np.int32)
        for i, dimension in enumerate(self.dimensions):
            interval = outer.get(dimension)
            if interval is not None:
                at_least[0, i] = self._codes[dimension].code(interval.low)
                at_most[0, width + i] = self._codes[dimension].code(interval.high)
        return self._found(at_least, at_most, links, most)

    def _found(self, at_least: Codes, at_most: Codes, links: int, most: int) -> list[int]:
        words = np.array(
            [links >> _WORD * word & (1 << _WORD) - 1 for word in range(self._words)], np.uint64
        )
        numbers = boxes_within(self._tree, at_least, at_most, words, most)
        return [self.names[number] for number in numbers.tolist()]

    def _ranges(self, probes: Sequence[Probe]) -> tuple[Codes, Codes]:
        """Probes as ranges: high ends have no lower bound by default, low ends no upper bound."""
        width = len(self.dimensions)
        at_least = np.full((len(probes), max(1, 2 * width)), LOWEST, np.int32)
        at_most = np.full((len(probes), max(1, 2 * width)), HIGHEST, np.int32)
        for i, dimension in enumerate(self.dimensions):
            cuts = [(q, probe[dimension]) for q, probe in enumerate(probes) if dimension in probe]
            if cuts:
                rows = [q for q, _ in cuts]
                codes = self._codes[dimension]
                at_most[rows, i] = codes.all_codes([low for _, (low, _) in cuts])
                at_least[rows, width + i] = codes.all_codes([high for _, (_, high) in cuts])
        return at_least, at_most


def _codes_of(dimension: int, sides: Iterable[Sides]) -> CutCodes:
    bound = (one[dimension] for one in sides if dimension in one)
    return CutCodes.of_cuts(chain.from_iterable(bound))


def _link_words(links: Sequence[int], words: int) -> Words:
    bits = np.zeros((len(links), words), np.uint64)
    numbers = np.array(links, np.int64)
    bits[np.arange(len(links)), numbers // _WORD] = np.uint64(1) << (numbers % _WORD).astype(
        np.uint64
    )
    return bits
