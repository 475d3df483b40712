"""Subscriptions that call operators, through the stages of the pipeline and whatever happens."""

from __future__ import annotations

import os
from collections.abc import Iterator
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.differential.operator_stories import ALIKE, OVER_ANY
from tests.differential.stories import Story, stories
from tests.examples import examples
from tests.operators.evaluating import in_process
from tests.operators.samples import PREDICATES
from tests.pipeline.test_stages import EVENTS, check_contents

OPERATORS = {f"tests.operators.samples:{one.function.__name__}": one for one in PREDICATES}


@pytest.fixture(autouse=True, scope="module")
def evaluated_here() -> Iterator[None]:
    with in_process():
        yield


def check(gear: str, story: Story, events: list[str], batch_rows: int) -> None:
    with mock.patch.dict(os.environ, PENSTOCK_GEAR=gear):
        check_contents(story, events, batch_rows, operators=OPERATORS)


HAPPENINGS = st.lists(st.sampled_from(EVENTS), min_size=8, max_size=24)
GEARS = st.sampled_from(["plain", "fast"])
"""Each story is compared with DuckDB in one of them; `make soak` tells more stories."""


@pytest.mark.slow
@settings(max_examples=examples(10))
@given(GEARS, stories(ALIKE, max_steps=16, any_plan=True), HAPPENINGS, st.integers(1, 5))
def test_a_quick_look(gear: str, story: Story, events: list[str], batch_rows: int) -> None:
    check(gear, story, events, batch_rows)


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(GEARS, stories(ALIKE, max_steps=24, any_plan=True), HAPPENINGS, st.integers(1, 5))
def test_calls_that_are_shared(gear: str, story: Story, events: list[str], batch_rows: int) -> None:
    check(gear, story, events, batch_rows)


@pytest.mark.slow
@settings(max_examples=examples(30))
@given(GEARS, stories(OVER_ANY, max_steps=16, any_plan=True), HAPPENINGS, st.integers(1, 5))
def test_all_together(gear: str, story: Story, events: list[str], batch_rows: int) -> None:
    check(gear, story, events, batch_rows)
