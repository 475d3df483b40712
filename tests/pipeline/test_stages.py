"""The stages without Spark: in batches of any size, through crashes, in turns with a Hub."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import Hub
from penstock.joins.initial_regions import MANY_NEWCOMERS
from penstock.maintenance.compaction import compact
from penstock.operators import Operator
from penstock.pipeline.offsets import StreamOffset
from penstock.storage import Home
from penstock.testing import LocalPipeline
from penstock.testing.oracle import Oracle
from penstock.testing.scenario import Step
from tests.differential.stories import MIXED, Story, stories
from tests.examples import examples
from tests.pipeline.telling import Chorus, Teller, interleaved, scenario_paths, values_of


@pytest.mark.slow
def test_all_scenarios_in_small_batches(tmp_path: Path) -> None:
    teller = Teller(Home.create(tmp_path / "home"))
    pipeline = LocalPipeline(teller.home, batch_rows=3)
    teller.tell(interleaved(scenario_paths()))
    assert pipeline.run() > 40
    seen = 0
    for expected in teller.expected:
        if expected.name in teller.ids:
            content = teller.content(expected.name, expected.position)
            assert content in (None, expected.rows), expected
            seen += content is not None
    assert seen > 0.8 * len(teller.expected)
    assert [event.raw for event in teller.home.quarantine.entries()] == teller.bad


def test_an_empty_home_has_nothing_to_publish(tmp_path: Path) -> None:
    pipeline = LocalPipeline(Home.create(tmp_path / "home"))
    assert pipeline.run() == 0
    pipeline.process(pipeline.offset)  # Spark runs a first batch in any case
    assert pipeline.home.messages.frontier is None


# What may happen between two steps of a story. A Hub takes over, and leaves again; the checkpoint
# is lost; the home is compacted; the pipeline is killed at one point or another of a batch.
EVENTS = (
    "run",
    "batch",
    "crash",
    "crash after publishing",
    "hub",
    "lose checkpoint",
    "compact",
    "snapshot",
    "lose snapshots",
    "nothing",
)


MANY = st.sampled_from([1, 2, MANY_NEWCOMERS])


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(
    story=stories(MIXED, max_steps=16, any_plan=True),
    events=st.lists(st.sampled_from(EVENTS), min_size=8, max_size=24),
    batch_rows=st.integers(1, 5),
    many=MANY,
)
def test_whatever_happens_contents_equal_the_sql(
    story: Story, events: list[str], batch_rows: int, many: int
) -> None:
    """`make soak` tells more of them."""
    check_contents(story, events, batch_rows, many)


def check_contents(
    story: Story,
    events: list[str],
    batch_rows: int,
    many: int = MANY_NEWCOMERS,
    operators: Mapping[str, Operator] = MappingProxyType({}),
) -> None:
    """Contents equal DuckDB's, whatever happens between the steps of a story. `operators`: by the
    place where others find them."""
    with tempfile.TemporaryDirectory() as directory, Oracle() as oracle:
        teller = Teller(Home.create(Path(directory) / "home"))
        for place, operator in operators.items():
            teller.registry.define(f"CREATE OPERATOR {operator.name} AS '{place}'")
            oracle.define_operator(operator)
        chorus = Chorus(oracle, teller.registry)
        pipeline = LocalPipeline(teller.home, batch_rows, many_newcomers=many)
        for step, event in zip(story.steps, events * len(story.steps), strict=False):
            tell(step, teller, chorus)
            pipeline = happen(event, pipeline, batch_rows)
        pipeline.run()
        published = files(teller.home)
        contents = {name: teller.content(name) for name in teller.ids}
        named = {name: None if c is None else values_of(c) for name, c in contents.items()}
        assert named == chorus.contents()
        # Whoever starts from nothing rebuilds the state, and has nothing to add.
        rebuilt = LocalPipeline(teller.home, batch_rows, many_newcomers=many)
        rebuilt.run()
        assert rebuilt.offset.position == teller.home.log.end
        assert files(teller.home) == published


def tell(step: Step, teller: Teller, chorus: Chorus) -> None:
    teller.tell([step])
    chorus.tell([step])


def compacted(pipeline: LocalPipeline) -> None:
    """Compact the home of a pipeline that is where its checkpoint says."""
    checkpoint = pipeline.home.checkpoint
    if pipeline.offset != StreamOffset():
        for name, text in (("offsets", json.dumps(pipeline.offset.to_json())), ("commits", "v1")):
            (checkpoint / name).mkdir(exist_ok=True)
            (checkpoint / name / "0").write_text(text)
    else:
        shutil.rmtree(checkpoint)
        checkpoint.mkdir()
    compact(Home.open(pipeline.home.path), lambda _what: nullcontext(lambda _done, _total: None))


def happen(event: str, pipeline: LocalPipeline, batch_rows: int) -> LocalPipeline:
    match event:
        case "compact":
            compacted(pipeline)
        case "snapshot":
            pipeline.snapshot(pipeline.offset.position)
        case "lose snapshots":
            pipeline.lose_snapshots()
        case "run":
            pipeline.run()
        case "batch":
            pipeline.process(pipeline.planned())
        case "crash":
            pipeline.crash()
        case "crash after publishing":
            pipeline.crash_after_publishing()
        case "hub":
            with Hub(pipeline.home.path):
                pass
        case "lose checkpoint":
            return LocalPipeline(pipeline.home, batch_rows, many_newcomers=pipeline.many_newcomers)
    return pipeline


def files(home: Home) -> dict[str, bytes]:
    directories = (home.messages.directory, home.quarantine.directory)
    return {path.name: path.read_bytes() for d in directories for path in d.iterdir()}
