"""The benchmark of growing homes, on a small scale: that it does what it measures."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import typer
from pyspark.sql import SparkSession

from penstock.lab.benchmarks import _home_growth
from penstock.lab.benchmarks._home_growth import Growth
from penstock.lab.benchmarks.homes import PARTS, Part, homes


@pytest.mark.slow
def test_what_it_prints(capsys: pytest.CaptureFixture[str]) -> None:
    homes(part=["batches", "events", "keys", "branches"], size=[5, 40], json=True)
    printed = json.loads(capsys.readouterr().out)
    steps: dict[str, list[str]] = {}
    for result in printed["results"]:
        assert result["seconds"] >= 0
        if result["size"] == 40:
            steps.setdefault(result["part"], []).append(result["step"])
    used = ["content", "content again", "open", "subscription", "change", "verify", "compact"]
    assert steps == {
        "batches": ["publish", *used],
        "events": ["process", *used],
        "keys": ["insert under one join value"],
        "branches": ["subscribe", "first insert", "insert", "read contents"],
    }
    assert set(printed["sizes_are"]) == set(steps)


def test_runs_of_the_pipeline(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_home_growth, "RUN_BATCHES", 4)
    monkeypatch.setattr(_home_growth, "WARM_UP_BATCHES", 1)
    homes(part=["runs"], size=[5], json=True)
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert (result["step"], result["size"]) == ("run: batch of one change", 5)
    assert result["count"] == 3
    assert result["cpu_seconds"] > 0


def test_growth_is_an_exponent() -> None:
    growth = Growth("part")
    for size in (10, 100, 1000):
        growth.add(size, "linear", 0, size / 1000)
        growth.add(size, "flat", 0, 0.1)
        growth.add(size, "quadratic in all", 0, size * size / 1000, count=size)
    found = {(one["step"], one["size"]): one["growth"] for one in growth.results}
    assert found["linear", 10] is None
    assert found["linear", 1000] == pytest.approx(1)
    assert found["flat", 100] == pytest.approx(0)
    assert found["quadratic in all", 1000] == pytest.approx(1), "of each"
    assert math.isclose(float(str(growth.results[0]["cpu_ms_each"])), 10)


def test_growth_is_of_the_same_part() -> None:
    before = Growth("one")
    before.add(10, "step", 0, 1)
    growth = Growth("other", before.results)
    growth.add(100, "step", 0, 1)
    assert [one["growth"] for one in before.results] == [None, None]


def test_an_interruption_leaves_what_was_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(growth: Growth, _path: Path, size: int) -> None:
        if size > 5:
            raise KeyboardInterrupt
        growth.add(size, "step", 0, 1)

    monkeypatch.setitem(PARTS, "keys", Part(measure, "rows", (), ()))
    with pytest.raises(KeyboardInterrupt):
        homes(part=["keys"], size=[5, 40], json=True)
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert (result["step"], result["size"]) == ("step", 5)


def test_a_part_that_is_none() -> None:
    with pytest.raises(typer.BadParameter, match="is none of batches"):
        homes(part=["other"])
