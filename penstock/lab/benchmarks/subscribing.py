"""Registering subscriptions in a home: parsed, bound, logged on disk, and in the registry."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from penstock.lab.benchmarks._measuring import Result, progress, show
from penstock.registry import Registry
from penstock.storage import Home

EXAMPLES = """
  penstock bench subscribing
  penstock bench subscribing --subscriptions 100000 --at-once 10000 --json
"""
COLUMNS = ("statements", "at_once", "subscriptions", "per_s", "us_each", "cpu_us_each")
TABLES = (
    "CREATE TABLE stocks (id BIGINT PRIMARY KEY, symbol VARCHAR, per DOUBLE, price DECIMAL(10,2))",
    "CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol VARCHAR, rating INTEGER)",
)
SHAPES: dict[str, Callable[[random.Random], str]] = {
    "range": lambda r: f"SELECT * FROM stocks WHERE per BETWEEN {_number(r)} AND 1{_number(r)}",
    "point": lambda r: f"SELECT symbol, per FROM stocks WHERE symbol = '{_symbol(r)}' AND per < 50",
    "join": lambda r: (
        "SELECT * FROM stocks JOIN reviews USING (symbol) "
        f"WHERE per BETWEEN {_number(r)} AND 1{_number(r)} AND rating >= {r.randrange(10)}"
    ),
    "alternatives": lambda r: (
        f"SELECT * FROM stocks WHERE symbol IN ('{_symbol(r)}', '{_symbol(r)}') "
        f"OR per > {_number(r)}"
    ),
}
"""Statements of each shape differ only in their constants."""


def _number(chance: random.Random) -> str:
    return f"{chance.uniform(100, 999):.3f}"


def _symbol(chance: random.Random) -> str:
    return f"S{chance.randrange(10**6)}"


def subscribing(
    subscriptions: Annotated[int, typer.Option(help="To register, of each kind.", min=1)] = 20_000,
    at_once: Annotated[int, typer.Option(help="In one call, at most.", min=1)] = 1_000,
    one_by_one: Annotated[
        int, typer.Option(help="So many more, in a call each; 0: none.", min=0)
    ] = 500,
    seed: Annotated[int, typer.Option(help="Of the constants.", min=0)] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure how many subscriptions a home takes per second, many in a call and one by one."""
    with progress("the first subscription, which loads the binder"):
        measured([SHAPES["range"](random.Random(seed))], 1)
    results: list[Result] = []
    for name, shape in SHAPES.items():
        chance = random.Random(seed)
        for count, size in ((subscriptions, at_once), (one_by_one, 1)):
            if count:
                with progress(f"{name}: {count:,} subscriptions, {size:,} at once"):
                    statements = [shape(chance) for _ in range(count)]
                    results.append({"statements": name, **measured(statements, size)})
    show(results, json, COLUMNS)


def measured(statements: Sequence[str], at_once: int) -> Result:
    """Register statements in a fresh home; the first call, which learns the shape, counts too."""
    with TemporaryDirectory(prefix="penstock-") as directory:
        home = Home.create(Path(directory) / "home")
        with Registry(home) as registry:
            for sql in TABLES:
                registry.define(sql)
            began, began_cpu = time.perf_counter(), time.process_time()
            for some in _in_parts(statements, at_once):
                registry.subscribe_many(some)
            took, cpu = time.perf_counter() - began, time.process_time() - began_cpu
            assert registry.count() == len(statements)
    return {
        "at_once": at_once,
        "subscriptions": len(statements),
        "per_s": len(statements) / took,
        "us_each": took / len(statements) * 1e6,
        "cpu_us_each": cpu / len(statements) * 1e6,
    }


def _in_parts(statements: Sequence[str], size: int) -> Iterator[list[str]]:
    waiting = iter(statements)
    while part := list(islice(waiting, size)):
        yield part


if __name__ == "__main__":
    typer.run(subscribing)
