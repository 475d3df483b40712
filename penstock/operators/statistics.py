"""Learned statistics of predicates: probability, cost, correlation.

Learned online from evaluations. Old observations decay, so drift is followed; new predicates start
from a prior, the average of those with the same operator if there are any. Everything is bounded,
depends on the observations alone, and can be stored as plain data.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields
from itertools import combinations, islice
from math import sqrt
from typing import Any

from penstock.errors import PenstockError

MEMORY_EVALUATIONS = 1_000
"""An observation weighs 1/e after this many others of the same predicate. A change of p from 0.1 to
0.9 shows half after 700 of them; the standard error of p = 0.5 stays at 0.011."""
PRIOR_WEIGHT = 4.0
"""The weight of a prior in observations."""
PRIOR_PROBABILITY = 0.25
"""For a predicate of an unknown operator: conditions on rare things are more frequent than on
common ones."""
PRIOR_COST = 1.0
MOST_PREDICATES = 1_000_000
"""Some 200 MB; the least recently observed are evicted first."""
MOST_PAIRS = 4_096
PREDICATES_PER_EVENT = 8
"""Predicates per event whose pairs are counted: 28 pairs."""


@dataclass(slots=True)
class Observed:
    """For one predicate or operator; weights, not counts, because old observations decay."""

    total: float = 0.0
    true: float = 0.0
    timed: float = 0.0
    cost: float = 0.0

    def add(self, truth: bool, cost: float | None, keep: float) -> None:
        self.total = self.total * keep + 1.0
        self.true = self.true * keep + truth
        if cost is not None:
            self.timed = self.timed * keep + 1.0
            self.cost = self.cost * keep + cost


@dataclass(slots=True)
class PairCounts:
    """How often two predicates were true or false together, in events where both were evaluated."""

    both: float = 0.0
    first: float = 0.0
    second: float = 0.0
    neither: float = 0.0

    @property
    def total(self) -> float:
        return self.both + self.first + self.second + self.neither

    def add(self, first: bool, second: bool, keep: float) -> None:
        self.both = self.both * keep + (first and second)
        self.first = self.first * keep + (first and not second)
        self.second = self.second * keep + (second and not first)
        self.neither = self.neither * keep + (not first and not second)

    @property
    def correlation(self) -> float:
        """The phi coefficient, from -1 to 1; 0 if one of them was constant."""
        a, b = self.both + self.first, self.both + self.second
        spread = a * (self.total - a) * b * (self.total - b)
        product = self.both * self.neither - self.first * self.second
        return product / sqrt(spread) if spread > 0 else 0.0


class PredicateStatistics:
    """Estimates for schedules. Predicates are numbers, operators names or other plain values."""

    def __init__(
        self,
        *,
        memory_evaluations: float = MEMORY_EVALUATIONS,
        most_predicates: int = MOST_PREDICATES,
        most_pairs: int = MOST_PAIRS,
    ) -> None:
        if memory_evaluations < 1 or most_predicates < 1 or most_pairs < 2:
            raise PenstockError(
                "statistics need room for an evaluation, a predicate and two pairs at least"
            )
        self._keep = 1.0 - 1.0 / memory_evaluations
        self._most_predicates, self._most_pairs = most_predicates, most_pairs
        self._predicates: dict[int, Observed] = {}
        """Most recently observed last."""
        self._operators: dict[Hashable, Observed] = {}
        self._operator_of: dict[int, Hashable] = {}
        self._declared: dict[Hashable, float] = {}
        self._pairs: dict[tuple[int, int], PairCounts] = {}

    def declare(self, predicate: int, operator: Hashable = None, cost: float | None = None) -> None:
        """Set the operator of a predicate, and the expected cost of its evaluations."""
        self._operator_of[predicate] = operator
        if cost is not None:
            if not 0 < cost < float("inf"):
                raise PenstockError(f"the cost of an operator is a positive number, not {cost}")
            self._declared[operator] = cost

    def forget(self, predicate: int) -> None:
        """The predicate is no longer used. What was learned about its operator stays."""
        self._operator_of.pop(predicate, None)
        self._predicates.pop(predicate, None)
        self._pairs = {pair: n for pair, n in self._pairs.items() if predicate not in pair}

    def observe(self, predicate: int, truth: bool, cost: float | None = None) -> None:
        """One evaluation; `cost` in the unit of all costs, None if it was not measured."""
        observed = self._predicates.pop(predicate, None) or Observed()
        self._predicates[predicate] = observed
        if len(self._predicates) > self._most_predicates:
            del self._predicates[next(iter(self._predicates))]
        operator = self._operators.setdefault(self._operator_of.get(predicate), Observed())
        for one in (observed, operator):
            one.add(truth, cost, self._keep)

    def observe_event(self, truths: Mapping[int, bool]) -> None:
        """Count the pairs of one event, among the predicates that were evaluated first."""
        known = sorted(islice(truths.items(), PREDICATES_PER_EVENT))
        for (a, a_truth), (b, b_truth) in combinations(known, 2):
            self._pairs.setdefault((a, b), PairCounts()).add(a_truth, b_truth, self._keep)
        if len(self._pairs) > self._most_pairs:
            kept = sorted(self._pairs, key=lambda pair: (-self._pairs[pair].total, pair))
            self._pairs = {pair: self._pairs[pair] for pair in kept[: self._most_pairs // 2]}

    def probability(self, predicate: int) -> float:
        """Strictly between 0 and 1, whatever was observed."""
        operator = self._operator(predicate)
        prior = _mean(operator.true, operator.total, PRIOR_PROBABILITY)
        observed = self._predicates.get(predicate)
        return _mean(observed.true, observed.total, prior) if observed else prior

    def cost(self, predicate: int) -> float:
        operator = self._operator(predicate)
        declared = self._declared.get(self._operator_of.get(predicate), PRIOR_COST)
        prior = _mean(operator.cost, operator.timed, declared)
        observed = self._predicates.get(predicate)
        return _mean(observed.cost, observed.timed, prior) if observed else prior

    def correlation(self, a: int, b: int) -> float | None:
        """Of two predicates, from -1 to 1; None if they were not seen together."""
        counts = self._pairs.get((min(a, b), max(a, b)))
        return None if counts is None else counts.correlation

    def strongest_correlations(
        self, count: int, fewest: float = 30.0
    ) -> list[tuple[int, int, float]]:
        """The largest of either sign first, of pairs seen together at least `fewest` times."""
        seen = [(pair, n.correlation) for pair, n in self._pairs.items() if n.total >= fewest]
        seen.sort(key=lambda one: (-abs(one[1]), one[0]))
        return [(a, b, correlation) for (a, b), correlation in seen[:count]]

    def to_plain(self) -> dict[str, Any]:
        """Plain data, from which `from_plain` restores the same statistics."""
        return {
            "version": 1,
            "memory_evaluations": 1.0 / (1.0 - self._keep),
            "most_predicates": self._most_predicates,
            "most_pairs": self._most_pairs,
            "predicates": [[n, *_values(o)] for n, o in self._predicates.items()],
            "operators": [[name, *_values(o)] for name, o in self._operators.items()],
            "operator_of": [list(one) for one in self._operator_of.items()],
            "declared": [list(one) for one in self._declared.items()],
            "pairs": [[a, b, *_values(n)] for (a, b), n in self._pairs.items()],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> PredicateStatistics:
        if plain.get("version") != 1:
            raise PenstockError(
                f"statistics of version {plain.get('version')!r} cannot be read",
                hint="They are learnt again if they are left out.",
            )
        made = cls(
            memory_evaluations=plain["memory_evaluations"],
            most_predicates=plain["most_predicates"],
            most_pairs=plain["most_pairs"],
        )
        made._predicates = {n: Observed(*values) for n, *values in plain["predicates"]}
        made._operators = {name: Observed(*values) for name, *values in plain["operators"]}
        made._operator_of = dict(plain["operator_of"])
        made._declared = dict(plain["declared"])
        made._pairs = {(a, b): PairCounts(*values) for a, b, *values in plain["pairs"]}
        return made

    def _operator(self, predicate: int) -> Observed:
        return self._operators.get(self._operator_of.get(predicate)) or Observed()


def _mean(total: float, weight: float, prior: float) -> float:
    return (total + PRIOR_WEIGHT * prior) / (weight + PRIOR_WEIGHT)


def _values(one: Observed | PairCounts) -> list[float]:
    return [getattr(one, field.name) for field in fields(one)]
