"""Once the kernels of the fast gear are warmed up, batches find nothing left to compile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.client import Initial
from penstock.kernels.fast_gear import FAST_GEAR
from penstock.registry import Registry
from penstock.storage import Home, RecordKind
from penstock.testing import LocalPipeline

ROOT = Path(__file__).parents[2]

TABLES = (
    """CREATE TABLE orders (id BIGINT PRIMARY KEY, symbol VARCHAR, day DATE, amount INTEGER,
    price DECIMAL(12,2), weight DOUBLE)""",
    "CREATE TABLE stocks (symbol VARCHAR PRIMARY KEY, sector VARCHAR, size INTEGER)",
    "CREATE STREAM news (symbol VARCHAR, score INTEGER)",
)
QUERIES = (
    "SELECT * FROM orders WHERE amount > 3 AND weight < 7",
    "SELECT * FROM news WHERE score BETWEEN 2 AND 5",
    "SELECT * FROM orders o JOIN stocks s ON o.symbol = s.symbol WHERE o.amount > 3 AND s.size < 7",
    "SELECT * FROM orders o JOIN stocks s ON o.symbol = s.symbol WHERE s.sector LIKE 'b%'",
    "SELECT * FROM news n JOIN stocks s ON n.symbol = s.symbol WHERE n.score > 1 AND s.size > 2",
)


def events() -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for i in range(60):
        symbol = f"s{i % 6}"
        order = {"id": i, "symbol": symbol, "day": "2024-05-01", "amount": i % 7, "price": "1.5"}
        found.append({"table": "orders", "op": "insert", "row": {**order, "weight": i / 8}})
        stock = {"symbol": symbol, "sector": f"b{i % 3}", "size": i % 9}
        found.append({"table": "stocks", "op": "upsert", "row": stock})
        found.append({"table": "news", "op": "insert", "row": {"symbol": symbol, "score": i % 8}})
        if i % 5 == 4:
            row = {"id": i - 2, "amount": None}
            found.append({"table": "orders", "op": "update", "row": row})
            found.append({"table": "orders", "op": "delete", "row": {"id": i - 4}})
    return found


def run_batches(directory: Path) -> list[str]:
    """The kernels that the batches of a home load or compile, beyond those already loaded."""
    from penstock.kernels.cache import KernelCache

    asked: list[str] = []
    load = KernelCache.load_overload

    def recording(self: KernelCache, signature: Any, target_context: Any) -> Any:
        asked.append(f"{self._prefix} {signature}")
        return load(self, signature, target_context)

    home = Home.create(directory / "home")
    with Registry(home) as registry:
        for sql in TABLES:
            registry.define(sql)
        registry.subscribe_many([sql for sql in QUERIES for _ in range(5)], initial=Initial.NONE)
    home.log.append([(RecordKind.EVENT, json.dumps(event).encode()) for event in events()])
    KernelCache.load_overload = recording  # type: ignore[method-assign]
    assert LocalPipeline(home, 50).run() > 1
    return asked


def run_after_warm_up(directory: str, warm: str) -> None:
    """In a process of its own: others have kernels loaded by other tests."""
    from penstock.flow.warm_up import warm_up

    if warm == "warm":
        warm_up()
    print(json.dumps(run_batches(Path(directory))))


def kernels_asked_for(tmp_path: Path, warm: str) -> list[str]:
    code = f"from tests.flow.test_warm_up import *; run_after_warm_up({str(tmp_path)!r}, {warm!r})"
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    found: list[str] = json.loads(ran.stdout)
    return found


@pytest.mark.slow
def test_batches_find_nothing_left_to_compile(tmp_path: Path) -> None:
    assert kernels_asked_for(tmp_path, "warm") == []


@pytest.mark.slow
def test_they_would_without_the_warm_up(tmp_path: Path) -> None:
    assert kernels_asked_for(tmp_path, "cold")


def test_the_set_is_defined_without_loading_a_compiler() -> None:
    code = "import sys, penstock.kernels.fast_gear; print('numba' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, cwd=ROOT)
    assert ran.stdout.strip() == b"False"
    assert FAST_GEAR.warm_up.partition(":")[0] == "penstock.flow.warm_up"
