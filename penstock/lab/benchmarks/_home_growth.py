"""The cost of operations on homes of different sizes, step by step."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from penstock import Hub
from penstock.flow.engine import Engine
from penstock.lab.benchmarks._measuring import Result
from penstock.messages import encode_message
from penstock.registry import Registry
from penstock.storage import BatchHeader, Home, RecordKind

TABLE = "CREATE TABLE stocks (id BIGINT PRIMARY KEY, symbol VARCHAR, per INTEGER)"
REVIEWS = "CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol VARCHAR, rating INTEGER)"
QUERIES = (
    "SELECT symbol, per FROM stocks WHERE per BETWEEN 10 AND 60",
    "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE per < 5 AND rating > 90",
)
ROWS = 1_000
"""All changes are made to these rows: a home grows, its tables do not."""
FRAME_EVENTS = 1_000
LAST = 100
"""Number of last batches, or changes, over which a cost is averaged."""
RUN_BATCHES, WARM_UP_BATCHES = 12, 4
PART_EVENTS = 100_000
"""Events per batch of a Hub."""


@dataclass
class Growth:
    """Measurements of one part of the benchmark, by size, added to those of others."""

    part: str
    results: list[Result] = field(default_factory=list)

    @contextmanager
    def step(self, size: int, name: str, count: int = 1) -> Iterator[None]:
        """Measure a step with `count` operations."""
        began, began_cpu = time.perf_counter(), _cpu_seconds()
        yield
        self.add(size, name, time.perf_counter() - began, _cpu_seconds() - began_cpu, count)

    def add(self, size: int, name: str, seconds: float, cpu: float, count: int = 1) -> None:
        self.results.append(
            {
                "part": self.part,
                "size": size,
                "step": name,
                "count": count,
                "seconds": round(seconds, 4),
                "cpu_seconds": round(cpu, 4),
                "cpu_ms_each": round(1e3 * cpu / count, 4),
                "growth": self._growth(size, name, cpu / count),
            }
        )

    def _growth(self, size: int, name: str, each: float) -> float | None:
        """The exponent by which CPU time has grown since the last size: 0 is flat, 1 is linear."""
        measured = (self.part, name)
        before = [one for one in self.results if (one["part"], one["step"]) == measured]
        if not before or before[-1]["size"] == size:
            return None
        last = before[-1]
        cost, last_size = float(str(last["cpu_ms_each"])) / 1e3, int(str(last["size"]))
        if min(cost, each) <= 0:
            return None
        return round(math.log(each / cost) / math.log(size / last_size), 2)


def _cpu_seconds() -> float:
    """Of this process and its children."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def new_home(path: Path) -> Home:
    """A home with two tables and two subscriptions."""
    home = Home.create(path)
    with Registry(home) as registry:
        registry.define(TABLE)
        registry.define(REVIEWS)
        for sql in QUERIES:
            registry.subscribe(sql)
    return home


def changes(count: int, seed: int = 0) -> Iterator[bytes]:
    chance = random.Random(seed)
    for _ in range(count):
        key, value = chance.randrange(ROWS), chance.randrange(100)
        if chance.random() < 0.8:
            row = f'{{"id": {key}, "symbol": "S{key % 100}", "per": {value}}}'
            yield f'{{"table": "stocks", "op": "upsert", "row": {row}}}'.encode()
        else:
            row = f'{{"id": {key}, "symbol": "S{key % 100}", "rating": {value}}}'
            yield f'{{"table": "reviews", "op": "upsert", "row": {row}}}'.encode()


def append(home: Home, events: Iterator[bytes], count: int) -> None:
    while count:
        part = [(RecordKind.EVENT, next(events)) for _ in range(min(count, FRAME_EVENTS))]
        home.log.append(part)
        count -= len(part)


