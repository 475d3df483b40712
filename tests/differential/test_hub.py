"""The promise: after every step, every content equals the subscription's SQL run by DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import cycle
from typing import TypeAlias
from unittest import mock

import pytest
from hypothesis import given, settings

from penstock import Hub, Subscription
from penstock.flow.planning import Method
from penstock.joins import scheme_names
from penstock.testing.decompositions import numbered_decomposition
from penstock.testing.oracle import Oracle, comparable
from penstock.testing.scenario import Define, Publish, Replan, Step, Subscribe, Withdraw
from tests.differential.stories import (
    COMPUTED,
    COMPUTED_JOINS,
    HOT_KEYS,
    JOINS,
    MIXED,
    MULTI_WAY,
    PAIRS,
    SELECTIONS,
    SELF_JOINS,
    WIDE,
    Story,
    stories,
)
from tests.examples import examples

EXAMPLES = examples(450)  # five kinds of stories: together more than 2,000
FEWER_EXAMPLES = examples(150)  # of more special kinds, each of which has its own tests, too
EXAMPLES_OF_EACH_SCHEME = examples(20)  # a dozen at once, and four kinds of stories


Audience: TypeAlias = tuple[str, Hub, dict[str, Subscription]]
"""A Hub, what it is called, and the subscriptions that stand in it."""


def tell(
    story: Story,
    hub: Hub,
    oracle: Oracle,
    subscriptions: dict[str, Subscription] | None = None,
) -> None:
    """Tell a story to both, and compare all contents after every step."""
    tell_all(story, [("", hub, {} if subscriptions is None else subscriptions)], oracle)


def tell_all(story: Story, audience: Sequence[Audience], oracle: Oracle) -> None:
    """The same for several Hubs: what DuckDB makes of a story need not be asked for each."""
    for step in story.steps:
        for _, hub, subscriptions in audience:
            tell_hub(step, hub, subscriptions)
        if isinstance(step, Define):
            oracle.define(list(audience[0][1].catalog)[-1])
        elif isinstance(step, Publish):
            for change in step.changes:
                oracle.apply(change)
        for name, _, subscriptions in audience:
            compare(subscriptions, oracle, name)


def tell_hub(step: Step, hub: Hub, subscriptions: dict[str, Subscription]) -> None:
    match step:
        case Define(sql):
            hub.execute(sql)
        case Subscribe(name, sql, plan):
            # The Hub's own binder remembers what it has read; another one would read it twice.
            read = hub._processor.state.engine.bind
            chosen = None if plan is None else numbered_decomposition(read(sql), plan)
            subscriptions[name] = hub.subscribe(sql, decomposition=chosen)
        case Replan(name, plan):
            subscription = subscriptions[name]
            subscription.notifications()
            hub.replan(subscription, numbered_decomposition(subscription.query, plan))
            assert subscription.notifications() == []
        case Withdraw(name):
            hub.unsubscribe(subscriptions.pop(name))
        case Publish(changes):
            hub.apply(changes)


def compare(subscriptions: dict[str, Subscription], oracle: Oracle, told: str = "") -> None:
    for name, subscription in subscriptions.items():
        content = comparable(row.values() for row in subscription.content())
        assert content == oracle.content(subscription.sql), f"{told} {name}: {subscription.sql}"


def check(story: Story) -> None:
    with Hub() as hub, Oracle() as oracle:
        tell(story, hub, oracle)


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(stories(SELECTIONS))
def test_selections(story: Story) -> None:
    check(story)


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(stories(PAIRS))
def test_joins_of_two_tables(story: Story) -> None:
    check(story)


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(stories(MULTI_WAY))
def test_joins_of_many_tables(story: Story) -> None:
    check(story)


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(stories(SELF_JOINS))
def test_self_joins(story: Story) -> None:
    check(story)


@pytest.mark.slow
@settings(max_examples=EXAMPLES)
@given(stories(MIXED))
def test_all_together(story: Story) -> None:
    check(story)


@pytest.mark.slow
@settings(max_examples=examples(100))
@given(stories(SELECTIONS))
def test_selections_through_the_matcher(story: Story) -> None:
    with mock.patch("penstock.joins.selections.SCANNED_POINTS", 0):
        check(story)


def check_schemes(story: Story) -> None:
    """With all schemes side by side; also where `auto` would look through a few points without
    asking a scheme."""
    with (
        mock.patch("penstock.joins.schemes.auto.SCANNED_POINTS", 0),
        ExitStack() as hubs,
        Oracle() as oracle,
    ):
        audience: list[Audience] = [
            (s, hubs.enter_context(Hub(scheme=s)), {}) for s in scheme_names()
        ]
        tell_all(story, audience, oracle)


@pytest.mark.slow
@settings(max_examples=EXAMPLES_OF_EACH_SCHEME)
@given(story=stories(JOINS))
def test_every_scheme(story: Story) -> None:
    check_schemes(story)


@pytest.mark.slow
@settings(max_examples=FEWER_EXAMPLES)
@given(stories(MULTI_WAY, any_plan=True))
def test_any_decomposition(story: Story) -> None:
    check(story)


@pytest.mark.slow
@settings(max_examples=examples(100))
@given(stories(SELF_JOINS, any_plan=True))
def test_any_decomposition_of_self_joins(story: Story) -> None:
    check(story)


@pytest.mark.slow
@settings(max_examples=EXAMPLES_OF_EACH_SCHEME)
@given(story=stories(JOINS, any_plan=True))
def test_any_decomposition_with_every_scheme(story: Story) -> None:
    check_schemes(story)


@pytest.mark.slow
@settings(max_examples=EXAMPLES_OF_EACH_SCHEME)
@given(story=stories(WIDE, any_plan=True))
def test_several_filter_columns_with_every_scheme(story: Story) -> None:
    check_schemes(story)


@contextmanager
def hurried() -> Iterator[None]:
    """With limits so low that in small stories `auto` changes its way within a group, remembered
    shadows are used for batches, too, and loose ones are lived with."""
    with (
        mock.patch("penstock.joins.schemes.auto.SCANNED_ROWS", 6),
        mock.patch("penstock.joins.schemes.ref_sj_gap.ROWS_PER_STEP", 1),
        mock.patch("penstock.joins.shadows.VALUES_PER_STEP", 1),
        mock.patch("penstock.joins.shadows.IDLE_AFTER", 2),
    ):
        yield


@pytest.mark.slow
@settings(max_examples=FEWER_EXAMPLES)
@given(stories(HOT_KEYS, any_plan=True))
def test_hot_keys(story: Story) -> None:
    with hurried():
        check(story)


@pytest.mark.slow
@settings(max_examples=EXAMPLES_OF_EACH_SCHEME)
@given(story=stories(HOT_KEYS, any_plan=True))
def test_hot_keys_with_every_scheme(story: Story) -> None:
    with hurried():
        check_schemes(story)


@settings(max_examples=examples(20))
@given(stories(HOT_KEYS, max_steps=8))
def test_a_quick_look_at_hot_keys(story: Story) -> None:
    with hurried():
        check(story)


def reoptimised(story: Story) -> None:
    """After every step, queries are split as the tables suggest, however little it saves."""
    methods = cycle(Method)
    with (
        mock.patch("penstock.joins.decomposition.greedy.MIN_GAIN", 0.0),
        Hub() as hub,
        Oracle() as oracle,
    ):
        subscriptions: dict[str, Subscription] = {}
        for step in story.steps:
            tell(Story([step]), hub, oracle, subscriptions)
            for subscription in subscriptions.values():
                subscription.notifications()
            hub.reoptimise(next(methods))
            assert not any(one.notifications() for one in subscriptions.values())
            compare(subscriptions, oracle)


@pytest.mark.slow
@settings(max_examples=FEWER_EXAMPLES)
@given(stories(MULTI_WAY))
def test_reoptimising_after_every_step(story: Story) -> None:
    reoptimised(story)


@pytest.mark.slow
@settings(max_examples=examples(20))
@given(stories(WIDE, max_steps=10))
def test_a_quick_look_at_reoptimising(story: Story) -> None:
    reoptimised(story)


@settings(max_examples=examples(20))
@given(stories(WIDE, max_steps=10, any_plan=True))
def test_a_quick_look_at_several_filter_columns(story: Story) -> None:
    check(story)


@settings(max_examples=examples(20))
@given(stories(JOINS, max_steps=10, any_plan=True))
def test_a_quick_look_at_any_decomposition(story: Story) -> None:
    check(story)


@settings(max_examples=examples(20))
@given(stories(MIXED, max_steps=8))
def test_a_quick_look(story: Story) -> None:
    check(story)


@pytest.mark.slow
@settings(max_examples=FEWER_EXAMPLES)
@given(stories(COMPUTED))
def test_selections_that_compute(story: Story) -> None:
    check(story)


@pytest.mark.slow
@settings(max_examples=FEWER_EXAMPLES)
@given(stories(COMPUTED_JOINS, any_plan=True))
def test_joins_that_compute(story: Story) -> None:
    check(story)


@settings(max_examples=examples(20))
@given(stories(COMPUTED, max_steps=8))
def test_a_quick_look_at_expressions(story: Story) -> None:
    check(story)


@settings(max_examples=examples(20))
@given(stories(COMPUTED_JOINS, max_steps=8, any_plan=True))
def test_a_quick_look_at_joins_that_compute(story: Story) -> None:
    check(story)
