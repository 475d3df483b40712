"""Subscriptions, publications and advertisements like those of Li, Hou and Jacobsen (2005).

The paper does not say how many predicates a subscription has, of which operators, or how attributes
are combined. Here subscriptions have two or three predicates over neighbours in the list of
attributes. The values of an attribute are as many as its distinct predicates: 100 in set A, 250 in
set B. Nearly all predicates are equalities; a few (27 in set A, 54 in set B) are < and > with
values from the middle half of the range. These two numbers were fitted to the published covered
shares of 200,000 subscriptions, 75 % and 45 %, so these shares confirm nothing; everything else
that is compared was not fitted. With fewer subscriptions predicates are scaled down so that as many
of the possible pairs occur. Publications have values for three neighbouring attributes.
Advertisements, which the paper does not describe either, are halves of the ranges of three
attributes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from penstock.catalog import Row
from penstock.lab.experiments.diagram_order import ATTRIBUTES, RELATION
from penstock.matching import EventBatch
from penstock.predicates.boxes import Box, box
from penstock.predicates.intervals import ABOVE_NULL, TOP, Interval, below
from penstock.routing.diagrams.merging import filter_of
from penstock.routing.interests import Interest, SpaceShape
from penstock.routing.merging.measures import UniformMeasure

SETS = {"A": 2_000, "B": 5_000}
"""Distinct predicates, with 200,000 subscriptions."""
RANGES = {"A": 27, "B": 54}
"""How many of these are < and >."""
PUBLISHED_SIZE = 200_000
PUBLISHED_ATTRIBUTES, MORE_ATTRIBUTES = 3, 6
"""Of a publication, which the paper does not state: the more, the more publications are wanted, and
the fewer are false positives. Figure 15 has both."""
SHAPE = SpaceShape(0, RELATION, 0)


@dataclass(frozen=True, slots=True)
class Workload:
    """A set of subscriptions. Scaled down, it has fewer values, so that pairs are as frequent."""

    name: str
    subscriptions: int
    seed: int = 11
    of: int = 0
    """The first `subscriptions` of this many; 0: of themselves."""

    @property
    def values(self) -> int:
        """Of each attribute: as many as it has distinct predicates."""
        share = math.sqrt((self.of or self.subscriptions) / PUBLISHED_SIZE)
        return max(6, round(SETS[self.name] / ATTRIBUTES * share))

    def boxes(self) -> list[Box]:
        random = np.random.default_rng([self.seed, SETS[self.name]])
        known = [self._predicates(random, column) for column in range(ATTRIBUTES)]
        count = self.subscriptions
        starts = random.integers(0, ATTRIBUTES, count).tolist()
        sizes = random.integers(2, 4, count).tolist()
        chosen = random.integers(0, self.values, (count, 3)).tolist()
        found = []
        for start, size, picks in zip(starts, sizes, chosen, strict=True):
            columns = [(start + i) % ATTRIBUTES for i in range(size)]
            found.append(box({c: known[c][pick] for c, pick in zip(columns, picks, strict=False)}))
        return found

    def _predicates(self, random: np.random.Generator, column: int) -> list[Interval]:
        values, ranges = self.values, RANGES[self.name]
        own = ranges // ATTRIBUTES + (column < ranges % ATTRIBUTES)
        cuts = (random.permutation(max(own, values // 2))[:own] + values // 4).tolist()
        found = [
            Interval(below(value), below(value + 1)) for value in range(values) if value not in cuts
        ]
        for i, value in enumerate(cuts):
            less, more = Interval(ABOVE_NULL, below(value)), Interval(below(value + 1), TOP)
            found.append(less if (column + i) % 2 else more)
        return found

    def measure(self) -> UniformMeasure:
        return UniformMeasure(SHAPE, dict.fromkeys(range(ATTRIBUTES), (0, self.values - 1)))

    def publications(
        self, count: int, seed: int = 5, attributes: int = PUBLISHED_ATTRIBUTES
    ) -> EventBatch:
        """With a few neighbouring attributes each: with all twenty, everything would match some
        subscription, and no publication could be a false positive."""
        random = np.random.default_rng(seed)
        starts = random.integers(0, ATTRIBUTES, count).tolist()
        values = random.integers(0, self.values, (count, attributes)).tolist()
        rows: list[Row] = []
        for start, picked in zip(starts, values, strict=True):
            given = {(start + i) % ATTRIBUTES: value for i, value in enumerate(picked)}
            rows.append(tuple(given.get(column) for column in range(ATTRIBUTES)))
        return EventBatch.of_rows(RELATION, rows)

    def advertisements(self) -> list[Interest]:
        half = Interval(ABOVE_NULL, below(self.values // 2))
        return [filter_of(box({column: half})) for column in range(3)]
