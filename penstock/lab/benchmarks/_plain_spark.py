"""What a user of Spark would write instead: changes joined with a table of subscriptions."""

from __future__ import annotations

import time

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from penstock.lab.workloads.joins import JoinWorkload
from penstock.lab.workloads.streams import RANGE_SHARE, TOP_NUMBER
from penstock.pipeline.session import spark_session

EVENTS = 200
REPETITIONS = 2


def plain_rate(name: str, subscriptions: int) -> float:
    """Events per second; the best of some batches, after one to warm up."""
    spark = spark_session()
    query = (
        _stateless(spark, subscriptions) if name == "stateless" else _joins(spark, subscriptions)
    )
    best = float("inf")
    for _ in range(1 + REPETITIONS):
        began = time.monotonic()
        # As a sink would, but without its cost: every row is computed.
        query.write.format("noop").mode("overwrite").save()
        best = min(best, time.monotonic() - began)
    return EVENTS / best


def _stateless(spark: SparkSession, subscriptions: int) -> DataFrame:
    random = np.random.default_rng(1)
    width = round(TOP_NUMBER * RANGE_SHARE)
    lows = random.integers(0, TOP_NUMBER - width, (subscriptions, 2))
    numbers = np.arange(subscriptions)
    interests = _table(spark, id=numbers, p=lows[:, 0], v=lows[:, 1])
    events = random.integers(0, TOP_NUMBER, (EVENTS, 2))
    changes = _table(spark, price=events[:, 0], volume=events[:, 1])
    inside = f"price BETWEEN p AND p + {width} AND volume BETWEEN v AND v + {width}"
    return _query(
        spark,
        f"SELECT id, price, volume FROM changes JOIN interests ON {inside}",
        changes=changes,
        interests=interests,
    )


def _joins(spark: SparkSession, subscriptions: int) -> DataFrame:
    work = JoinWorkload(subscriptions)
    ranges = work.interests
    interests = _table(
        spark,
        id=np.arange(subscriptions),
        a_low=ranges.a_low,
        a_high=ranges.a_high,
        c_low=ranges.c_low,
        c_high=ranges.c_high,
    )
    rows = [row for group in work.groups.values() for row in group.sides[1].values()]
    steps = [step.new for _, step in work.inserts(0, EVENTS) if step.new is not None]
    return _query(
        spark,
        "SELECT i.id, r.key AS r, s.key AS s FROM changes r JOIN joined s ON r.b = s.b "
        "JOIN interests i ON a BETWEEN a_low AND a_high AND c BETWEEN c_low AND c_high",
        changes=_table(
            spark,
            key=np.array([row[0] for row in steps]),
            a=np.array([row[1] for row in steps]),
            b=np.array([row[2] for row in steps]),
        ),
        joined=_table(
            spark,
            key=np.array([row[0] for row in rows]),
            b=np.array([row[1] for row in rows]),
            c=np.array([row[2] for row in rows]),
        ),
        interests=interests,
    )


def _query(spark: SparkSession, sql: str, **tables: DataFrame) -> DataFrame:
    for name, table in tables.items():
        table.createOrReplaceTempView(name)
    return spark.sql(sql)


def _table(spark: SparkSession, **columns: np.ndarray) -> DataFrame:
    import pandas as pd

    return spark.createDataFrame(pd.DataFrame(columns)).cache()
