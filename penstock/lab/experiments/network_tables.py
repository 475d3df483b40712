"""Routing tables by covering and merging on diagrams (Li, Hou and Jacobsen, 2005, figures 12 to 15
and Table 2), with ours on interests beside them."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.lab.benchmarks._measuring import Result, progress, show

EXAMPLES = """
  penstock lab run network-tables
  penstock lab run network-tables --subscriptions 200000 --publications 50000 --json
"""
COLUMNS = (
    "item",
    "set",
    "state",
    "entries",
    "covered_share",
    "paper_covered_share",
    "subscriptions",
    "with cache_ms",
    "without cache_ms",
    "two passes_ms",
    "diagrams_ms",
    "naive_ms",
    "less_than_at_first",
    "imt",
    "left_share",
    "advertised_left_share",
    "false_positive_share",
)


def network_tables(
    subscriptions: Annotated[int, typer.Option(help="In each set.", min=100)] = 10_000,
    publications: Annotated[int, typer.Option(help="To match.", min=10)] = 2_000,
    naive: Annotated[int, typer.Option(help="Of these, matched naively.", min=1)] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Table sizes, matching and insertion times, and false positives, by covering and merging."""
    from penstock.lab.experiments import _li2005_routing as li2005

    results: list[Result] = []
    for name in li2005.SETS:
        with progress(f"set {name}"):
            states = li2005.states_of(name, subscriptions)
            results += li2005.figure_12(states)
            results += li2005.table_2(states, publications, min(naive, publications))
    with progress("insertion"):
        results += li2005.figure_13(subscriptions, block=max(1, subscriptions // 10))
    with progress("imperfect merging"):
        results += li2005.figures_14_and_15(subscriptions // 2, publications)
    show(results, json, COLUMNS)
