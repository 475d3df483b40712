"""Throughput of a broker, and of a network of a thousand of them."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from penstock.lab.benchmarks._measuring import Result, progress, show

EXAMPLES = """
  penstock bench network
  penstock bench network --interests 1000000 --json
"""
SIZES = (100_000, 1_000_000)
COLUMNS = (
    "measure",
    "interests",
    "kept",
    "messages_per_s",
    "us_per_message",
    "us_per_insertion",
    "us_per_check",
    "bytes_per_interest",
    "events_per_s",
    "hops_per_event",
)


def network(
    interests: Annotated[
        int, typer.Option(help="In one node's tables; 0: 100,000 and 1,000,000.", min=0)
    ] = 0,
    messages: Annotated[int, typer.Option(help="Messages to route.", min=1)] = 5_000,
    nodes: Annotated[int, typer.Option(help="Of the simulated network.", min=2)] = 1_000,
    subscriptions: Annotated[int, typer.Option(help="In the network.", min=1)] = 100_000,
    events: Annotated[int, typer.Option(help="Changes sent through the network.", min=2)] = 2_000,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure routing through one node's tables, covering, and a simulated network, in CPU time.

    Beside the index: the same without covering and merging, a scan, a Siena-style poset (with 3,000
    filters), and forwarding per subscription. The network is a tree over an Internet-like topology.
    """
    from penstock.lab.benchmarks._network_tables import measure_tables

    results: list[Result] = []
    for size in [interests] if interests else SIZES:
        with progress(f"{size:,} interests"):
            results += measure_tables(size, messages)
    with progress(f"{nodes:,} nodes with {subscriptions:,} subscriptions"):
        results.append(_network(nodes, subscriptions, events))
    show(results, json, COLUMNS)


def _network(nodes: int, subscriptions: int, events: int) -> Result:
    from penstock.lab.networks import NetworkWorkload, flatten
    from penstock.lab.workloads.joins import JoinWorkload

    workload = NetworkWorkload(JoinWorkload(subscriptions), nodes, seed=1)
    tree = workload.tree()
    sent = flatten(list(workload.events(events)))
    tree.publish(sent[:20])
    began, wall = time.process_time(), time.monotonic()
    journeys = tree.publish(sent)
    seconds, waited = time.process_time() - began, time.monotonic() - wall
    return {
        "measure": f"network of {nodes:,} nodes",
        "interests": tree.table_size(),
        "events_per_s": round(events / max(1e-9, seconds)),
        "events_per_wall_s": round(events / max(1e-9, waited)),
        "hops_per_event": round(sum(len(one.hops) for one in journeys) / events, 1),
        "arrivals_per_event": round(sum(len(one.arrivals) for one in journeys) / events, 1),
    }
