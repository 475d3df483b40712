"""Churn: views come and go, sites fail, plans change; every subscriber gets every result once."""

from __future__ import annotations

import random
from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.catalog import IntegerType
from penstock.catalog.relations import Column, Relation
from penstock.documents.document import Document, parse_document
from penstock.documents.evaluation import evaluate
from penstock.documents.patterns import PatternNode, TreePattern
from penstock.errors import PlanError, SubscriptionError
from penstock.lab.workloads import xmark
from penstock.predicates import boxes
from penstock.predicates.intervals import point
from penstock.views.box_language import BoxLanguage, BoxView
from penstock.views.live_plan import LivePlan, LivePolicy
from penstock.views.sites import (
    SOURCE_NODE,
    Assign,
    Message,
    NodeName,
    Outgoing,
    Results,
    SiteNode,
    SourceNode,
    changeover,
)
from penstock.views.statistics import DocumentStatistics
from penstock.views.tree_language import TreeLanguage
from penstock.views.tree_planner import TreePlanner
from tests.documents.strategies import documents, patterns
from tests.examples import examples


class World:
    """A source, sites, and links that deliver in order, but in any order among each other."""

    def __init__(self, seed: int, capacity: int = 3, source_capacity: int = 1000) -> None:
        self.random = random.Random(seed)
        self.planner = TreePlanner(DocumentStatistics())
        policy = LivePolicy(capacity, source_capacity, replan_after_additions=5)
        self.plan = LivePlan(TreeLanguage(), policy, self.planner.price)
        self.source = SourceNode()
        self.sites: dict[NodeName, SiteNode] = {}
        self.first: dict[NodeName, int] = {}
        self.links: dict[tuple[NodeName, NodeName], deque[Message]] = {}

    def publish(self, document: Document) -> None:
        self._send(SOURCE_NODE, self.source.on_document(document))

    def add(self, number: NodeName, pattern: TreePattern, *, as_feeder: bool) -> None:
        self.planner.patterns[number] = pattern
        old = dict(self.plan.feeding)
        changes = self.plan.add(number, pattern, as_feeder=as_feeder)
        self.first[number] = len(self.source.documents)
        self.sites[number] = SiteNode(number, pattern, self.first[number])
        self.source.enter(number, pattern)
        self._order(old, changes)

    def replan(self) -> None:
        old = dict(self.plan.feeding)
        self._order(old, self.plan.replan(self.planner.plan))

    def fail(self, *numbers: NodeName) -> None:
        """Sites vanish with everything that is on their links."""
        old = {one: inputs for one, inputs in self.plan.feeding.items() if one not in numbers}
        changes = self.plan.withdraw(*numbers)
        for number in numbers:
            del self.sites[number]
        self.links = {
            ends: link for ends, link in self.links.items() if not set(ends) & set(numbers)
        }
        behind = {number: self.sites[number].next_document for number in changes}
        self._order(old, changes, behind)

    def _order(
        self,
        old: dict[NodeName, tuple[NodeName, ...]],
        changes: dict[NodeName, tuple[NodeName, ...]],
        behind: dict[NodeName, int] | None = None,
    ) -> None:
        start = len(self.source.documents)
        self._send(-2, changeover(old, changes, self.plan.views, start, behind))

    def _send(self, sender: NodeName, outgoing: Outgoing) -> None:
        for to, message in outgoing:
            self.links.setdefault((sender, to), deque()).append(message)

    def step(self) -> bool:
        busy = sorted(ends for ends, link in self.links.items() if link)
        if not busy:
            return False
        sender, to = self.random.choice(busy)
        message = self.links[sender, to].popleft()
        if to == SOURCE_NODE:
            self._send(to, self.source.on_message(message))
        elif to in self.sites:
            self._send(to, self.sites[to].on_message(message))
        return True

    def drain(self) -> None:
        while self.step():
            pass

    def check(self) -> None:
        """Everybody has everything since it came, once, in order, and right."""
        for number, site in self.sites.items():
            told = [(one.document, list(one.rows or ())) for one in site.delivered]
            expected = [
                (document, evaluate(site.pattern, self.source.documents[document]))
                for document in range(self.first[number], len(self.source.documents))
            ]
            assert told == expected
        self.plan.check()


@settings(max_examples=examples(60))
@given(st.data())
def test_random_churn(data: st.DataObject) -> None:
    world = World(data.draw(st.integers(0, 99)), capacity=data.draw(st.integers(1, 3)))
    for number in range(data.draw(st.integers(4, 16))):
        what = data.draw(st.sampled_from(["publish", "publish", "add", "add", "fail", "replan"]))
        if what == "publish":
            world.publish(data.draw(documents(depth=2)))
        elif what == "add":
            world.add(number, data.draw(patterns(most=3)), as_feeder=data.draw(st.booleans()))
        elif what == "fail" and world.sites:
            some = st.lists(
                st.sampled_from(sorted(world.sites)), min_size=1, max_size=2, unique=True
            )
            world.fail(*data.draw(some))
        elif what == "replan":
            world.replan()
        for _ in range(data.draw(st.integers(0, 5))):
            world.step()
        if data.draw(st.booleans()):
            world.drain()
            world.check()
    world.drain()
    world.check()


