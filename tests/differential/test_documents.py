"""Subscriptions over documents: at every offset, contents are what lxml's XPath finds."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import Hub
from penstock.joins import scheme_names
from penstock.joins.initial_regions import MANY_NEWCOMERS
from penstock.storage import Home
from penstock.testing import LocalPipeline
from penstock.testing.scenario import Define, Publish, Subscribe, Withdraw
from tests.differential.document_stories import DocumentStory, Twin, document_stories
from tests.examples import examples
from tests.pipeline.telling import Teller, values_of


def tell(story: DocumentStory, hub: Hub) -> None:
    twin, active = Twin(), {}
    for step in story.steps:
        match step:
            case Define(sql):
                hub.execute(sql)
            case Subscribe(name, sql):
                active[name] = hub.subscribe(sql)
            case Withdraw(name):
                hub.unsubscribe(active.pop(name))
            case Publish(changes):
                judged = {}
                for name, one in active.items():
                    one.notifications()  # of what it started with
                    judged[name] = hub.explain(one, changes[0]).reaches
                hub.apply(changes)
                for change in changes:
                    twin.apply(change)
                for name, reaches in judged.items():
                    assert reaches == bool(active[name].notifications()), active[name].sql
        for name, subscription in active.items():
            found = Counter(tuple(row.values()) for row in subscription.content())
            assert found == story.wanted[name].content(twin), subscription.sql


@settings(max_examples=examples(60))
@given(document_stories())
def test_contents_equal_direct_evaluation(story: DocumentStory) -> None:
    with Hub() as hub:
        tell(story, hub)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", scheme_names())
@settings(max_examples=examples(20))
@given(story=document_stories())
def test_with_every_scheme(scheme: str, story: DocumentStory) -> None:
    with Hub(scheme=scheme) as hub:
        tell(story, hub)


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(
    story=document_stories(12),
    batch_rows=st.integers(1, 5),
    many=st.sampled_from([1, MANY_NEWCOMERS]),
)
def test_through_the_stages_of_the_pipeline(
    tmp_path_factory: pytest.TempPathFactory, story: DocumentStory, batch_rows: int, many: int
) -> None:
    teller, twin = Teller(Home.create(tmp_path_factory.mktemp("documents") / "home")), Twin()
    pipeline = LocalPipeline(teller.home, batch_rows, many_newcomers=many)
    expected: list[tuple[str, int, Counter[tuple[object, ...]]]] = []
    for number, step in enumerate(story.steps):
        teller.tell([step])
        for change in step.changes if isinstance(step, Publish) else ():
            twin.apply(change)
        position = teller.home.log.end
        expected += [(name, position, story.wanted[name].content(twin)) for name in teller.ids]
        if number % 3 == 0:
            pipeline.run()
    pipeline.run()
    for name, position, rows in expected:
        if name in teller.ids:
            found = teller.content(name, position)
            assert found is None or values_of(found) == rows, story.wanted[name].sql
    last = {name: teller.content(name) for name in teller.ids}
    assert all(found is not None for found in last.values())
