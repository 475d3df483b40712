"""The benchmarks of the pipeline, on a small scale: what they print is what others rely on."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from penstock.lab.benchmarks.pipeline import pipeline
from penstock.lab.benchmarks.pipeline_newcomers import pipeline_newcomers


@pytest.mark.slow
def test_throughput_beside_the_bare_kernel(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline(
        workload="stateless",
        subscriptions=6_000,
        batch_rows=500,
        batches=1,
        latencies=False,
        plain=False,
        json=True,
    )
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert result["events"] == 500
    assert result["messages_per_event"] > 0.9
    # On a busy machine, the share of so small a batch may well round to nothing.
    assert result["share_of_bare_kernel"] == pytest.approx(
        result["events_per_s"] / result["bare_kernel_events_per_s"], rel=0.01, abs=0.001
    )
    assert min(result[name] for name in ("events_per_s", "cpu_us_per_event", "peak_mb")) > 0


@pytest.mark.slow
def test_newcomers_are_told_what_is_there(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    pipeline_newcomers(workload="stateless", subscriptions=3_000, events=400, json=True)
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert (result["rows"], result["subscriptions"]) == (401, 3_000)  # and a declaration
    assert 300 < result["messages"] <= 400
