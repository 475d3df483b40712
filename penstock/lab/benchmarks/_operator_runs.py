"""Runs of the pipeline, and of plain Spark, over pictures that recognisers evaluate."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from penstock.flow.changes import Change, Op
from penstock.flow.events import encode_change
from penstock.lab.workloads.recognisers import (
    OPERATOR,
    STREAM,
    Frame,
    Watch,
    is_recognised,
    take_time,
)
from penstock.operators.results_file import OPERATOR_RESULTS
from penstock.pipeline.run import run
from penstock.registry import Registry
from penstock.storage import Home, RecordKind

WARM_UP_FRAMES = 20


class Measured(NamedTuple):
    seconds: float
    matches: int
    evaluations: int | None = None


def prepared_home(path: Path, statements: Sequence[str]) -> Home:
    """A home with the stream, the operator and active subscriptions."""
    home = Home.create(path)
    with Registry(home) as registry:
        registry.define(STREAM)
        registry.define(OPERATOR)
        if statements:
            registry.subscribe_many(statements)
    run(home.path, once=True)
    return home


def publish(home: Home, frames: Iterable[Frame]) -> None:
    bodies = (
        encode_change(Change("frames", Op.INSERT, {"zone": one.zone, "picture": one.picture}))
        for one in frames
    )
    home.log.append([(RecordKind.EVENT, body) for body in bodies])


def count_results(home: Home) -> int:
    """The number of cached results: as many as evaluations, if all rows differ."""
    path = home.path / OPERATOR_RESULTS
    if not path.exists():
        return 0
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("SELECT count(*) FROM results").fetchone()[0])


def run_pipeline(home: Home, warm_up: Sequence[Frame], frames: Sequence[Frame]) -> Measured:
    """The time of the pipeline for a batch of frames, once it is warm."""
    publish(home, warm_up)
    run(home.path, once=True)
    before = count_results(home)
    publish(home, frames)
    taken: list[float] = []
    messages: list[int] = []

    def note(batch: Any) -> None:
        taken.append(batch.seconds)
        messages.append(batch.messages)

    run(home.path, once=True, batch_rows=max(1, len(frames)), on_progress=note)
    return Measured(sum(taken), sum(messages), count_results(home) - before)


def evaluate_each(watches: Sequence[Watch], microseconds: int) -> Callable[..., Any]:
    """One function per subscription: its predicates in their order, up to the first that is false;
    results are not shared."""

    def matches(picture: str, zone: int, watch: Watch) -> bool:
        if zone != watch.zone:
            return False
        for what in watch.wanted:
            take_time(microseconds)
            if not is_recognised(picture, what):
                return False
        return True

    return _over_batches(
        lambda zone, picture: sum(matches(picture, zone, watch) for watch in watches)
    )


def evaluate_all(watches: Sequence[Watch], microseconds: int) -> Callable[..., Any]:
    """Every predicate once for every picture; then subscriptions are decided from the results."""
    wanted = sorted({what for watch in watches for what in watch.wanted})

    def count(zone: int, picture: str) -> int:
        known = {}
        for what in wanted:
            take_time(microseconds)
            known[what] = is_recognised(picture, what)
        return sum(
            zone == watch.zone and all(known[what] for what in watch.wanted) for watch in watches
        )

    return _over_batches(count)


def _over_batches(count: Callable[[int, str], int]) -> Callable[..., Any]:
    def advance(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            zones, pictures = (batch.column(i).to_pylist() for i in range(2))
            found = [count(z, p) for z, p in zip(zones, pictures, strict=True)]
            yield pa.RecordBatch.from_pydict({"matches": pa.array(found, pa.int64())})

    return advance


def run_plain_spark(
    advance: Callable[..., Any], warm_up: Sequence[Frame], frames: Sequence[Frame]
) -> Measured:
    """The time of a program that a user of Spark would write, on both cores, once it is warm."""
    from pyspark.sql import functions as f

    from penstock.pipeline.session import spark_session

    spark = spark_session()

    def total(some: Sequence[Frame]) -> int:
        rows = [(one.zone, one.picture) for one in some]
        given = spark.createDataFrame(rows, "zone long, picture string").repartition(2)
        row = given.mapInArrow(advance, "matches long").agg(f.sum("matches")).first()
        return int(row[0]) if row and row[0] is not None else 0

    total(warm_up)
    began = time.perf_counter()
    matches = total(frames)
    return Measured(time.perf_counter() - began, matches)
