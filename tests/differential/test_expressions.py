"""Queries that compute with columns: contents equal DuckDB's, whoever computes them and whatever
happens on the way."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import Hub
from penstock.joins.initial_regions import MANY_NEWCOMERS
from penstock.testing.oracle import Oracle
from penstock.testing.scenario import Subscribe
from tests.differential import test_changes_only as changes_only
from tests.differential import test_payload as payload
from tests.differential.pipeline_runs import PipelineRun
from tests.differential.stories import COMPUTED, COMPUTED_JOINS, Story, stories
from tests.examples import examples
from tests.pipeline.test_stages import EVENTS, check_contents

what_happens = st.lists(st.sampled_from(EVENTS), min_size=8, max_size=24)
many_newcomers = st.sampled_from([1, 2, MANY_NEWCOMERS])


@pytest.mark.slow
@settings(max_examples=examples(20))
@given(stories(COMPUTED, max_steps=16), what_happens, st.integers(1, 5), many_newcomers)
def test_selections_in_a_pipeline(
    story: Story, events: list[str], batch_rows: int, many: int
) -> None:
    check_contents(story, events, batch_rows, many)


@pytest.mark.slow
@settings(max_examples=examples(20))
@given(
    stories(COMPUTED_JOINS, max_steps=16, any_plan=True),
    what_happens,
    st.integers(1, 5),
    many_newcomers,
)
def test_joins_in_a_pipeline(story: Story, events: list[str], batch_rows: int, many: int) -> None:
    check_contents(story, events, batch_rows, many)


@settings(max_examples=examples(15))
@given(stories(COMPUTED, max_steps=10), what_happens, st.integers(1, 5), many_newcomers)
def test_changes_only(story: Story, events: list[str], batch_rows: int, many: int) -> None:
    check_changes_only(story, events, batch_rows, many)


@pytest.mark.slow
@settings(max_examples=examples(15))
@given(
    stories(COMPUTED_JOINS, max_steps=10, any_plan=True),
    what_happens,
    st.integers(1, 5),
    many_newcomers,
)
def test_changes_only_of_joins(story: Story, events: list[str], batch_rows: int, many: int) -> None:
    check_changes_only(story, events, batch_rows, many)


def check_changes_only(story: Story, events: list[str], batch_rows: int, many: int) -> None:
    changes_only.check_hub(story)
    changes_only.check_pipeline(story, PipelineRun(events, batch_rows, many))


@st.composite
def payload_stories(draw: st.DrawFn) -> Story:
    """Stories of selections that compute, some of which name a payload."""
    story = draw(stories(COMPUTED, max_steps=16))
    steps = []
    for step in story.steps:
        if isinstance(step, Subscribe) and draw(st.integers(0, 3)):
            # Not the first FROM of the text: extract(month FROM a) has one of its own.
            rest = step.sql[step.sql.index(" FROM t0 ") :]
            hint = f"/*+ payload({draw(st.sampled_from(payload.PAYLOADS))}) */"
            items = "id, k, b AS z, a, k + j AS sum, coalesce(k, 7) AS filled"
            step = replace(step, sql=f"SELECT {hint} {items}{rest}")
        steps.append(step)
    return Story(steps)


@settings(max_examples=examples(20))
@given(payload_stories())
def test_payloads(story: Story) -> None:
    with Hub() as hub, Oracle() as oracle:
        payload.tell(story, hub, oracle)


@pytest.mark.slow
@settings(max_examples=examples(20))
@given(payload_stories(), what_happens, st.integers(1, 5), many_newcomers)
def test_payloads_in_a_pipeline(
    story: Story, events: list[str], batch_rows: int, many: int
) -> None:
    check_contents(story, events, batch_rows, many)
