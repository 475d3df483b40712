"""How long the descriptions of affected subscriptions are: Table 4 of Chandramouli and Yang (2008).

A skyline point takes 8 bytes, two numbers. What the paper does not say (how negative widths are
avoided, how many decimals values have) is chosen in `penstock.lab.workloads.joins`. Nor does it say
how its averages are made. They fit, for all schemes and sizes, an average over the events that are
sent at all, with 4 bytes for a point on the diagonal (x = y), as all points of `ref-sj-tup` and
`ref-sj-clu` are: that is `short_bytes_per_message`, to be read beside the paper's figures.
"""

from __future__ import annotations

from typing import Annotated

import typer

from penstock.joins.accounting import NUMBER_BYTES
from penstock.lab.benchmarks._measuring import Result, progress, show
from penstock.lab.experiments._joins import PAPER_SIZES, Sent, send, total
from penstock.lab.workloads.joins import JoinWorkload

EXAMPLES = """
  penstock lab run joins-description-size
  penstock lab run joins-description-size --subscriptions 100000 --json
"""
PAPER_BYTES = {
    "ref-sj-sub": (73.12, 99.54, 111.84),
    "ref-sj-tup": (312.78, 305.88, 302.85),
    "ref-sj-clu": (29.59, 38.15, 42.87),
    "ref-sj-clu+": (16.88, 21.96, 24.68),
}
DIAGONAL = ("ref-sj-tup", "ref-sj-clu")
"""Both coordinates of their points are the same joining value."""
SCHEMES = (*PAPER_BYTES, "ref-sj-opt", "ref-sj-gap")
COLUMNS = (
    "scheme",
    "subscriptions",
    "events",
    "points_per_event",
    "bytes_per_event",
    "short_bytes_per_message",
    "lowest",
    "highest",
    "paper_bytes_per_event",
)


def joins_description_size(
    subscriptions: Annotated[
        int,
        typer.Option(help="How many; 0: the three numbers of the paper.", min=0, max=10_000_000),
    ] = 0,
    events: Annotated[
        int, typer.Option(help="Inserts into R, per seed.", min=1, max=10_000_000)
    ] = 200,
    seeds: Annotated[int, typer.Option(help="So many draws of everything.", min=1)] = 5,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Skyline points and bytes per event of each descriptive skyline, beside the paper's.

    The figures depend on the hundred centres that are drawn for S: lowest and highest are those of
    single seeds.
    """
    results: list[Result] = []
    for size in [subscriptions] if subscriptions else PAPER_SIZES:
        runs: dict[str, list[Sent]] = {scheme: [] for scheme in SCHEMES}
        for seed in range(1, seeds + 1):
            with progress(f"{size:,} subscriptions, seed {seed} of {seeds}"):
                workload = JoinWorkload(size, seed=seed)
                steps = list(workload.inserts(0, events))
                for scheme, sent in runs.items():
                    sent.append(send(workload, scheme, steps))
        results += [_result(scheme, size, sent) for scheme, sent in runs.items()]
    show(results, json, COLUMNS)


def _result(scheme: str, size: int, runs: list[Sent]) -> Result:
    sent = total(runs)
    size_of_point = NUMBER_BYTES * (1 if scheme in DIAGONAL else 2)
    each = [run.points * size_of_point / max(1, run.descriptions) for run in runs]
    average = sent.points * size_of_point / max(1, sent.descriptions)
    paper = dict(zip(PAPER_SIZES, PAPER_BYTES.get(scheme, ()), strict=False))
    published = paper.get(size)
    return {
        "scheme": scheme,
        "subscriptions": size,
        "events": sent.events,
        "points_per_event": round(sent.points / sent.events, 3),
        "bytes_per_event": round(sent.description_bytes / sent.events, 2),
        "short_bytes_per_message": round(average, 2),
        "lowest": round(min(each), 2),
        "highest": round(max(each), 2),
        "paper_bytes_per_event": published,
        "kb_per_event": round(sent.description_bytes / sent.events / 1000, 5),
        "paper_kb_per_event": None if published is None else round(published / 1000, 5),
    }
