"""A long run of long stories: `make soak SEED=7`."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from pyspark.sql import SparkSession

from tests.differential.stories import MIXED, Story, stories
from tests.differential.test_hub import check
from tests.pipeline.coming_and_going import live_through, stories_in_rounds

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
