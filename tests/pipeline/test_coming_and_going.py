"""Subscriptions come and go in every batch: pipeline, Hub and DuckDB agree after each of them."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from pyspark.sql import SparkSession

from tests.differential.stories import Story
from tests.examples import examples
from tests.pipeline.coming_and_going import live_through, stories_in_rounds

# A story takes a dozen batches: there is no time to look for a shorter one that fails, nor for many
# of them (make soak).
lengthy = settings(max_examples=examples(2), phases=[Phase.generate])


@pytest.mark.slow
@lengthy
@given(story=stories_in_rounds())
def test_subscriptions_come_and_go_in_every_batch(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, story: list[Story]
) -> None:
    live_through(tmp_path_factory.mktemp("story"), story)
