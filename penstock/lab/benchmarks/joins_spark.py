"""The alternative on Spark: subscriptions as a table, joined with each batch.

The workload of `penstock bench joins`, as Spark SQL over cached DataFrames. Java does the work, so
wall-clock time is measured.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.lab.benchmarks._join_baseline import QUERY, baseline_tables
from penstock.lab.benchmarks._measuring import Result, progress, show
from penstock.lab.workloads.joins import JoinWorkload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = """
  penstock bench joins-spark
  penstock bench joins-spark --subscriptions 100000 --changes 64 --cores 2 --json
"""
SIZES = (100_000, 300_000, 1_000_000)
COLUMNS = (
    "engine",
    "cores",
    "subscriptions",
    "changes",
    "us_per_change",
    "changes_per_s",
    "join_rows_per_change",
)


def joins_spark(
    subscriptions: Annotated[
        int, typer.Option(help="How many; 0: 100,000, 300,000 and 1,000,000.", min=0)
    ] = 0,
    changes: Annotated[int, typer.Option(help="Inserts into R in a batch.", min=2)] = 16,
    cores: Annotated[int, typer.Option(help="How many Spark may use.", min=1)] = 1,
    repetitions: Annotated[int, typer.Option(help="Batches; the fastest counts.", min=1)] = 2,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure Spark SQL joining each batch of changes with both tables and all subscriptions."""
    from penstock.pipeline.session import spark_session

    results: list[Result] = []
    with progress("starting Spark"):
        # Spark's own work gains from the optimising compiler, which the pipeline disables.
        conf = {"spark.driver.defaultJavaOptions": "-XX:+UseParallelGC"}
        spark = spark_session("penstock bench", master=f"local[{cores}]", conf=conf)
    for size in [subscriptions] if subscriptions else SIZES:
        with progress(f"{size:,} subscriptions"):
            results.append(_measured(spark, size, changes, repetitions) | {"cores": cores})
    spark.stop()
    show(results, json, COLUMNS)


def _measured(spark: SparkSession, size: int, changes: int, repetitions: int) -> Result:
    workload = JoinWorkload(size)
    best, found = float("inf"), 0
    for number in range(repetitions + 1):  # the first one warms up
        for name, frame in baseline_tables(workload, changes).items():
            if number and name != "changes":
                continue
            table = spark.createDataFrame(frame).cache()
            table.count()
            table.createOrReplaceTempView(name)
        began = time.perf_counter()
        found = int(spark.sql(QUERY).collect()[0][0])
        if number:
            best = min(best, time.perf_counter() - began)
    spark.catalog.clearCache()
    return {
        "engine": "spark sql",
        "subscriptions": size,
        "changes": changes,
        "us_per_change": round(best / changes * 1e6, 1),
        "changes_per_s": round(changes / best, 1),
        "join_rows_per_change": round(found / changes, 1),
    }
