"""One story, four ways to live through it: DuckDB, the Hub, the pipeline in one run, and in many.

Every content equals what the scenario says, and what the SQL returns, at every point at which it
can be looked at.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock import Hub
from penstock.errors import ChangeError
from penstock.pipeline.run import run
from penstock.registry import Registry
from penstock.sql import bind
from penstock.storage import Home, RecordKind
from penstock.testing import load_scenario
from penstock.testing.decompositions import numbered_decomposition
from penstock.testing.oracle import Oracle
from penstock.testing.scenario import Bad, Define, Expect, Publish, Replan, Subscribe, Withdraw
from tests.pipeline.telling import (
    Chorus,
    Teller,
    interleaved,
    plain,
    scenario_paths,
    values_of,
)

RUNS = 3


@pytest.mark.parametrize("path", scenario_paths(), ids=lambda path: path.stem)
def test_duckdb_agrees_with_the_scenario(path: Path, tmp_path: Path) -> None:
    registry = Registry(Home.create(tmp_path / "home"))
    with Oracle() as oracle:
        chorus = Chorus(oracle, registry)
        for step in load_scenario(path):
            if isinstance(step, Define):
                registry.define(step.sql)
            chorus.tell([step])
            if isinstance(step, Expect):
                assert chorus.content(step.name) == values_of(plain(step.rows)), step


@pytest.mark.parametrize("path", scenario_paths(), ids=lambda path: path.stem)
def test_the_hub_lives_through_a_scenario(path: Path, tmp_path: Path) -> None:
    live = {}
    bad = []
    with Hub(tmp_path / "home") as hub:
        for step in load_scenario(path):
            match step:
                case Define(sql):
                    hub.execute(sql)
                case Subscribe(name, sql):
                    live[name] = hub.subscribe(sql)
                case Replan(name, plan):
                    query = bind(live[name].sql, hub.catalog)
                    hub.replan(live[name], numbered_decomposition(query, plan))
                case Withdraw(name):
                    hub.unsubscribe(live.pop(name))
                case Publish(changes):
                    hub.apply(changes)
                case Bad(raw):
                    # Through the Hub's own door it would be refused; others may publish it.
                    Home.open(tmp_path / "home").log.append([(RecordKind.EVENT, raw)])
                    bad.append(raw)
                case Expect(name, rows):
                    assert plain(live[name].content()) == plain(rows), step
        assert [event.raw for event in hub.quarantine()] == bad


def test_a_bad_event_is_refused_by_the_hub() -> None:
    with Hub() as hub, pytest.raises(ChangeError, match="unknown table"):
        hub.insert("nowhere", {"id": 1})


def test_the_pipeline_lives_through_all_scenarios_in_one_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    teller = Teller(Home.create(tmp_path / "home"))
    teller.tell(interleaved(scenario_paths()))
    summary = run(tmp_path / "home", once=True, batch_rows=50)
    assert summary.position == teller.home.log.end
    assert [event.raw for event in teller.home.quarantine.entries()] == teller.bad
    assert summary.bad == len(teller.bad)
    seen = 0
    for expected in teller.expected:
        if expected.name in teller.ids:
            content = teller.content(expected.name, expected.position)
            assert content in (None, expected.rows), expected
            seen += content is not None
    assert seen > len(teller.expected) / 2
    last = {expected.name: expected.rows for expected in teller.expected}
    for name in teller.ids:
        assert teller.content(name) == last[name], name


def test_the_pipeline_lives_through_all_scenarios_in_several_runs(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It is stopped at points that have nothing to do with the story; contents equal the SQL."""
    teller = Teller(Home.create(tmp_path / "home"))
    steps = interleaved(scenario_paths())
    with Oracle() as oracle:
        chorus = Chorus(oracle, teller.registry)
        for i in range(RUNS):
            share = steps[len(steps) * i // RUNS : len(steps) * (i + 1) // RUNS]
            teller.tell(share)
            chorus.tell(share)
            run(tmp_path / "home", once=True, batch_rows=80)
            contents = {name: teller.content(name) for name in teller.ids}
            named = {name: None if c is None else values_of(c) for name, c in contents.items()}
            assert named == chorus.contents()
    assert [event.raw for event in teller.home.quarantine.entries()] == teller.bad
