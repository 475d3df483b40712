"""Whoever takes a content and goes on from its cursor ends with the content of the end: by a Hub,
and by batches as a pipeline cuts them, whatever happens to the home meanwhile."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import Hub, Subscription
from penstock.client import ContentRow, Initial, News, Notification
from penstock.delivery import SubscriptionReader
from penstock.errors import HomeError
from penstock.storage import Home
from tests.differential.pipeline_runs import PipelineRun, pipeline_runs
from tests.differential.stories import JOINS, MIXED, SELECTIONS, Story, stories
from tests.differential.test_changes_only import TWIN, with_twins
from tests.examples import examples
from tests.pipeline.telling import Teller, tell_hub


@dataclass(frozen=True)
class Cut:
    """What a reader held when it stopped."""

    subscription: int
    rows: Counter[str]
    cursor: int


def rows_of(content: Iterable[ContentRow]) -> Counter[str]:
    return Counter(repr(list(row.items())) for row in content)


def brought_forward(cut: Cut, told: Iterable[Notification]) -> Counter[str]:
    """Each notification must fit what the reader holds by then."""
    rows = cut.rows.copy()
    for one in told:
        if one.before is not None:
            (gone,) = rows_of([one.before])
            assert rows[gone] > 0, one
            rows[gone] -= 1
        if one.after is not None:
            rows += rows_of([one.after])
    return +rows


def ids_of(told: Iterable[Notification]) -> list[str]:
    return [one.id for one in told]


def check_hub(story: Story, every: int) -> None:
    with Hub() as hub:
        live: dict[str, Subscription] = {}
        cuts: list[Cut] = []
        for number, step in enumerate(story.steps):
            tell_hub(hub, [step], live)
            if number % every == 0:
                for one in live.values():
                    rows, cursor = hub.snapshot(one)
                    cuts.append(Cut(one.id, rows_of(rows), cursor))
        standing = set(hub.subscriptions())
        for cut in cuts:
            if cut.subscription in standing:
                news = hub.news(cut.subscription, cut.cursor)
                content = hub.subscription(cut.subscription).content()
                assert brought_forward(cut, news.notifications) == rows_of(content)
                assert not hub.news(cut.subscription, news.cursor).notifications
        for one in live.values():
            assert ids_of(hub.news(one, 0).notifications) == ids_of(one.notifications())


def follow(
    home: Home, number: int, since: int | None = None
) -> tuple[SubscriptionReader, list[News]]:
    reader = SubscriptionReader(home, number, since)
    return reader, list(reader.new())


def check_pipeline(story: Story, run: PipelineRun) -> None:
    with tempfile.TemporaryDirectory() as directory:
        teller = Teller(Home.create(Path(directory) / "home"))
        home = teller.home
        cuts: list[Cut] = []
        for _ in run.follow(teller, with_twins(story)):
            for name, number in teller.ids.items():
                reader, _ = follow(home, number)
                rows = Counter[str]() if name.endswith(TWIN) else rows_of(reader.rows())
                cuts.append(Cut(number, rows, reader.cursor))
        changes_only = {n for name, n in teller.ids.items() if name.endswith(TWIN)}
        for cut in cuts:
            if cut.subscription in teller.ids.values():
                check_cut(home, cut, cut.subscription in changes_only)
        for number in teller.ids.values():
            check_killed_readers(home, number)


def check_cut(home: Home, cut: Cut, changes_only: bool) -> None:
    base = home.messages.base
    whole, everything = follow(home, cut.subscription)
    is_lost = base is not None and cut.cursor < base.end
    if base is not None:
        # One that needs nothing to start with is active in the batch that holds its record.
        needs_nothing = whole.registration.initial is Initial.NONE
        is_lost &= cut.subscription < (base.end if needs_nothing else base.active)
    if is_lost and (cut.cursor or changes_only):
        with pytest.raises(HomeError, match="no longer there"):
            follow(home, cut.subscription, cut.cursor)
        return
    reader, news = follow(home, cut.subscription, cut.cursor)
    told = [one for part in news for one in part.notifications]
    assert reader.cursor == whole.cursor
    assert plain(news) == plain(part for part in everything if part.cursor > cut.cursor)
    if not changes_only:
        assert brought_forward(cut, told) == rows_of(reader.rows())


def check_killed_readers(home: Home, number: int) -> None:
    """A reader that is killed within a batch is told the batch again, and nothing else."""
    _, parts = follow(home, number)
    everything = [part for part in parts if part.notifications]
    ids = [one.id for part in everything for one in part.notifications]
    assert len(set(ids)) == len(ids)
    for at, part in enumerate(everything):
        if home.messages.base is None or part.since:
            assert plain(follow(home, number, part.since)[1]) == plain(everything[at:])


def plain(news: Iterable[News]) -> list[str]:
    """Comparable, NaN included; batches that tell nothing are left out."""
    return [repr(part) for part in news if part.notifications]


@settings(max_examples=examples(20))
@given(stories(SELECTIONS, max_steps=10), st.integers(1, 3))
def test_a_hub_over_one_table(story: Story, every: int) -> None:
    check_hub(story, every)


@settings(max_examples=examples(20))
@given(stories(JOINS, max_steps=10, any_plan=True), st.integers(1, 3))
def test_a_hub_over_several_tables(story: Story, every: int) -> None:
    check_hub(story, every)


@pytest.mark.slow
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
@given(stories(MIXED, max_steps=16, any_plan=True), st.integers(1, 3))
def test_many_stories(story: Story, every: int) -> None:
    check_hub(story, every)


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(stories(MIXED, max_steps=16, any_plan=True), pipeline_runs)
def test_a_pipeline_through_many_stories(story: Story, run: PipelineRun) -> None:
    """`make soak` tells more of them."""
    check_pipeline(story, run)
