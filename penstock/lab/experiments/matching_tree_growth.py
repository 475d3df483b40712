"""How the matching tree grows: node visits per event from thousands to a million subscriptions.

Aguilera et al. (1999) prove for equality tests that the expected number of nodes visited grows
sub-linearly, whatever the subscriptions. With K attributes of V values each and uniform events, a
node whose path has j outcomes is visited with probability V^-j, and there are at most
C(K+1, j+1) V^j such nodes. N subscriptions have at most (K+1) N nodes; at worst they are those
that are visited most often. `worst_case_visits` adds that up. Since C(K+1, j+1) <= (K+1) K^j, the
sum is at most

    V ((K+1) / (KV - 1))^L ((K+1) N)^(1 - L) / (1 - L)      with L = ln V / (ln V + ln K)

which is `proved_visits`.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from penstock.lab.benchmarks._measuring import Result, progress, show
from penstock.lab.plots import Series, line_plot
from penstock.lab.workloads.matching import ZipfEqualities
from penstock.matching import EventBatch
from penstock.matching.matchers.tree import TreeMatcher
from penstock.predicates.boxes import Box

EXAMPLES = """
  penstock lab run matching-tree-growth
  penstock lab run matching-tree-growth --most 1000000 --plot growth.svg
"""
COLUMNS = (
    "variant",
    "subscriptions",
    "visits_per_event",
    "matches_per_event",
    "worst_case_visits",
    "proved_visits",
    "nodes",
    "successors",
    "bytes_per_subscription",
    "build_s",
    "us_per_event",
)
_SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
_EVENTS = 500


@dataclass(frozen=True, slots=True)
class Variant:
    name: str
    most: int
    """With more subscriptions it would take too much memory, or time to build."""
    collapse: bool = True
    successors: bool = False
    index_columns: int = 0


VARIANTS = (
    Variant("plain", 100_000, collapse=False),
    Variant("collapsed", 1_000_000),
    Variant("successors", 100_000, successors=True),
    Variant("1 index attribute", 100_000, index_columns=1),
    Variant("2 index attributes", 10_000, index_columns=2),
    Variant("all three", 100_000, successors=True, index_columns=1),
)


def worst_case_visits(attributes: int, values: int, subscriptions: int) -> float:
    """The lemmas of the paper, summed up: the possible nodes, most visited ones first."""
    left = subscriptions * (attributes + 1)
    visits = 0.0
    for outcomes in range(attributes + 1):
        nodes = min(left, math.comb(attributes + 1, outcomes + 1) * values**outcomes)
        visits += nodes / values**outcomes
        left -= nodes
    return visits


def proved_exponent(attributes: int, values: int) -> float:
    return math.log(attributes) / (math.log(attributes) + math.log(values))


def proved_visits(attributes: int, values: int, subscriptions: int) -> float:
    exponent = proved_exponent(attributes, values)
    constant = values * math.pow((attributes + 1) / (attributes * values - 1), 1 - exponent)
    return constant * math.pow((attributes + 1) * subscriptions, exponent) / exponent


def fitted_exponent(points: Sequence[tuple[float, float]]) -> float | None:
    """The slope through the points on logarithmic axes."""
    if len(points) < 2:
        return None
    x, y = np.log(np.array(points, float)).T
    return float(np.polyfit(x, y, 1)[0])


def matching_tree_growth(
    most: Annotated[
        int, typer.Option(help="The largest number of subscriptions.", min=1, max=10_000_000)
    ] = 100_000,
    values: Annotated[int, typer.Option(help="Values of each attribute.", min=2, max=10_000)] = 20,
    attributes: Annotated[
        int, typer.Option(help="Attributes of an event.", min=2, max=10_000)
    ] = 30,
    plot: Annotated[Path | None, typer.Option(help="Write a plot (SVG) to this file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Node visits per event, against what is proved, with each optimisation on and off."""
    workload = ZipfEqualities(values, attributes)
    results: list[Result] = []
    for size in [size for size in _SIZES if size <= most] or [most]:
        with progress(f"{size:,} subscriptions"):
            drawn = workload("growth", size, 1)
            unions = list(drawn.boxes.unions())
        random = np.random.default_rng(7)
        rows = random.integers(0, values, size=(attributes, _EVENTS))
        events = EventBatch.of_arrays(
            drawn.relation, {f"a{i}": column for i, column in enumerate(rows)}
        )
        for variant in VARIANTS:
            if size <= variant.most:
                with progress(f"{variant.name}, {size:,} subscriptions"):
                    results.append(
                        {
                            **measure(variant, unions, events),
                            "worst_case_visits": worst_case_visits(attributes, values, size),
                            "proved_visits": proved_visits(attributes, values, size),
                        }
                    )
    exponents: dict[str, object] = {
        variant.name: fitted_exponent(points_of(results, variant.name, "visits_per_event"))
        for variant in VARIANTS
    }
    exponents["proved"] = proved_exponent(attributes, values)
    if plot is not None:
        plot.write_text(drawn_growth(results), encoding="utf-8")
    show(results, json, COLUMNS, exponents=exponents)


def measure(
    variant: Variant, unions: Sequence[tuple[int, Sequence[Box]]], events: EventBatch
) -> Result:
    """Build one tree and match all events."""
    tree = TreeMatcher(
        events.relation,
        collapse=variant.collapse,
        successors=variant.successors,
        index_columns=variant.index_columns,
    )
    gc.disable()  # millions of nodes and no garbage: collections would only slow the build
    try:
        began = time.process_time()
        tree.insert_many(unions)
        tree.analyse()
        built = time.process_time()
        pairs = tree.match_batch(events)
        matched = time.process_time()
    finally:
        gc.enable()
    statistics = tree.statistics()
    return {
        "variant": variant.name,
        "subscriptions": len(unions),
        "visits_per_event": tree.visits / len(events),
        "matches_per_event": len(pairs) / len(events),
        "nodes": statistics.details["nodes"],
        "successors": statistics.details["successors"],
        "bytes_per_subscription": statistics.bytes / len(unions),
        "build_s": built - began,
        "us_per_event": (matched - built) / len(events) * 1e6,
    }


def points_of(results: Sequence[Result], variant: str, value: str) -> list[tuple[float, float]]:
    """A value by number of subscriptions."""
    chosen = [result for result in results if result["variant"] == variant]
    return [(float(str(one["subscriptions"])), float(str(one[value]))) for one in chosen]


def drawn_growth(results: Sequence[Result]) -> str:
    """Visits of some variants, and the bounds above them."""
    series = [
        Series(name, points_of(results, name, "visits_per_event"))
        for name in ("plain", "collapsed", "all three")
    ]
    series += [
        Series("worst case", points_of(results, "collapsed", "worst_case_visits")),
        Series("proved", points_of(results, "collapsed", "proved_visits")),
    ]
    return line_plot("nodes visited per event", "subscriptions", series)


if __name__ == "__main__":
    typer.run(matching_tree_growth)
