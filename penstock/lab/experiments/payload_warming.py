"""How long payload caches take to warm up (Chandramouli and Yang, 2008, section 6.2).

Figures there are means over tens of thousands of events, so that nearly every payload has been sent
before. A run of some hundreds of events sends many for the first time, which no cache avoids. Here
the same events are counted in parts, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from penstock.lab.benchmarks._measuring import Result, progress, show
from penstock.lab.evidence.payload_runs import carry, published
from penstock.lab.evidence.scheme_runs import Effort, Subscribers, Tables, count_figures
from penstock.network.caching import Carried

EXAMPLES = """
  penstock lab run payload-warming
  penstock lab run payload-warming --subscriptions 100000 --nodes 1000 --json
"""
COLUMNS = ("scheme", "entries", "part", "server_kb_per_event", "kb_per_event")
SCHEMES = ("Ref-SJ-Clu+", "Ref-J+")
ROUTERS_PER_NODE = 20
KILO = 1_000
REPOSITORIES = (None, 0, 400, 3_100)
"""Entries; None: without caching."""


def payload_warming(
    subscriptions: Annotated[int, typer.Option(help="How many.", min=1)] = 5_000,
    nodes: Annotated[int, typer.Option(help="Of the overlay.", min=2)] = 100,
    events: Annotated[int, typer.Option(help="Changes of R.", min=1)] = 600,
    parts: Annotated[int, typer.Option(help="To count apart.", min=1)] = 3,
    rows: Annotated[int, typer.Option(help="Of R.", min=100)] = 500,
    seed: Annotated[int, typer.Option(help="Chooses tables and events.", min=0)] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Bytes that leave the server of a CAN per event, and all bytes, from part to part of a run."""
    effort = Effort(nodes, ROUTERS_PER_NODE * nodes, events)
    subscribers = Subscribers(subscriptions, effort)
    results: list[Result] = []
    for scheme in SCHEMES:
        with progress(scheme):
            results += _warming(subscribers, Tables(r_rows=rows), scheme, parts, seed)
    show(results, json, COLUMNS)


def _warming(
    subscribers: Subscribers, tables: Tables, scheme: str, parts: int, seed: int
) -> Iterator[Result]:
    events = subscribers.effort.events
    if scheme == "Ref-J+":
        sent = subscribers.rows_sent(tables, seed, events)
        network = subscribers.join_rows["CAN"]
    else:
        sent = subscribers.sent(tables, seed, scheme.lower(), events)
        network = subscribers.semijoins["CAN"]
    journeys = published(network, sent, wanted_only=scheme == "Ref-J+")
    for entries in REPOSITORIES:
        counted: list[list[Carried]] = [[] for _ in range(parts)]
        for one in carry(network, journeys, entries):
            # An insert and the delete that keeps the size of the table have the same offset.
            counted[one.journey.message.position.offset * 2 * parts // (events + 1)].append(one)
        for part, carried in enumerate(counted, 1):
            figures = count_figures(network, carried, events // parts)
            yield {
                "scheme": scheme,
                "entries": entries,
                "part": part,
                "server_kb_per_event": round(figures["server_stress_bytes"] / KILO, 2),
                "kb_per_event": round(figures["traffic_bytes"] / KILO, 1),
            }