def publish_batches(growth: Growth, home: Home, size: int) -> None:
    """One batch per event; the last ones are measured."""
    engine = Engine()
    messages: list[bytes] = []
    for record in home.log.read(0, home.log.end - size):
        if record.kind is RecordKind.DDL:
            engine.define(record.offset, record.body.decode())
        elif record.kind is RecordKind.SUBSCRIBE:
            engine.subscribe(record.offset, engine.bind(QUERIES[len(engine.queries)]))
    end = home.log.end
    first = end - size
    home.messages.publish(BatchHeader(0, first, first), messages)
    last_ones = max(1, min(LAST, size // 2))
    waiting: list[tuple[BatchHeader, list[bytes]]] = []
    for record in home.log.read(first):
        found = engine.events([(record.offset, record.body)]).messages
        header = BatchHeader(record.offset, record.offset + 1, first)
        batch = (header, [encode_message(message) for message in found])
        if record.offset < end - last_ones:
            with patch.object(os, "fsync"):  # not part of the measurement
                home.messages.publish(*batch)
        else:
            waiting.append(batch)
    with growth.step(size, "publish", last_ones):
        for header, told in waiting:
            home.messages.publish(header, told)
    files = len(list(home.messages.directory.iterdir()))
    growth.results[-1]["files"] = files


def use(growth: Growth, home: Home, size: int) -> None:
    """The usual operations on a home, by calling the commands."""
    with Registry(home) as registry:
        number = registry.subscriptions()[0].id
    for name in ("content", "content again"):
        with growth.step(size, name):
            _call("content", home, str(number))
    with growth.step(size, "open"):
        hub = Hub(home.path)
    with hub:
        with growth.step(size, "subscription"):
            assert hub.subscription(number).content()
        with growth.step(size, "change", LAST):
            for value in range(LAST):
                hub.upsert("stocks", {"id": value, "symbol": "S1", "per": value})
    for name in ("verify", "compact"):
        with growth.step(size, name):
            _call(name, home)


def _call(command: str, home: Home, *arguments: str) -> None:
    """A command in a process of its own. Its start counts: some tenths of a second."""
    words = [sys.executable, "-m", "penstock", command, str(home.path), *arguments, "--json"]
    subprocess.run(words, check=True, capture_output=True)


def measure_batches(growth: Growth, path: Path, size: int) -> None:
    """A home in which every change was a batch of its own."""
    home = new_home(path)
    append(home, changes(size), size)
    publish_batches(growth, home, size)
    use(growth, home, size)


def measure_events(growth: Growth, path: Path, size: int) -> None:
    """A home with many changes in few batches."""
    home, events = new_home(path), changes(size)
    spent = spent_cpu = 0.0
    with Hub(path) as hub:
        for begin in range(0, size, PART_EVENTS):
            append(home, events, min(PART_EVENTS, size - begin))
            began, began_cpu = time.perf_counter(), _cpu_seconds()
            assert len(hub.catalog) == 2
            spent += time.perf_counter() - began
            spent_cpu += _cpu_seconds() - began_cpu
    growth.add(size, "process", spent, spent_cpu, size)
    use(growth, home, size)


def measure_runs(growth: Growth, path: Path, size: int) -> None:
    """Small batches of the pipeline on a home in which every change was a batch of its own."""
    from penstock.lab.benchmarks._processes import cpu_seconds
    from penstock.pipeline.run import Progress, run

    home = new_home(path)
    append(home, changes(size), size)
    publish_batches(Growth(growth.part), home, size)
    run(path, once=True)
    took: list[tuple[Progress, float]] = []
    events = changes(RUN_BATCHES, seed=1)
    for _ in range(RUN_BATCHES):
        append(home, events, 1)
    run(path, once=True, batch_rows=1, on_progress=lambda one: took.append((one, cpu_seconds())))
    measured = took[WARM_UP_BATCHES:]
    seconds = sum(batch.seconds for batch, _ in measured)
    cpu = measured[-1][1] - took[WARM_UP_BATCHES - 1][1]
    growth.add(size, "run: batch of one change", seconds, cpu, len(measured))


def measure_keys(growth: Growth, _path: Path, size: int) -> None:
    """Rows on both sides of a join that all have the same join value."""
    chance = random.Random(size)
    with Hub(reoptimise_every=None) as hub:
        hub.execute("CREATE TABLE a (id BIGINT PRIMARY KEY, k INTEGER, x INTEGER)")
        hub.execute("CREATE TABLE b (id BIGINT PRIMARY KEY, k INTEGER, y INTEGER)")
        for _ in range(50):
            x, y = chance.randrange(10**6), chance.randrange(10**6)
            hub.subscribe(
                "SELECT a.id, b.id FROM a JOIN b ON a.k = b.k "
                f"WHERE x BETWEEN {x} AND {x + 1000} AND y BETWEEN {y} AND {y + 1000}"
            )
        with growth.step(size, "insert under one join value", 2 * size):
            for number in range(size):
                value = chance.randrange(10**6)
                hub.insert("a", {"id": number, "k": 1, "x": value})
                hub.insert("b", {"id": number, "k": 1, "y": 10**6 - value})


def measure_branches(growth: Growth, _path: Path, size: int) -> None:
    """Subscriptions that exclude this many values of a column."""
    chance = random.Random(size)
    with Hub() as hub:
        hub.execute(TABLE)
        texts = [
            f"SELECT * FROM stocks WHERE per NOT IN ({', '.join(map(str, values))})"
            for values in (chance.sample(range(100 * size), size) for _ in range(10))
        ]
        with growth.step(size, "subscribe", len(texts)):
            subscriptions = [hub.subscribe(text) for text in texts]
        with growth.step(size, "first insert"):  # builds an index, and loads kernels
            hub.insert("stocks", {"id": -1, "symbol": "S", "per": -1})
        with growth.step(size, "insert", LAST):
            for number in range(LAST):
                row = {"id": number, "symbol": "S", "per": chance.randrange(100 * size)}
                hub.insert("stocks", row)
        with growth.step(size, "read contents", len(texts)):
            assert all(one.content() for one in subscriptions)


Measure = Callable[[Growth, Path, int], None]
