"""The benchmark of growing homes, on a small scale: that it does what it measures."""

from __future__ import annotations

import json
import math

import pytest
import typer

from penstock.lab.benchmarks._home_growth import Growth
from penstock.lab.benchmarks.homes import homes


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


def test_a_part_that_is_none() -> None:
    with pytest.raises(typer.BadParameter, match="is none of batches"):
        homes(part=["other"])
