"""Matching workloads: conjunctions of integer ranges, and events, from fixed seeds.

======  ==========================================================================================
MA, MB  3 to 7 predicates over 20 attributes, drawn from about 2,000 / 5,000 distinct ones
MH      1 to 4 broad predicates: every ninth pair of event and subscription matches
MX      as MA, with so many distinct predicates (about 154,000) that few are shared
G20     equality over 30 attributes of 20 values each, Zipf; low attributes are asked for most
G3      the same with 3 values each
JLOW    two ranges per subscription, each its own, over [0, 100,000]; narrow
JHIGH   the same, broad
======  ==========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.catalog import Column, IntegerType, Relation
from penstock.matching.events import EventBatch
from penstock.matching.range_boxes import RangeBoxes

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Random = np.random.Generator

_EVENT_SEED_STEP = 77
"""Events are drawn independently of subscriptions, so that adding subscriptions keeps the
events."""


@dataclass(frozen=True, slots=True)
class MatchingWorkload:
    name: str
    relation: Relation
    boxes: RangeBoxes
    events: EventBatch


def _zipf(size: int, exponent: float = 1.0) -> Floats:
    weights = 1 / np.arange(1, size + 1) ** exponent
    probabilities: Floats = weights / weights.sum()
    return probabilities


def _workload(
    name: str, offsets: Ints, columns: Ints, lows: Ints, highs: Ints, events: Ints
) -> MatchingWorkload:
    width = events.shape[1]
    relation = Relation(
        name.lower(), tuple(Column(f"a{i}", IntegerType()) for i in range(width)), (), True
    )
    boxes = RangeBoxes(
        np.arange(len(offsets) - 1, dtype=np.int64),
        offsets.astype(np.int64),
        columns.astype(np.int32),
        lows.astype(np.int64),
        highs.astype(np.int64),
    )
    arrays = {f"a{i}": np.ascontiguousarray(events[:, i]) for i in range(width)}
    return MatchingWorkload(name, relation, boxes, EventBatch.of_arrays(relation, arrays))


def _offsets(sizes: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(sizes)])


@dataclass(frozen=True, slots=True)
class MixedPredicates:
    """Equality and ranges over integers below `domain`, a few predicates shared by many."""

    distinct: int
    fewest: int = 3
    most: int = 7
    equality_share: float = 0.3
    widest: float = 0.5
    attributes: int = 20
    domain: int = 1000
    seed: int = 2

    def __call__(self, name: str, subscriptions: int, events: int) -> MatchingWorkload:
        random = np.random.default_rng(self.seed)
        per_attribute = self.distinct // self.attributes
        popular = random.permutation(self.domain)
        lows, highs = self._predicates(random, popular)
        sizes = random.integers(self.fewest, self.most + 1, size=subscriptions)
        order = np.argsort(random.random((subscriptions, self.attributes)), axis=1)
        drawn = random.choice(
            per_attribute, size=(subscriptions, self.attributes), p=_zipf(per_attribute, 0.5)
        )
        box, place = np.nonzero(np.arange(self.attributes)[None, :] < sizes[:, None])
        columns = order[box, place]
        predicates = columns * per_attribute + drawn[box, place]
        return _workload(
            name,
            _offsets(sizes),
            columns,
            lows[predicates],
            highs[predicates],
            self._events(popular, events),
        )

    def _predicates(self, random: Random, popular: Ints) -> tuple[Ints, Ints]:
        """Equality with popular values, one-sided and two-sided ranges."""
        domain, widest = self.domain, self.widest
        lows, highs = np.zeros((2, self.distinct), np.int64)
        cumulated = _zipf(domain, 0.8).cumsum()
        cumulated /= cumulated[-1]
        narrow, broad = int(domain * 0.05), int(domain * (0.1 + widest))
        for i in range(self.distinct):
            kind = random.random()
            if kind < self.equality_share:
                place = np.searchsorted(cumulated, random.random(), "right")
                lows[i] = highs[i] = popular[place]
            elif kind < self.equality_share + 0.15:
                highs[i] = random.integers(narrow, broad)
            elif kind < self.equality_share + 0.30:
                highs[i] = domain - 1
                lows[i] = domain - random.integers(narrow, broad)
            else:
                width = random.integers(narrow, int(domain * widest))
                lows[i] = random.integers(0, domain - width)
                highs[i] = lows[i] + width
        return lows, highs

    def _events(self, popular: Ints, count: int) -> Ints:
        """Half of the values are popular ones."""
        random = np.random.default_rng(self.seed + _EVENT_SEED_STEP)
        shape = (count, self.attributes)
        return np.where(
            random.random(shape) < 0.5,
            popular[random.choice(self.domain, size=shape, p=_zipf(self.domain, 0.8))],
            random.integers(0, self.domain, size=shape),
        )


@dataclass(frozen=True, slots=True)
class ZipfEqualities:
    """Equality only; attribute `a` is constrained with probability `first * decay ** a`."""

    values: int
    attributes: int = 30
    first: float = 0.98
    decay: float = 0.82
    seed: int = 1

    def __call__(self, name: str, subscriptions: int, events: int) -> MatchingWorkload:
        random = np.random.default_rng(self.seed)
        asked = random.random((subscriptions, self.attributes)) < (
            self.first * self.decay ** np.arange(self.attributes)
        )
        asked[asked.sum(1) == 0, 0] = True
        values = self._draw(random, subscriptions)
        box, columns = np.nonzero(asked)
        points = values[box, columns]
        drawn = self._draw(np.random.default_rng(self.seed + _EVENT_SEED_STEP), events)
        return _workload(name, _offsets(asked.sum(1)), columns, points, points, drawn)

    def _draw(self, random: Random, count: int) -> Ints:
        """Values by Zipf's law; which value is the most popular differs by attribute."""
        weights = _zipf(self.values)
        return np.stack(
            [
                np.random.default_rng(1000 + attribute).permutation(self.values)[
                    random.choice(self.values, size=count, p=weights)
                ]
                for attribute in range(self.attributes)
            ],
            axis=1,
        )