def test_churn_over_auctions() -> None:
    world = World(3, capacity=4)
    views = 4 * xmark.unique_views(10, seed=3)
    texts = list(xmark.documents(9, seed=5, parameters=xmark.DocumentParameters(repeats=1.0)))
    fed_by_others = 0
    for number, view in enumerate(views):
        world.add(number, view, as_feeder=number % 3 == 0)
        if number % 5 == 4:
            world.publish(parse_document(texts[number // 5]))
        for _ in range(3):
            world.step()
        fed_by_others = sum(1 for inputs in world.plan.feeding.values() if inputs)
        if number % 9 == 8:
            world.fail(max(world.plan.fed, key=lambda one: (len(world.plan.fed[one]), one)))
        if number == 20:
            world.replan()
    world.publish(parse_document(texts[-1]))
    world.drain()
    world.check()
    assert fed_by_others > 10


def tree(label: str, *, val: bool = False) -> TreePattern:
    return TreePattern((PatternNode(label, -1, val=val),))


def test_a_new_view_takes_over_on_request() -> None:
    world = World(1)
    world.add(0, tree("a", val=True), as_feeder=False)
    assert world.plan.feeding == {0: ()}
    world.add(1, tree("a", val=True), as_feeder=False)
    assert world.plan.feeding == {0: (), 1: (0,)}
    world.fail(0)
    assert world.plan.feeding == {1: ()}


def test_equal_views_at_several_sites_feed_each_other_within_limits() -> None:
    world = World(1, capacity=2)
    for number in range(7):
        world.add(number, tree("a", val=True), as_feeder=False)
    assert world.plan.from_source == [0]
    assert max(len(fed) for fed in world.plan.fed.values()) == 2


def test_a_full_source_refuses_and_changes_nothing() -> None:
    world = World(1, source_capacity=1)
    world.add(0, tree("a"), as_feeder=False)
    assert world.plan.is_replanning_due()
    before = dict(world.plan.feeding)
    with pytest.raises(PlanError, match="Nobody is free"):
        world.plan.add(1, tree("b"))
    assert world.plan.feeding == before
    assert 1 not in world.plan.views


def test_replanning_is_due_after_additions() -> None:
    world = World(1)
    for number in range(5):
        assert not world.plan.is_replanning_due()
        world.add(number, tree("a"), as_feeder=False)
    assert world.plan.is_replanning_due()
    world.replan()
    assert not world.plan.is_replanning_due()


def test_a_site_may_feed_fewer_than_others() -> None:
    own = {0: 1, 1: 0}
    plan = LivePlan(
        TreeLanguage(),
        LivePolicy(5, 9),
        lambda _, inputs: len(inputs) or 9.0,
        lambda view: own.get(view, 5),
    )
    feeding = plan.load({0: tree("a"), 1: tree("a")}, {0: (), 1: (0,)})
    assert feeding == {0: (), 1: (0,)}
    assert plan.add(2, tree("a")) == {2: ()}
    assert plan.add(3, tree("a")) == {3: (2,)}
    with pytest.raises(PlanError, match="begins without views"):
        plan.load({}, {})
    own[0] = 0
    with pytest.raises(PlanError, match="The view 0 feeds 1 others"):
        plan.check()


def test_in_an_emergency_the_source_takes_everybody() -> None:
    plan = LivePlan(TreeLanguage(), LivePolicy(0, 1), lambda _, inputs: len(inputs) or 9.0)
    plan.add(0, tree("a"))
    with pytest.raises(PlanError, match="Nobody is free"):
        plan.add(1, tree("a"))
    assert plan.add(1, tree("a"), is_emergency=True) == {1: ()}
    assert plan.is_replanning_due()


def test_unknown_and_double_views() -> None:
    world = World(1)
    world.add(0, tree("a"), as_feeder=False)
    with pytest.raises(SubscriptionError, match="exists already"):
        world.plan.add(0, tree("a"))
    with pytest.raises(SubscriptionError, match="no view 9"):
        world.plan.withdraw(9)


def test_boxes_live_by_the_same_rules() -> None:
    relation = Relation("t", tuple(Column(name, IntegerType()) for name in "abc"), (0,))
    language = BoxLanguage(relation)
    plan = LivePlan(language, LivePolicy(2, 9), lambda _, inputs: len(inputs) or 9.0)
    plan.add(1, BoxView(boxes.box({1: point(1)}), (0,)))
    plan.add(2, BoxView(boxes.box({2: point(2)}), (0,)))
    both = BoxView(boxes.box({1: point(1), 2: point(2)}), (0,))
    assert plan.add(3, both) == {3: (1, 2)}
    assert plan.withdraw(2) == {3: ()}


def test_a_late_order_finds_kept_results() -> None:
    site = SiteNode(1, tree("a"), 0)
    site.on_message(Assign(0, ()))
    site.on_message(Results(SOURCE_NODE, 1, ()))
    assert site.next_document == 0
    site.on_message(Results(SOURCE_NODE, 0, ()))
    assert site.next_document == 2
    assert site.on_message(Results(SOURCE_NODE, 0, ())) == []
    assert [one.document for one in site.take_delivered()] == [0, 1]
    assert site.take_delivered() == []


def test_prices_are_those_of_a_full_plan() -> None:
    views = xmark.unique_views(60, seed=4)
    statistics = DocumentStatistics.of(map(parse_document, xmark.documents(3)))
    planner = TreePlanner(statistics)
    planner.patterns = dict(enumerate(views))
    plan = planner.plan_patterns(views, range(60), LivePolicy(5, 60))
    for view in range(60):
        expected = planner.price(view, plan.inputs_of(view))
        own = plan.problem.utilisation[plan.chosen[view]]
        if plan.is_from_source[view]:
            own = plan.problem.source_utilisation[view]
        assert np.isclose(own, expected)
