"""How costs grow: with batches, with changes, with rows under one join value, with branches."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from penstock.lab.benchmarks._home_growth import (
    Growth,
    Measure,
    measure_batches,
    measure_branches,
    measure_events,
    measure_keys,
    measure_runs,
)
from penstock.lab.benchmarks._measuring import Result, progress, show

EXAMPLES = """
  penstock bench homes
  penstock bench homes --part batches --size 1000 --size 10000 --json
  penstock bench homes --full     (hours: 100,000 batches, 5 million changes)
"""
COLUMNS = (
    "part",
    "size",
    "step",
    "count",
    "seconds",
    "cpu_seconds",
    "cpu_ms_each",
    "growth",
    "files",
)


@dataclass(frozen=True)
class Part:
    """What is measured, at which sizes."""

    measure: Measure
    meaning: str
    sizes: tuple[int, ...]
    full_sizes: tuple[int, ...]


PARTS = {
    "batches": Part(
        measure_batches,
        "batches of one change",
        (1_000, 10_000),
        (1_000, 10_000, 100_000),
    ),
    "events": Part(
        measure_events,
        "changes in batches of 100,000",
        (10_000, 100_000),
        (10_000, 100_000, 1_000_000, 5_000_000),
    ),
    "keys": Part(
        measure_keys,
        "rows a side under one join value",
        (500, 2_000),
        (1_000, 5_000, 20_000, 50_000),
    ),
    "branches": Part(
        measure_branches,
        "values in NOT IN",
        (10, 100),
        (10, 100, 1_000),
    ),
    "runs": Part(
        measure_runs,
        "batches of one change, before a run of the pipeline",
        (),
        (1_000, 10_000, 100_000),
    ),
}


def homes(
    part: Annotated[
        list[str] | None,
        typer.Option(help=f"Only this one of {', '.join(PARTS)}. May be given several times."),
    ] = None,
    size: Annotated[
        list[int] | None,
        typer.Option(help="Instead of the sizes of the part; may be given several times.", min=2),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="All parts and sizes: takes hours.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure how costs grow with what a home has been through.

    growth: the exponent by which the CPU time of one has grown since the size before; 0 is flat, 1
    is linear. Commands are called in processes of their own, and their start counts.
    """
    chosen = part or list(PARTS)
    for name in chosen:
        if name not in PARTS:
            raise typer.BadParameter(f"{name} is none of {', '.join(PARTS)}")
    results: list[Result] = []
    sizes = {name: one.meaning for name, one in PARTS.items() if name in chosen}
    try:
        for name in chosen:
            _measure(name, size, results, full=full, asked_for=part is not None)
    finally:  # measurements before an interruption may have taken hours
        show(results, json, COLUMNS, sizes_are=sizes)


def _measure(
    name: str, sizes: list[int] | None, results: list[Result], *, full: bool, asked_for: bool
) -> None:
    part, growth = PARTS[name], Growth(name, results)
    usual = part.full_sizes if full or (asked_for and not part.sizes) else part.sizes
    for size in sizes or usual:
        with (
            tempfile.TemporaryDirectory(prefix="penstock-homes-") as directory,
            progress(f"{name}: {size:,} {part.meaning}"),
        ):
            part.measure(growth, Path(directory) / "home", size)


if __name__ == "__main__":
    typer.run(homes)
