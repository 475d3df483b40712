"""How much a server sends for an event: Table 3 of Chandramouli and Yang (2008).

Here the bytes of the messages that leave the server are counted, each once (to named recipients:
once for each). The paper counts what leaves the server's node of its network, where a message can
leave by several links, so its figures for schemes that send few messages are higher.
"""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.joins import scheme_names
from penstock.lab.benchmarks._measuring import Result, progress, show
from penstock.lab.experiments._joins import PAPER_SIZES, Sent, send, total
from penstock.lab.workloads.joins import JoinWorkload

EXAMPLES = """
  penstock lab run joins-server-output
  penstock lab run joins-server-output --subscriptions 100000 --json
"""
PAPER_KB = {
    "enum-j": (484.8, 1464.0, 2461.5),
    "enum-sj": (27.3, 82.0, 137.6),
    "ref-j+": (13.4, 14.3, 14.6),
    "rel-sel": (0.86, 0.95, 0.88),
    "ref-sj-clu+": (0.38, 0.38, 0.39),
}
COLUMNS = (
    "scheme",
    "subscriptions",
    "events",
    "messages_per_event",
    "deliveries_per_event",
    "kb_per_event",
    "paper_kb_per_event",
)
SLOW = {"enum-j": 4, "ref-j+": 4}
"""These scan all subscriptions for each join row, and get that much fewer events."""


def joins_server_output(
    subscriptions: Annotated[
        int,
        typer.Option(help="How many; 0: the three numbers of the paper.", min=0, max=10_000_000),
    ] = 0,
    events: Annotated[
        int, typer.Option(help="Inserts into R, per seed.", min=8, max=10_000_000)
    ] = 100,
    seeds: Annotated[int, typer.Option(help="So many draws of everything.", min=1)] = 3,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Messages and kilobytes per event of every scheme, beside the paper's."""
    results: list[Result] = []
    for size in [subscriptions] if subscriptions else PAPER_SIZES:
        runs: dict[str, list[Sent]] = {scheme: [] for scheme in sorted(scheme_names())}
        for seed in range(1, seeds + 1):
            with progress(f"{size:,} subscriptions, seed {seed} of {seeds}"):
                workload = JoinWorkload(size, seed=seed)
                steps = list(workload.inserts(0, events))
            for scheme, sent in runs.items():
                with progress(f"{size:,} subscriptions, seed {seed} of {seeds}: {scheme}"):
                    few = steps[: len(steps) // SLOW.get(scheme, 1)]
                    sent.append(send(workload, scheme, few))
        results += [_result(scheme, size, total(sent)) for scheme, sent in runs.items()]
    results.sort(key=lambda result: (result["subscriptions"], -float(str(result["kb_per_event"]))))
    show(results, json, COLUMNS)


def _result(scheme: str, size: int, sent: Sent) -> Result:
    paper = dict(zip(PAPER_SIZES, PAPER_KB.get(scheme, ()), strict=False))
    return {
        "scheme": scheme,
        "subscriptions": size,
        "events": sent.events,
        "messages_per_event": round(sent.messages / sent.events, 3),
        "deliveries_per_event": round(sent.deliveries / sent.events, 2),
        "points_per_event": round(sent.points / sent.events, 3),
        "bytes_per_event": round(sent.bytes / sent.events, 1),
        "kb_per_event": round(sent.bytes / sent.events / 1000, 4),
        "paper_kb_per_event": paper.get(size),
    }
