"""Contents of subscriptions that call operators equal DuckDB's, which has them as functions."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest
from hypothesis import given, settings

from penstock.operators.schedules.registry import schedule_names
from tests.differential.operator_checks import check
from tests.differential.operator_stories import ALIKE, OVER_ANY, OVER_ONE, OVER_SEVERAL
from tests.differential.stories import Story, stories
from tests.examples import examples
from tests.operators.evaluating import in_process


@pytest.fixture(autouse=True, scope="module")
def evaluated_here() -> Iterator[None]:
    with in_process():
        yield


@settings(max_examples=examples(40))
@given(stories(OVER_ONE))
def test_a_quick_look_at_selections(story: Story) -> None:
    check(story)


@settings(max_examples=examples(40))
@given(stories(OVER_SEVERAL, any_plan=True))
def test_a_quick_look_at_joins(story: Story) -> None:
    check(story)


@pytest.mark.slow
@settings(max_examples=examples(150))
@given(stories(OVER_ANY, max_steps=16, any_plan=True))
def test_all_together(story: Story) -> None:
    check(story)


@pytest.mark.slow
@settings(max_examples=examples(50))
@given(stories(OVER_ONE, max_steps=16))
def test_selections_through_matchers(story: Story) -> None:
    with (
        mock.patch("penstock.joins.selections.SCANNED_POINTS", 0),
        mock.patch("penstock.flow.candidates.SCANNED_BRANCHES", 0),
        mock.patch("penstock.flow.candidates.SCANNED_ROWS", 0),
    ):
        check(story)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", schedule_names())
@settings(max_examples=examples(60))
@given(story=stories(OVER_ANY, max_steps=16))
def test_every_schedule(schedule: str, story: Story) -> None:
    with in_process(schedule):
        check(story)


@settings(max_examples=examples(60))
@given(stories(ALIKE, max_steps=16, any_plan=True))
def test_a_quick_look_at_calls_that_are_shared(story: Story) -> None:
    check(story)


@pytest.mark.slow
@settings(max_examples=examples(150))
@given(stories(ALIKE, max_steps=24, any_plan=True))
def test_calls_that_are_shared(story: Story) -> None:
    check(story)
