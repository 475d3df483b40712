"""The alternative without Penstock: subscriptions as a table, joined with each batch."""

from __future__ import annotations

import importlib.util
import time

import numpy as np
import pandas as pd

from penstock.lab.benchmarks._measuring import Result
from penstock.lab.workloads.joins import JoinWorkload

MISSING = "duckdb is not installed; pip install duckdb (it comes with the dev packages)"
QUERY = """
    SELECT count(*), count(DISTINCT subs.id) FROM changes
    JOIN s USING (b)
    JOIN subs ON changes.a BETWEEN a_low AND a_high AND s.c BETWEEN c_low AND c_high
"""


def is_there() -> bool:
    return importlib.util.find_spec("duckdb") is not None


def baseline_tables(workload: JoinWorkload, changes: int) -> dict[str, pd.DataFrame]:
    """The subscriptions, S, and a batch of inserts into R, as tables."""
    interests = workload.interests
    subs = pd.DataFrame(
        {
            "id": np.arange(workload.subscriptions),
            "a_low": interests.a_low,
            "a_high": interests.a_high,
            "c_low": interests.c_low,
            "c_high": interests.c_high,
        }
    )
    rows = [row for group in workload.groups.values() for row in group.sides[1].values()]
    s = pd.DataFrame({"b": [row[1] for row in rows], "c": [row[2] for row in rows]})
    inserts = [step.new for _, step in workload.inserts(0, changes) if step.new is not None]
    batch = pd.DataFrame({"a": [row[1] for row in inserts], "b": [row[2] for row in inserts]})
    return {"subs": subs, "s": s, "changes": batch}


def duckdb_baseline(workload: JoinWorkload, changes: int) -> Result:
    """CPU time for a batch of inserts into R: every subscription's new join rows, on one core."""
    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    for name, frame in baseline_tables(workload, changes).items():
        connection.register(f"{name}_frame", frame)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM {name}_frame")
    began = time.process_time()
    found = connection.execute(QUERY).fetchone()
    seconds = time.process_time() - began
    connection.close()
    assert found is not None
    return {
        "measure": "baseline",
        "scheme": "duckdb",
        "subscriptions": workload.subscriptions,
        "changes": changes,
        "us_per_change": round(seconds / changes * 1e6, 1),
        "changes_per_s": round(changes / seconds, 1),
        "join_rows_per_change": round(found[0] / changes, 1),
    }
