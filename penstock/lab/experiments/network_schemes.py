"""What schemes cost on networks (Chandramouli and Yang, 2008): traffic, hops, stress and latency
over a CAN and a CBN, and what payload caching saves.

Every scheme handles the same changes. Those that enumerate recipients send one by one; the others
send through the network. Payload caching (figures 11 and 12) is carried by the same journeys.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Annotated

import typer

from penstock.lab.benchmarks._measuring import Result, progress, show
from penstock.lab.networks import NetworkWorkload
from penstock.lab.workloads.joins import R_SPACE, S_SPACE, JoinWorkload
from penstock.messages import Message
from penstock.network.caching import CachingCarrier, Carried, carry_plainly
from penstock.network.journeys import ContentNetwork
from penstock.network.metrics import Metrics
from penstock.network.payloads import PayloadSettings

EXAMPLES = """
  penstock lab run network-schemes
  penstock lab run network-schemes --nodes 1000 --subscriptions 100000 --json
"""
SCHEMES = ("rel-sel", "enum-sj", "ref-sj-tup", "ref-sj-clu+", "ref-sj-gap")
REPOSITORIES = (0, 100, 400, 1_600, 3_100)
"""Entries, as in figure 11; the directory has 512 kB."""
PAYLOAD_COLUMN = 3
PAYLOAD_BYTES = 1_000
STUDENT_95 = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26}
"""Of the t distribution, by number of seeds."""
COLUMNS = (
    "item",
    "network",
    "scheme",
    "repository",
    "traffic_bytes",
    "traffic_bytes_95",
    "overlay_hops",
    "server_stress_bytes",
    "stress_p100",
    "hop_latency",
    "arrivals",
)


def network_schemes(
    nodes: Annotated[int, typer.Option(help="Of the overlay.", min=2)] = 50,
    subscriptions: Annotated[int, typer.Option(help="At any node.", min=1)] = 2_000,
    changes: Annotated[int, typer.Option(help="Rows of R that come and go.", min=2)] = 100,
    seeds: Annotated[int, typer.Option(help="Runs, for 95 % intervals.", min=2, max=10)] = 5,
    r_rows: Annotated[int, typer.Option(help="For caching: rows in R.", min=1)] = 500,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Traffic, hops, stress and latency per change, by scheme and network, with and without CN*."""
    runs: dict[tuple[object, ...], list[dict[str, float]]] = {}
    for seed in range(1, seeds + 1):
        with progress(f"seed {seed} of {seeds}"):
            for key, figures in _compared(nodes, subscriptions, changes, seed):
                runs.setdefault(key, []).append(figures)
            for key, figures in _cached(nodes, subscriptions, changes, seed, r_rows):
                runs.setdefault(key, []).append(figures)
    results: list[Result] = []
    for key, repeated in runs.items():
        head = dict(zip(("item", "network", "scheme", "repository"), key, strict=True))
        results.append(head | _summary(repeated))
    show(results, json, COLUMNS, seeds=seeds, nodes=nodes, subscriptions=subscriptions)


def _summary(runs: Sequence[dict[str, float]]) -> Result:
    """Means, and half the width of their 95 % intervals."""
    summary: Result = {}
    for name in runs[0]:
        values = [run[name] for run in runs]
        summary[name] = round(statistics.fmean(values), 2)
        spread = statistics.stdev(values) / len(values) ** 0.5
        summary[f"{name}_95"] = round(STUDENT_95[len(values)] * spread, 2)
    return summary


def _compared(
    nodes: int, subscriptions: int, changes: int, seed: int
) -> list[tuple[tuple[object, ...], dict[str, float]]]:
    """Figures 6, 7, 9, 10: every scheme over the CAN and over the CBN."""
    found: list[tuple[tuple[object, ...], dict[str, float]]] = []
    workload = _workload(nodes, subscriptions, seed)
    networks: dict[str, ContentNetwork] = {"CAN": workload.can(), "CBN": workload.tree()}
    unicast = workload.unicast()
    for scheme in SCHEMES:
        # A fresh workload: schemes change the groups that they handle.
        sent = _messages(_workload(nodes, subscriptions, seed), scheme, changes)
        for name, network in networks.items():
            chosen = unicast if scheme.startswith("enum") else network
            figures = _figures(chosen, carry_plainly(chosen.publish(sent)), changes)
            found.append((("schemes", name, scheme, None), figures))
    return found


def _cached(
    nodes: int, subscriptions: int, changes: int, seed: int, r_rows: int
) -> list[tuple[tuple[object, ...], dict[str, float]]]:
    """Figures 11 and 12: payload caching by size of the repository."""
    found: list[tuple[tuple[object, ...], dict[str, float]]] = []
    workload = _workload(nodes, subscriptions, seed, r_rows)
    network = workload.tree()
    changes *= 10  # a payload must have been sent before it can be sent again
    drawn = _messages(_workload(nodes, subscriptions, seed, r_rows), "ref-sj-clu+", changes)
    sent = [_with_own_payload(message) for message in drawn]
    journeys = network.publish(sent)
    plain = _figures(network, carry_plainly(journeys), changes)
    found.append((("caching", "CBN", "ref-sj-clu+", "none"), plain))
    columns = {R_SPACE.id: (PAYLOAD_COLUMN,), S_SPACE.id: (PAYLOAD_COLUMN,)}
    for entries in REPOSITORIES:
        carrier = CachingCarrier(network, PayloadSettings(columns, 512 << 10, entries))
        figures = _figures(network, carrier.carry(journeys), changes)
        found.append((("caching", "CBN", "ref-sj-clu+", entries), figures))
    return found


def _with_own_payload(message: Message) -> Message:
    """Rows of the workload all have the same payload; here each has one of its own."""
    if message.row is None:
        return message
    payload = str(message.row[0]).ljust(PAYLOAD_BYTES, "x")
    return message._replace(row=(*message.row[:PAYLOAD_COLUMN], payload))


def _workload(nodes: int, subscriptions: int, seed: int, r_rows: int = 16_000) -> NetworkWorkload:
    return NetworkWorkload(JoinWorkload(subscriptions, r_rows=r_rows, seed=seed), nodes, seed)


def _messages(workload: NetworkWorkload, scheme: str, changes: int) -> list[Message]:
    return [message for event in workload.events(changes, scheme) for message in event]


def _figures(network: ContentNetwork, carried: Sequence[Carried], changes: int) -> dict[str, float]:
    metrics = Metrics(network.server, network.nodes)
    metrics.count(carried, changes)
    return metrics.per_event()
