"""Queries with XMLTABLE, expressions, operators and payloads: contents equal DuckDB's, over tables
of what lxml's trees hold."""

from __future__ import annotations

import os
from collections.abc import Iterator
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.differential.document_queries import query_stories
from tests.differential.operator_checks import check
from tests.differential.stories import Story
from tests.examples import examples
from tests.operators.evaluating import in_process
from tests.pipeline.test_operator_stories import OPERATORS
from tests.pipeline.test_stages import EVENTS, check_contents


@pytest.fixture(autouse=True, scope="module")
def evaluated_here() -> Iterator[None]:
    with in_process():
        yield


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(query_stories())
def test_expressions_and_payloads(story: Story) -> None:
    check(story)


@settings(max_examples=examples(40))
@given(query_stories(calls=True))
def test_operators(story: Story) -> None:
    check(story)


@pytest.mark.slow
@settings(max_examples=examples(150))
@given(query_stories(calls=True))
def test_all_together(story: Story) -> None:
    check(story)


HAPPENINGS = st.lists(st.sampled_from(EVENTS), min_size=8, max_size=24)


@pytest.mark.slow
@pytest.mark.parametrize("gear", ["plain", "fast"])
@settings(max_examples=examples(10))
@given(query_stories(calls=True), HAPPENINGS, st.integers(1, 5))
def test_through_the_pipeline(gear: str, story: Story, events: list[str], batch_rows: int) -> None:
    with mock.patch.dict(os.environ, PENSTOCK_GEAR=gear):
        check_contents(story, events, batch_rows, operators=OPERATORS)
