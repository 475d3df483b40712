"""In which order attributes are tested, learnt from the subscriptions seen so far.

Two subscriptions share the nodes of a diagram as far as their lower tests agree. Li, Hou and
Jacobsen (2005) therefore place low what is likely to be met again: attributes that are asked for
often (frequency), attributes whose predicates are few or concentrated (spread), and beside each
other those that are asked for together (co-occurrence). Orders are written from the top, the roots,
to the bottom.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

import numpy as np
import numpy.typing as npt

from penstock.predicates.boxes import Box

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class AttributeStatistics:
    """What the conjunctions of the past say about each attribute."""

    frequency: Floats
    """The share of conjunctions that ask for it."""
    spread: Floats
    """How many predicates it has in effect: 1 / (chance that two drawn at random are equal)."""
    together: Floats
    """The share of conjunctions that ask for both of two attributes."""

    @classmethod
    def of_boxes(cls, width: int, boxes: Iterable[Box]) -> AttributeStatistics:
        predicates = [Counter[object]() for _ in range(width)]
        together = np.zeros((width, width))
        count = 0
        for one in boxes:
            count += 1
            for column, interval in one:
                predicates[column][interval] += 1
            asked = [column for column, _ in one]
            if len(asked) <= _WIDEST_COUNTED:
                together[np.ix_(asked, asked)] += 1
        total = np.array([counter.total() for counter in predicates], float)
        equal = np.array([sum(n * n for n in c.values()) for c in predicates], float)
        spread = np.where(equal > 0, total**2 / np.maximum(equal, 1), 1.0)
        return cls(total / max(count, 1), spread, together / max(count, 1))


_WIDEST_COUNTED = 64
"""A conjunction of more predicates than this says little about pairs, and has thousands of them."""


def attribute_order(statistics: AttributeStatistics) -> tuple[int, ...]:
    """From statistics to an order: the bottom first, then upwards what goes well with it.

    A column's weight is its frequency over the square root of its spread: halfway between how
    often the column is met again and how often one of its predicates is. Among columns of similar
    weight, the one that is most often asked for together with the column just placed comes next.
    Measured against a local search over orders, this is within 1 % of the fewest nodes
    (docs/notes/matching-tree-and-diagrams.md).
    """
    weight = statistics.frequency / np.sqrt(np.maximum(statistics.spread, 1.0))
    left = set(range(len(weight)))
    upwards: list[int] = []
    while left:
        heaviest = max(weight[column] for column in left)
        similar = sorted(c for c in left if weight[c] >= _SIMILAR * heaviest)
        if upwards:
            below = upwards[-1]
            chosen = max(similar, key=lambda c: (statistics.together[c, below], weight[c], -c))
        else:
            chosen = max(similar, key=lambda c: (weight[c], -c))
        upwards.append(chosen)
        left.remove(chosen)
    return tuple(reversed(upwards))


_SIMILAR = 0.7
"""Co-occurrence decides between columns that have at least this share of the largest weight."""


def random_order(width: int, seed: int) -> tuple[int, ...]:
    """What an order that knows nothing looks like."""
    columns = list(range(width))
    Random(seed).shuffle(columns)
    return tuple(columns)
