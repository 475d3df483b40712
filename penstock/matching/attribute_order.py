"""The order in which attributes are tested, learnt from the subscriptions seen so far.

Two subscriptions share the nodes of a diagram as far as their lower tests agree. Li, Hou and
Jacobsen (2005) therefore place near the bottom what is likely to recur: attributes that are
constrained often (frequency) and attributes whose predicates are few or concentrated (spread);
attributes that are constrained together (co-occurrence) are placed next to each other. Orders are
listed from the top, the roots, to the bottom.
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
    """Statistics of each attribute over the conjunctions seen so far."""

    frequency: Floats
    """The share of conjunctions that constrain the attribute."""
    spread: Floats
    """Effective number of distinct predicates: 1 / (probability that two random ones are equal)."""
    together: Floats
    """The share of conjunctions that constrain both of two attributes."""

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
"""Longer conjunctions are left out of the pair counts: thousands of pairs, little information."""


def attribute_order(statistics: AttributeStatistics) -> tuple[int, ...]:
    """The attribute order for these statistics, built greedily from the bottom up.

    A column's weight is its frequency over the square root of its spread: halfway between how
    often the column recurs and how often one of its predicates recurs. Among columns of similar
    weight, the one that most often occurs together with the column just placed comes next.
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
    """A random order, the baseline for learnt ones."""
    columns = list(range(width))
    Random(seed).shuffle(columns)
    return tuple(columns)
