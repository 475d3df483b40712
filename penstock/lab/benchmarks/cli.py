"""The cost of everyday commands: CPU time, imports included, each in a process of its own."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, NamedTuple

import typer

from penstock.kernels.preparation import GEAR_VARIABLE
from penstock.lab.benchmarks._measuring import Result, progress, show
from penstock.storage import Home

EXAMPLES = """
  penstock bench cli
  penstock bench cli --repetitions 10 --no-spark
  penstock bench cli --json
"""
COLUMNS = ("what", "cpu_s", "best_cpu_s", "wall_s", "limit_s", "limited", "repetitions")
COMMAND_LIMIT_SECONDS = 0.5
TABLES = (
    "CREATE TABLE stocks (id BIGINT PRIMARY KEY, symbol VARCHAR, per DOUBLE)",
    "CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol VARCHAR, rating INTEGER)",
)
QUERY = (
    "SELECT * FROM stocks JOIN reviews USING (symbol) "
    "WHERE per BETWEEN 45 AND 70 AND rating BETWEEN 6 AND 9"
)
EVENTS = (
    '{"table": "stocks", "op": "insert", "row": {"id": 4, "symbol": "GOOG", "per": 52.1}}\n'
    '{"table": "reviews", "op": "insert", "row": {"id": 1, "symbol": "GOOG", "rating": 8}}\n'
    '{"table": "reviews", "op": "update", "row": {"id": 99, "rating": 1}}\n'
)
"""With the two tables and the query, the six records of the README."""
HUB_EXAMPLE = """
from penstock import Hub
hub = Hub()
hub.execute("CREATE TABLE stocks (id BIGINT PRIMARY KEY, symbol VARCHAR, per DOUBLE)")
hub.execute("CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol VARCHAR, rating INTEGER)")
growth = hub.subscribe(\"\"\"
    SELECT symbol, per, rating FROM stocks JOIN reviews USING (symbol)
    WHERE per BETWEEN 45 AND 70 AND rating >= 6
\"\"\")
hub.insert("stocks", {"id": 4, "symbol": "GOOG", "per": 52.1})
hub.insert("reviews", {"id": 1, "symbol": "GOOG", "rating": 8})
hub.insert("reviews", {"id": 2, "symbol": "GOOG", "rating": 3})
assert growth.content() == [{"symbol": "GOOG", "per": 52.1, "rating": 8}]
"""


class Usage(NamedTuple):
    """The resources used by a process and its children."""

    cpu_seconds: float
    wall_seconds: float


class Case(NamedTuple):
    """A case to measure. `prepare` sets up a fresh directory; it is not measured."""

    name: str
    arguments: tuple[str, ...]
    limit_seconds: float
    is_limit_of_wall: bool = False
    prepare: Callable[[Path], None] = lambda _: None
    needs_spark: bool = False
    without_kernels: bool = False


def cli(
    repetitions: Annotated[int, typer.Option(help="Of each command.", min=1)] = 5,
    spark: Annotated[
        bool, typer.Option("--spark/--no-spark", help="Measure run and demo, too: once each.")
    ] = True,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure what commands, the README's examples and the demonstration cost.

    CPU seconds are medians; the limits of what starts Spark are on the clock instead.
    """
    results: list[Result] = []
    for case in CASES:
        if case.needs_spark and not spark:
            continue
        with progress(case.name):
            count = 1 if case.needs_spark else repetitions
            results.append(measured(case, [measure(case) for _ in range(count)]))
    show(results, json, COLUMNS)


def measured(case: Case, usages: Sequence[Usage]) -> Result:
    return {
        "what": case.name,
        "cpu_s": statistics.median(one.cpu_seconds for one in usages),
        "best_cpu_s": min(one.cpu_seconds for one in usages),
        "wall_s": statistics.median(one.wall_seconds for one in usages),
        "limit_s": case.limit_seconds,
        "limited": "wall" if case.is_limit_of_wall else "cpu",
        "repetitions": len(usages),
    }


def measure(case: Case) -> Usage:
    """Run it once, in a fresh directory."""
    with TemporaryDirectory(prefix="penstock-", ignore_cleanup_errors=True) as directory:
        case.prepare(Path(directory))
        extra = {}
        if case.without_kernels:
            empty = str(Path(directory) / "kernels")
            extra = {"NUMBA_CACHE_DIR": empty, "XDG_CACHE_HOME": empty}
        began = time.perf_counter()
        before = os.times()
        ran = subprocess.run(
            [sys.executable, *case.arguments],
            cwd=directory,
            env={**_user_environment(), **extra, "PYTHONPATH": _package_parent()},
            capture_output=True,
            text=True,
            check=False,
        )
        after = os.times()
    if ran.returncode:
        raise RuntimeError(f"{case.name} failed: {ran.stderr[-500:]}")
    cpu = after.children_user + after.children_system
    cpu -= before.children_user + before.children_system
    return Usage(cpu, time.perf_counter() - began)


def _user_environment() -> dict[str, str]:
    """Without the gear that benchmarks set: these measure what a user waits for."""
    return {name: value for name, value in os.environ.items() if name != GEAR_VARIABLE}


def _package_parent() -> str:
    """The directory of this package, whatever is installed."""
    return str(Path(__file__).parents[3])


def _declared(directory: Path) -> Home:
    from penstock.registry import Registry

    home = Home.create(directory / "shop")
    with Registry(home) as registry:
        for sql in TABLES:
            registry.define(sql)
    (directory / "changes.jsonl").write_text(EVENTS)
    return home


def _declare(directory: Path) -> None:
    _declared(directory)


def _publish(directory: Path) -> None:
    """The six records of the README."""
    from penstock.registry import Registry
    from penstock.storage import RecordKind

    home = _declared(directory)
    with Registry(home) as registry:
        registry.subscribe(QUERY)
    home.log.append([(RecordKind.EVENT, line.encode()) for line in EVENTS.splitlines()])


def _process(directory: Path) -> None:
    """The same records, processed without Spark."""
    from penstock.hub import Hub

    _publish(directory)
    Hub(directory / "shop").close()


def _command(name: str, *arguments: str, prepare: Callable[[Path], None]) -> Case:
    given = ("-m", "penstock", name, "shop", *arguments)
    return Case(f"penstock {name}", given, COMMAND_LIMIT_SECONDS, prepare=prepare)


CASES = (
    _command("execute", "CREATE TABLE other (id INT PRIMARY KEY)", prepare=_declare),
    _command("subscribe", QUERY, prepare=_declare),
    _command("publish", "changes.jsonl", prepare=_declare),
    _command("content", "2", prepare=_process),
    _command("tail", "2", "--no-follow", prepare=_process),
    Case("a Hub, no kernel compiled", ("-c", HUB_EXAMPLE), 3.0, without_kernels=True),
    Case(
        "penstock run --once, six records",
        ("-m", "penstock", "run", "shop", "--once"),
        25.0,
        is_limit_of_wall=True,
        prepare=_publish,
        needs_spark=True,
    ),
    Case(
        "penstock demo",
        ("-m", "penstock", "demo", "--home", "demo"),
        30.0,
        is_limit_of_wall=True,
        needs_spark=True,
    ),
    Case(
        "penstock demo, no kernel compiled",
        ("-m", "penstock", "demo", "--home", "demo"),
        45.0,
        is_limit_of_wall=True,
        needs_spark=True,
        without_kernels=True,
    ),
)

if __name__ == "__main__":
    typer.run(cli)
