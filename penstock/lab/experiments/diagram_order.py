"""The effect of attribute order and sharing on the size of decision diagrams.

The sets of Li, Hou and Jacobsen (2005): 200,000 subscriptions over twenty attributes of integers,
set A from 2,000 distinct predicates and set B from 5,000. The number of predicates in a
subscription and the popularity of attributes and predicates are not in the paper; here they are 1
to 5, some attributes are constrained more often and are more concentrated than others, and
neighbouring attributes are often constrained together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
import typer

from penstock.catalog import Column, IntegerType, Relation
from penstock.lab.benchmarks._measuring import Result, progress, rates, show
from penstock.matching import EventBatch
from penstock.matching.matchers.diagram import (
    AttributeStatistics,
    DiagramMatcher,
    attribute_order,
    random_order,
)
from penstock.predicates.boxes import Box, box
from penstock.predicates.intervals import ABOVE_NULL, TOP, Interval, above, below, point

EXAMPLES = """
  penstock lab run diagram-order
  penstock lab run diagram-order --subscriptions 200000 --json
"""
COLUMNS = (
    "set",
    "order",
    "subscriptions",
    "predicates",
    "tests",
    "nodes",
    "sharing",
    "roots",
    "diagrams",
    "build_s",
    "batch_events_per_s",
)
SETS = {"A": 2_000, "B": 5_000}
ATTRIBUTES = 20
DOMAIN = 1_000
_FEWEST, _MOST = 1, 5
_EVENTS = 512
RELATION = Relation(
    "publications", tuple(Column(f"a{i}", IntegerType()) for i in range(ATTRIBUTES)), (), True
)
Order = tuple[int, ...]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Generator:
    """Subscriptions over this many distinct predicates."""

    distinct: int
    seed: int = 11

    def boxes(self, count: int) -> list[Box]:
        random = np.random.default_rng(self.seed)
        per_attribute = self.distinct // ATTRIBUTES
        popularity = random.permutation(1 / np.arange(1, ATTRIBUTES + 1) ** 0.7)
        predicates = [self._predicates(random, per_attribute) for _ in range(ATTRIBUTES)]
        concentration = random.uniform(0.2, 1.2, ATTRIBUTES)
        ranks = np.arange(1, per_attribute + 1)
        drawn = [
            random.choice(per_attribute, count, p=_shares(1 / ranks**exponent))
            for exponent in concentration
        ]
        sizes = random.integers(_FEWEST, _MOST + 1, count)
        return [
            box({c: predicates[c][drawn[c][i]] for c in self._asked(random, popularity, size)})
            for i, size in enumerate(sizes)
        ]

    def _predicates(self, random: np.random.Generator, count: int) -> list[Interval]:
        """Distinct (operator, value) pairs with =, < and >."""
        chosen = random.choice(3 * DOMAIN, count, replace=False)
        return [_interval(int(one) % 3, int(one) // 3) for one in chosen]

    def _asked(self, random: np.random.Generator, popularity: Floats, size: int) -> list[int]:
        """Attributes by popularity; every other one is followed by its neighbour."""
        asked: dict[int, None] = {}
        for column in random.choice(ATTRIBUTES, _MOST, replace=False, p=_shares(popularity)):
            asked[int(column)] = None
            if random.random() < 0.5:
                asked[int(column) ^ 1] = None
        return list(asked)[:size]


def _interval(operator: int, value: int) -> Interval:
    ranges = (point(value), Interval(ABOVE_NULL, below(value)), Interval(above(value), TOP))
    return ranges[operator]


def _shares(weights: Floats) -> Floats:
    return np.asarray(weights / weights.sum(), np.float64)


def by_frequency(statistics: AttributeStatistics) -> Order:
    """The first criterion alone."""
    return tuple(int(c) for c in np.argsort(statistics.frequency, kind="stable"))


def by_spread(statistics: AttributeStatistics) -> Order:
    """The second criterion alone."""
    return tuple(int(c) for c in np.argsort(-statistics.spread, kind="stable"))


def diagram_order(
    subscriptions: Annotated[
        int, typer.Option(help="In each set.", min=1, max=10_000_000)
    ] = 50_000,
    random_orders: Annotated[
        int, typer.Option(help="How many of them to try.", min=0, max=10_000_000)
    ] = 3,
    repetitions: Annotated[
        int, typer.Option(help="Measurements of each speed.", min=1, max=10_000_000)
    ] = 3,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Nodes and diagrams by order of attributes, for sets A and B."""
    learnt: dict[str, Callable[[AttributeStatistics], Order]] = {
        "learnt": attribute_order,
        "frequency": by_frequency,
        "spread": by_spread,
        "learnt, upside down": lambda statistics: attribute_order(statistics)[::-1],
    }
    results: list[Result] = []
    for name, distinct in SETS.items():
        with progress(f"set {name}: {subscriptions:,} subscriptions"):
            boxes = Generator(distinct).boxes(subscriptions)
            statistics = AttributeStatistics.of_boxes(ATTRIBUTES, boxes)
        orders = {kind: choose(statistics) for kind, choose in learnt.items()}
        for seed in range(random_orders):
            orders[f"random {seed + 1}"] = random_order(ATTRIBUTES, seed)
        for kind, order in orders.items():
            with progress(f"set {name}, {kind}"):
                results.append({"set": name, "order": kind, **measure(boxes, order, repetitions)})
    show(results, json, COLUMNS)


def measure(boxes: Sequence[Box], order: Order, repetitions: int) -> Result:
    """Build all diagrams with one order."""
    matcher = DiagramMatcher(RELATION, order=[RELATION.columns[c].name for c in order])
    began = time.process_time()
    matcher.insert_many((i, [one]) for i, one in enumerate(boxes))
    build = time.process_time() - began
    random = np.random.default_rng(5)
    columns = random.integers(0, DOMAIN, size=(ATTRIBUTES, _EVENTS))
    events = EventBatch.of_arrays(RELATION, {f"a{i}": column for i, column in enumerate(columns)})

    def match() -> int:
        matcher.match_batch(events)
        return len(events)

    statistics = matcher.statistics()
    tests = sum(map(len, boxes))
    nodes = len(matcher.nodes) - 2
    return {
        "subscriptions": len(boxes),
        "predicates": statistics.predicates,
        "tests": tests,
        "nodes": nodes,
        "sharing": 1 - nodes / tests,
        "roots": statistics.details["roots"],
        "diagrams": statistics.details["diagrams"],
        "bytes": statistics.bytes,
        "build_s": build,
        "batch_events_per_s": rates(match, repetitions).median,
    }


if __name__ == "__main__":
    typer.run(diagram_order)
