"""Whoever wants changes only is told what a twin is told after its first content: neither more nor
less, by a Hub and by a pipeline, whatever happens to it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given, settings

from penstock import Hub, Subscription
from penstock.client import Notification
from penstock.errors import SubscriptionError
from penstock.flow.changes import Change, Op
from penstock.sql import bind
from penstock.storage import Home
from penstock.testing import LocalPipeline
from penstock.testing.decompositions import numbered_decomposition
from penstock.testing.oracle import Oracle, comparable
from penstock.testing.scenario import Define, Publish, Replan, Step, Subscribe, Withdraw
from tests.differential.pipeline_runs import PipelineRun, pipeline_runs
from tests.differential.stories import JOINS, MIXED, SELECTIONS, Story, stories
from tests.examples import examples
from tests.pipeline.telling import Teller, told_to

Told: TypeAlias = list[tuple[int, str, str, str]]
TWIN = "'"
"""Ends the name of a subscription that is like another one, but wants changes only."""


def with_twins(story: Story) -> Iterator[Step]:
    for step in story.steps:
        yield step
        match step:
            case Subscribe(name, sql, plan):
                yield Subscribe(name + TWIN, sql, plan, "none")
            case Replan(name, plan):
                yield Replan(name + TWIN, plan)
            case Withdraw(name):
                yield Withdraw(name + TWIN)


def plain(notifications: Iterable[Notification], since: int = 0) -> Told:
    """In an order that does not depend on who computed them; NaN is as good as NaN."""
    return sorted(
        (one.offset, repr(one.key), repr(one.before), repr(one.after))
        for one in notifications
        if one.offset >= since
    )


class Reference:
    """A Hub in memory, and DuckDB: what everybody is told after the first content."""

    def __init__(self, hub: Hub, oracle: Oracle) -> None:
        self.hub = hub
        self.oracle = oracle
        self.live: dict[str, Subscription] = {}
        self.told: dict[str, list[Notification]] = {}

    def tell(self, step: Step) -> None:
        match step:
            case Define(sql):
                self.hub.execute(sql)
                self.oracle.define(list(self.hub.catalog)[-1])
            case Subscribe(name, sql, plan, initial):
                query = bind(sql, self.hub.catalog)
                chosen = None if plan is None else numbered_decomposition(query, plan)
                live = self.hub.subscribe(sql, decomposition=chosen, initial=initial)
                first = live.notifications()
                assert initial == "content" or not first
                self.live[name], self.told[name] = live, []
            case Replan(name, plan):
                query = bind(self.live[name].sql, self.hub.catalog)
                self.hub.replan(self.live[name], numbered_decomposition(query, plan))
            case Withdraw(name):
                self.hub.unsubscribe(self.live.pop(name))
                del self.told[name]
            case Publish(changes):
                self.hub.apply(changes)
                for change in changes:
                    self.oracle.apply(change)
        for name, live in self.live.items():
            self.told[name] += live.notifications()

    def check(self) -> None:
        for name, live in self.live.items():
            if name.endswith(TWIN):
                with pytest.raises(SubscriptionError, match="has no content"):
                    live.content()
                assert plain(self.told[name]) == plain(self.told[name.removesuffix(TWIN)])
            else:
                content = comparable(row.values() for row in live.content())
                assert content == self.oracle.content(live.sql)


def check_hub(story: Story) -> None:
    with Hub() as hub, Oracle() as oracle:
        reference = Reference(hub, oracle)
        for step in with_twins(story):
            reference.tell(step)
        reference.check()


def check_pipeline(story: Story, run: PipelineRun) -> None:
    """Both logs have the same records, so offsets can be compared; what was compacted is gone."""
    with tempfile.TemporaryDirectory() as directory, Hub() as hub, Oracle() as oracle:
        reference = Reference(hub, oracle)
        teller = Teller(Home.create(Path(directory) / "home"))
        for step in run.follow(teller, with_twins(story)):
            reference.tell(step)
        base = teller.home.messages.base
        since = 0 if base is None else base.end
        for name, number in teller.ids.items():
            if name.endswith(TWIN):
                told = plain(told_to(teller.home, teller.registry, number))
                assert told == plain(reference.told[name.removesuffix(TWIN)], since), name


@settings(max_examples=examples(25))
@given(stories(SELECTIONS, max_steps=10))
def test_over_one_table(story: Story) -> None:
    check_hub(story)


@settings(max_examples=examples(25))
@given(stories(JOINS, max_steps=10, any_plan=True))
def test_over_several_tables(story: Story) -> None:
    check_hub(story)


@settings(max_examples=examples(6))
@given(stories(SELECTIONS, max_steps=10), pipeline_runs)
def test_a_pipeline_over_one_table(story: Story, run: PipelineRun) -> None:
    check_pipeline(story, run)


@pytest.mark.slow
@settings(max_examples=examples(6))
@given(stories(MIXED, max_steps=10, any_plan=True), pipeline_runs)
def test_a_pipeline_over_anything(story: Story, run: PipelineRun) -> None:
    check_pipeline(story, run)


@pytest.mark.slow
@settings(max_examples=examples(120))
@given(stories(MIXED, max_steps=16, any_plan=True))
def test_many_stories(story: Story) -> None:
    check_hub(story)


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(stories(MIXED, max_steps=16, any_plan=True), pipeline_runs)
def test_a_pipeline_through_many_stories(story: Story, run: PipelineRun) -> None:
    """`make soak` tells more of them."""
    check_pipeline(story, run)


def test_a_home_that_is_opened_again_tells_the_same(tmp_path: Path) -> None:
    with Hub(tmp_path / "home") as hub:
        hub.execute("CREATE TABLE stocks (id INT PRIMARY KEY, symbol VARCHAR, per DOUBLE)")
        hub.insert("stocks", {"id": 1, "symbol": "A", "per": 10.0})
        sub = hub.subscribe("SELECT symbol FROM stocks WHERE per < 20", initial="none")
        hub.update("stocks", {"id": 1, "symbol": "B"})
        hub.delete("stocks", {"id": 1})
        told = sub.notifications()
        assert [(one.kind, one.before, one.after) for one in told] == [
            ("update", {"symbol": "A"}, {"symbol": "B"}),
            ("delete", {"symbol": "B"}, None),
        ]
    with Hub(tmp_path / "home") as hub:
        assert hub.subscription(sub.id).notifications() == told


BEFORE = [
    Change("stocks", Op.INSERT, {"id": 1, "symbol": "A", "per": 1}),
    Change("reviews", Op.INSERT, {"id": 1, "symbol": "A", "rating": 1}),
]
AFTER = [
    Change("reviews", Op.INSERT, {"id": 2, "symbol": "A", "rating": 2}),
    Change("stocks", Op.UPDATE, {"id": 1, "per": 2}),
]


@pytest.mark.parametrize(
    ("sql", "kinds"),
    [
        ("SELECT rating FROM reviews", ["insert"]),
        ("SELECT per FROM stocks", ["update"]),
        ("SELECT per, rating FROM stocks JOIN reviews USING (symbol)", ["insert"] + 2 * ["update"]),
    ],
)
def test_it_begins_at_its_record_in_the_middle_of_a_batch(
    tmp_path: Path, sql: str, kinds: list[str]
) -> None:
    teller = Teller(Home.create(tmp_path / "home"))
    teller.registry.define("CREATE TABLE stocks (id INT PRIMARY KEY, symbol VARCHAR, per INT)")
    teller.registry.define("CREATE TABLE reviews (id INT PRIMARY KEY, symbol VARCHAR, rating INT)")
    teller.publish(*BEFORE)
    teller.registry.subscribe_many([sql] * 2, initial="none")
    number = teller.registry.subscribe(sql, initial="none").id
    teller.publish(*AFTER)
    LocalPipeline(teller.home).run()
    told = told_to(teller.home, teller.registry, number)
    assert [one.kind for one in told] == kinds
    assert {one.offset for one in told} <= {number + 1, number + 2}


def test_what_else_it_may_start_with() -> None:
    with Hub() as hub:
        hub.execute("CREATE STREAM trades (amount INT)")
        with pytest.raises(SubscriptionError, match="cannot start with 'quiet'"):
            hub.subscribe("SELECT * FROM trades", initial="quiet")
