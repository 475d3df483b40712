"""Subscriptions that share predicates: the workload of section 5.2 of Liu et al. (2007).

Predicates have a popularity, uniform in [0, 1] or Zipf; a subscription has between 3 and some
maximum of them, drawn by popularity without repetition. What the paper does not say is chosen
here: predicates are true independently of each other, with probabilities u^k for u uniform in [0,
1] (skewed: most are rarely true), uniform in an interval from 0, or all equal, scaled such that an
event matches 0.2 % of the subscriptions in expectation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

FEWEST = 3
MATCHING_SHARE = 0.002
SPREADS = ("skewed", "uniform", "equal")


@dataclass(frozen=True, slots=True)
class Overlapping:
    """Parameters of table 1."""

    subscriptions: int
    predicates: int
    exponent: float = 0.0
    """Of Zipf's law; 0: popularity uniform in [0, 1]."""
    longest: int = 5
    spread: str = "skewed"
    seed: int = 1

    def draw(self) -> OverlappingDraw:
        random = np.random.default_rng([self.seed, self.subscriptions, self.predicates])
        weights = random.random(self.predicates)
        if self.exponent:  # so that numbers are independent of popularity
            ranks = random.permutation(self.predicates) + 1.0
            weights = np.power(ranks, -self.exponent, dtype=np.float64)
        lengths = random.integers(FEWEST, self.longest + 1, self.subscriptions)
        chosen = _draw_distinct(random, weights, self.subscriptions, self.longest)
        chains = [
            tuple(row[:length])
            for row, length in zip(chosen.tolist(), lengths.tolist(), strict=True)
        ]
        flat = np.concatenate([np.array(chain) for chain in chains])
        shape = random.random(self.predicates)
        starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
        probabilities = _scaled(shape, flat, starts, self.spread)
        return OverlappingDraw(chains, probabilities, random)


@dataclass(frozen=True, slots=True)
class OverlappingDraw:
    chains: list[tuple[int, ...]]
    probabilities: Floats
    random: np.random.Generator

    def event(self) -> npt.NDArray[np.bool_]:
        """The truth of every predicate."""
        return self.random.random(len(self.probabilities)) < self.probabilities

    def costs(self, ratio: float) -> Floats:
        """Costs of evaluations: log-uniform, with this ratio of the largest to the smallest."""
        spread: Floats = ratio ** self.random.random(len(self.probabilities))
        return spread


def _draw_distinct(random: np.random.Generator, weights: Floats, count: int, width: int) -> Numbers:
    """Rows of distinct numbers, drawn by weight: duplicates are drawn again."""
    bounds = np.cumsum(weights / weights.sum())
    bounds[-1] = 1.0
    rows = np.searchsorted(bounds, random.random((count, width)), side="right")
    while True:
        order = np.argsort(rows, axis=1, kind="stable")
        ordered = np.take_along_axis(rows, order, axis=1)
        repeated = np.zeros_like(rows, np.bool_)
        np.put_along_axis(
            repeated,
            order,
            np.concatenate(
                [np.zeros((count, 1), np.bool_), ordered[:, 1:] == ordered[:, :-1]], axis=1
            ),
            axis=1,
        )
        if not repeated.any():
            return rows
        rows[repeated] = np.searchsorted(bounds, random.random(int(repeated.sum())), side="right")


def _scaled(shape: Floats, flat: Numbers, starts: Numbers, spread: str) -> Floats:
    """Probabilities of the wanted spread, scaled so that the wanted share matches."""
    low, high = 1e-3, 0.999
    while high - low > 1e-6:
        mean = (low + high) / 2
        probabilities = _spread(shape, mean, spread)
        matching = np.exp(np.add.reduceat(np.log(probabilities)[flat], starts)).mean()
        low, high = (mean, high) if matching < MATCHING_SHARE else (low, mean)
    return _spread(shape, low, spread)


def _spread(shape: Floats, mean: float, spread: str) -> Floats:
    if spread == "equal":
        return np.full_like(shape, mean)
    found = np.minimum(2 * mean * shape, 1.0) if spread == "uniform" else shape ** (1 / mean - 1)
    return found.clip(1e-6, 1 - 1e-6)
