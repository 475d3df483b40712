"""A long run of long stories: `make soak SEED=7`."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.differential.operator_stories import ALIKE, OVER_ANY
from tests.differential.stories import MIXED, Shape, Story, stories
from tests.differential.test_hub import check
from tests.operators.evaluating import in_process
from tests.pipeline.coming_and_going import live_through, stories_in_rounds
from tests.pipeline.test_operator_stories import GEARS, HAPPENINGS
from tests.pipeline.test_operator_stories import check as check_operators
from tests.pipeline.test_packed_stages import ANY_BATCH_ROWS, SHAPES, check_story
from tests.pipeline.test_stages import MANY, check_contents

pytestmark = pytest.mark.soak


@given(stories(MIXED, max_steps=60))
def test_long_stories(story: Story) -> None:
    check(story)


@settings(max_examples=60, phases=[Phase.generate])
@given(story=stories_in_rounds())
def test_subscriptions_come_and_go_in_every_batch(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, story: list[Story]
) -> None:
    live_through(tmp_path_factory.mktemp("story"), story)


@settings(max_examples=200)
@given(data=st.data(), batch_rows=ANY_BATCH_ROWS)
@pytest.mark.parametrize("shape", SHAPES)
def test_both_gears_publish_the_same(shape: Shape, data: st.DataObject, batch_rows: int) -> None:
    check_story(data.draw(stories(shape, max_steps=40, any_plan=True)), batch_rows)


@settings(max_examples=300)
@given(data=st.data(), gear=GEARS, events=HAPPENINGS, batch_rows=st.integers(1, 5))
@pytest.mark.parametrize("shape", [ALIKE, OVER_ANY])
def test_operators_whatever_happens(
    shape: Shape, data: st.DataObject, gear: str, events: list[str], batch_rows: int
) -> None:
    story = data.draw(stories(shape, max_steps=40, any_plan=True))
    with in_process():
        check_operators(gear, story, events, batch_rows)


@settings(max_examples=500)
@given(stories(MIXED, max_steps=30, any_plan=True), HAPPENINGS, st.integers(1, 5), MANY)
def test_whatever_happens(story: Story, events: list[str], batch_rows: int, many: int) -> None:
    check_contents(story, events, batch_rows, many)