@dataclass(frozen=True, slots=True)
class OwnRanges:
    """Two ranges per subscription, all distinct, around the clusters of events."""

    scale: float
    domain: int = 100_001
    seed: int = 3

    def __call__(self, name: str, subscriptions: int, events: int) -> MatchingWorkload:
        random = np.random.default_rng(self.seed)
        clusters = random.integers(10_000, 90_000, size=(20, 2))
        centres = self._points(random, clusters, subscriptions)
        widths = np.stack(
            [
                random.normal(20_000, 5_000, subscriptions),
                random.normal(6_000, 5_000, subscriptions),
            ],
            axis=1,
        )
        halves = np.maximum(1, widths * self.scale).astype(np.int64) // 2
        lows = np.clip(centres - halves, 0, self.domain - 1)
        highs = np.clip(centres + halves, 0, self.domain - 1)
        points = self._points(np.random.default_rng(self.seed + _EVENT_SEED_STEP), clusters, events)
        offsets = np.arange(subscriptions + 1) * 2
        columns = np.tile([0, 1], subscriptions)
        return _workload(name, offsets, columns, lows.ravel(), highs.ravel(), points)

    def _points(self, random: Random, clusters: Ints, count: int) -> Ints:
        """Four in five near one of the clusters, the rest anywhere."""
        near = clusters[random.choice(len(clusters), size=count, p=_zipf(len(clusters), 0.5))]
        points = near + random.normal(0, 9_000, size=(count, 2))
        anywhere = random.integers(0, self.domain, size=(count, 2))
        chosen = random.random(count) < 0.2
        points[chosen] = anywhere[chosen]
        return np.clip(points, 0, self.domain - 1).astype(np.int64)


WORKLOADS: dict[str, Callable[[str, int, int], MatchingWorkload]] = {
    "MA": MixedPredicates(2_000),
    "MB": MixedPredicates(5_000),
    "MH": MixedPredicates(2_000, fewest=1, most=4, equality_share=0.1, widest=0.6),
    "MX": MixedPredicates(330_000),
    "G20": ZipfEqualities(20),
    "G3": ZipfEqualities(3),
    "JLOW": OwnRanges(0.15),
    "JHIGH": OwnRanges(1.0),
}


def matching_workload(name: str, subscriptions: int, events: int = 50_000) -> MatchingWorkload:
    """The workload of that name; ValueError if there is none."""
    if name not in WORKLOADS:
        raise ValueError(f"no workload is called {name!r}; there are {', '.join(WORKLOADS)}")
    return WORKLOADS[name](name, subscriptions, events)
