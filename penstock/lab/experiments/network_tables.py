"""Routing tables by covering and merging on diagrams (Li, Hou and Jacobsen, 2005, figures 12 to 15
and Table 2), compared with ours on interests."""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.lab.benchmarks._measuring import Result, progress, show

EXAMPLES = """
  penstock lab run network-tables
  penstock lab run network-tables --subscriptions 200000 --publications 50000 --json
"""
COLUMNS = ("item", "series", "x", "ours", "share", "entries", "looked_at", "false_positive_share")


def network_tables(
    subscriptions: Annotated[int, typer.Option(help="In each set.", min=100)] = 10_000,
    publications: Annotated[int, typer.Option(help="To match.", min=10)] = 2_000,
    naive: Annotated[int, typer.Option(help="Of these, matched naively.", min=1)] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Table sizes, matching and insertion times, and false positives, by covering and merging."""
    from penstock.lab.experiments import _li2005_routing as li2005
    from penstock.lab.experiments._li2005_workload import SETS, Workload

    results: list[Result] = []

    def add(item: str, found: list[Result]) -> None:
        results.extend({"item": item} | one for one in found)

    for name in SETS:
        with progress(f"set {name}"):
            states = li2005.states_of(Workload(name, subscriptions))
            add("figure 12", li2005.figure_12(states))
            add("table 2", li2005.table_2(states, publications, min(naive, publications)))
    with progress("insertion"):
        block = max(1, subscriptions // 10)
        add("figure 13", li2005.figure_13(Workload("B", subscriptions), block))
    with progress("imperfect merging"):
        half = Workload("A", subscriptions // 2, of=subscriptions)
        add("figures 14 and 15", li2005.figures_14_and_15(half, publications))
    show(results, json, COLUMNS)
