"""The alternative on plain Spark: a stream of changes joined with the tables of subscriptions and
rows."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from penstock.catalog import Row
from penstock.lab.workloads.streams import RANGE_SHARE, TOP_NUMBER, join_workload
from penstock.pipeline.session import spark_session

Columns = Mapping[str, npt.NDArray[np.integer]]

EVENTS = {"stateless": 2_000, "joins": 200, "many-keys": 200}
"""Events per batch: some seconds of work for 100,000 subscriptions, so that the fixed cost of a
batch hardly matters."""
BATCHES = 3
SETTINGS = {
    # With Java's optimising compiler, which the pipeline disables: without it the comparison would
    # be unfair.
    "spark.driver.defaultJavaOptions": "",
    "spark.driver.memory": "4g",
}


def plain_rate(name: str, subscriptions: int) -> float:
    """Events per second in the best of some batches. For a process that has not started Spark."""
    spark = spark_session(conf=SETTINGS)
    with tempfile.TemporaryDirectory(prefix="penstock-plain-") as directory:
        make = _stateless if name == "stateless" else _joins
        matches = make(spark, Path(directory), name, subscriptions)
        query = (
            # Like a sink, but without its cost: every row is computed.
            matches.writeStream.format("noop")
            .option("checkpointLocation", f"{directory}/checkpoint")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        taken = [float(batch["batchDuration"]) / 1000 for batch in query.recentProgress]
    spark.stop()
    return EVENTS[name] / min(taken)


def _stateless(spark: SparkSession, directory: Path, name: str, subscriptions: int) -> DataFrame:
    random = np.random.default_rng(1)
    width = round(TOP_NUMBER * RANGE_SHARE)
    lows = random.integers(0, TOP_NUMBER - width, (subscriptions, 2))
    events = random.integers(0, TOP_NUMBER, (BATCHES * EVENTS[name], 2))
    changes = _stream(spark, directory, name, {"price": events[:, 0], "volume": events[:, 1]})
    interests = {"id": np.arange(subscriptions), "p": lows[:, 0], "v": lows[:, 1]}
    inside = f"price BETWEEN p AND p + {width} AND volume BETWEEN v AND v + {width}"
    return spark.sql(
        f"SELECT id, price, volume FROM {{changes}} JOIN {{interests}} ON {inside}",
        changes=changes,
        interests=_table(spark, interests),
    )


def _joins(spark: SparkSession, directory: Path, name: str, subscriptions: int) -> DataFrame:
    work = join_workload(name, subscriptions)
    ranges = work.interests
    interests = {
        "id": np.arange(subscriptions),
        "a_low": ranges.a_low,
        "a_high": ranges.a_high,
        "c_low": ranges.c_low,
        "c_high": ranges.c_high,
    }
    rows = [row for group in work.groups.values() for row in group.sides[1].values()]
    steps = work.inserts(0, BATCHES * EVENTS[name])
    changed = [step.new for _, step in steps if step.new is not None]
    return spark.sql(
        "SELECT i.id, r.key AS r, s.key AS s FROM {changes} r JOIN {joined} s ON r.b = s.b "
        "JOIN {interests} i ON a BETWEEN a_low AND a_high AND c BETWEEN c_low AND c_high",
        changes=_stream(spark, directory, name, _columns(changed, ("key", "a", "b"))),
        joined=_table(spark, _columns(rows, ("key", "b", "c"))),
        interests=_table(spark, interests),
    )


def _columns(rows: Sequence[Row], names: tuple[str, ...]) -> Columns:
    """The first columns of some rows."""
    return {name: np.array([row[i] for row in rows]) for i, name in enumerate(names)}


def _stream(spark: SparkSession, directory: Path, name: str, columns: Columns) -> DataFrame:
    """Changes as a stream: one file per batch."""
    table, dropped = pa.table(dict(columns)), directory / "changes"
    dropped.mkdir()
    for batch in range(BATCHES):
        part = table.slice(batch * EVENTS[name], EVENTS[name])
        pq.write_table(part, dropped / f"{batch}.parquet")
    schema = ", ".join(f"{column} long" for column in columns)
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(dropped))


def _table(spark: SparkSession, columns: Columns) -> DataFrame:
    return spark.createDataFrame(pa.table(dict(columns))).cache()
