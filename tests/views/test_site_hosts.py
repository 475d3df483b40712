"""Sites that pull: after every step of random churn, every subscriber has what its view returns."""

from __future__ import annotations

import random
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.documents.document import Document, parse_document
from penstock.documents.evaluation import evaluate
from penstock.documents.patterns import Axis, Operator, PatternNode, Predicate, TreePattern
from penstock.errors import DocumentError
from penstock.views import coordinator
from penstock.views.coordinator import SiteCoordinator
from penstock.views.document_feed import DocumentFeed, NodeNumbers
from penstock.views.live_plan import LivePlan, LivePolicy
from penstock.views.site_host import AT_SOURCE, Answer, Batch, Gap, Read, SiteHost
from penstock.views.sites import NodeName
from penstock.views.statistics import DocumentStatistics
from penstock.views.tree_language import TreeLanguage
from penstock.views.tree_planner import TreePlanner
from penstock.views.view_cursor import ViewCursor
from tests.documents.strategies import documents, patterns
from tests.examples import examples

SUBSCRIBERS = "subscribers"


class Network:
    """A source, sites and subscribers; questions and answers arrive in any order, or never."""

    def __init__(self, seed: int, capacity: int, retained: int) -> None:
        self.random = random.Random(seed)
        self.retained = retained
        self.feed = DocumentFeed()
        self.planner = TreePlanner(DocumentStatistics())
        policy = LivePolicy(capacity, 1_000, replan_after_additions=5)
        self.plan = LivePlan(TreeLanguage(), policy, self.planner.price)
        self.coordinator = SiteCoordinator(
            self.plan,
            lambda: (self.feed.epoch, self.feed.end),
            lambda: self.plan.replan(self.planner.plan),
        )
        self.hosts: dict[str, SiteHost] = {}
        self.told: dict[str, int] = {}
        self.subscribers: dict[NodeName, ViewCursor] = {}
        self.current: dict[int, Document] = {}
        self.reads: list[tuple[str, str, Read]] = []
        self.answers: list[tuple[str, Answer]] = []
        self.next = 0

    def join(self) -> None:
        name = f"site {self.next}"
        self.next += 1
        host = self.hosts[name] = SiteHost(window=4, retained=self.retained)
        host.address = name
        self.coordinator.join(name, name)

    def fail(self, name: str) -> None:
        del self.hosts[name]
        self.reads = [one for one in self.reads if name not in one[:2]]
        self.answers = [one for one in self.answers if one[0] != name]
        for host in self.hosts.values():
            host.on_lost(name)
        for cursor in self.subscribers.values():
            cursor.on_lost(name)
        self.coordinator.leave(name)

    def add(self, view: NodeName, pattern: TreePattern) -> None:
        self.planner.patterns[view] = pattern
        self.feed.know(view, pattern)
        self.coordinator.add(view, pattern)
        self.subscribers[view] = ViewCursor(view)

    def withdraw(self, view: NodeName) -> None:
        self.coordinator.withdraw(view)
        self.feed.forget(view)
        del self.subscribers[view]

    def publish(self, key: int, document: Document | None) -> None:
        self.current.pop(key, None)
        if document is not None:
            self.current[key] = document
        level_one = [view for view, inputs in self.plan.feeding.items() if not inputs]
        text = None if document is None else document.canonical.decode()
        found = {} if document is None else {one: self._found(one, document) for one in level_one}
        self.feed.put((key,), text, self.feed.end, found)

    def _found(self, view: NodeName, document: Document) -> NodeNumbers:
        """What the home says of a view: the nodes of its visible rows."""
        pattern = self.plan.views[view]
        try:
            rows = evaluate(pattern, document)
        except DocumentError:
            return frozenset()  # too many matches count as none
        return frozenset(tuple(row[place].id.pre for place in pattern.returned) for row in rows)

    def step(self) -> bool:
        """One thing that can happen; False if nothing can."""
        ways = [self._tell, self._ask, self._arrive, self._answer]
        self.random.shuffle(ways)
        return any(way() for way in ways)

    def _tell(self) -> bool:
        """A site is told what it does now."""
        for name, host in self.hosts.items():
            if self.told.get(name) != self.coordinator.version:
                self.told[name] = self.coordinator.version
                host.on_hosting(self.coordinator.hosting_of(name))
                if host.reached is not None:
                    self.coordinator.on_reached(name, host.reached)
                return True
        return False

    def _ask(self) -> bool:
        before = len(self.reads)
        for name, host in self.hosts.items():
            self.reads += [(name, to, read) for to, read in host.take_reads()]
        for view, cursor in self.subscribers.items():
            cursor.locate(self.coordinator.place_of(view), self.feed.epoch, self.feed.end)
            self.reads += [(SUBSCRIBERS, to, read) for to, read in cursor.take_reads()]
        return len(self.reads) > before

    def _arrive(self) -> bool:
        if not self.reads:
            return False
        sender, to, read = self.reads.pop(self.random.randrange(len(self.reads)))
        if to in self.hosts:
            self.hosts[to].on_read(f"{sender}/{read.view}", read)
        elif to == AT_SOURCE and read.epoch == self.feed.epoch and self.feed.knows(read.view):
            results = self.feed.read(read.view, read.from_document, read.most)
            if not results:  # nothing new: the question waits
                self.reads.append((sender, to, read))
                return False
            self.answers.append((f"{sender}/{read.view}", Batch(read.tag, tuple(results))))
        return True

    def _answer(self) -> bool:
        for host in self.hosts.values():
            self.answers += host.take_answers()
        if not self.answers:
            return False
        at = self.random.randrange(len(self.answers))
        to, answer = self.answers.pop(at)
        name, _, view = to.partition("/")
        if name == SUBSCRIBERS and int(view) in self.subscribers:
            self.subscribers[int(view)].on_answer(answer)
        elif name in self.hosts:
            self.hosts[name].on_answer(answer)
        return True

    def drain(self) -> None:
        idle = 0
        while idle < 50:  # a question that has to wait is picked now and then
            idle = 0 if self.step() else idle + 1

    def check(self) -> None:
        """Everybody has the rows of the documents that there are, of each change at most once."""
        for view, cursor in self.subscribers.items():
            pattern = self.plan.views[view]
            expected = {
                (key,): rows
                for key, document in self.current.items()
                if (rows := tuple(evaluate(pattern, document)))
            }
            assert cursor.next_document == self.feed.end
            assert {key: rows for key, rows in cursor.contents.items() if rows} == expected
        self.plan.check()


def tree(label: str, *, val: bool = False, cont: bool = False) -> TreePattern:
    return TreePattern((PatternNode(label, -1, Axis.DESCENDANT, val=val, cont=cont),))


def twig(axis: Axis, *, val: bool) -> TreePattern:
    """A b below an a."""
    root = PatternNode("a", -1, Axis.DESCENDANT, val=val)
    return TreePattern((root, PatternNode("b", 0, axis, val=True)))


RELATED = [
    *(tree("a", val=True), tree("a", cont=True), tree("b", val=True)),
    *(twig(axis, val=val) for axis in Axis for val in (True, False)),
]
"""Most of them can be computed from some of the others."""
views = st.sampled_from(RELATED) | patterns(most=3)
STEPS = ("publish", "publish", "publish", "add", "add", "join", "fail", "withdraw")


@settings(max_examples=examples(60))
@given(st.data())
def test_random_churn_of_views_and_sites(data: st.DataObject) -> None:
    with patch.object(coordinator, "MAX_CHANGES", data.draw(st.sampled_from([1, 2, 16]))):
        churn(data)


def churn(data: st.DataObject) -> None:
    world = Network(
        data.draw(st.integers(0, 99)),
        capacity=data.draw(st.integers(1, 3)),
        retained=data.draw(st.sampled_from([1, 3, 100])),
    )
    for _ in range(data.draw(st.integers(1, 3))):
        world.join()
    for number in range(-data.draw(st.integers(1, 6)), 0):
        world.add(-number, data.draw(views))
    for number in range(10, 10 + data.draw(st.integers(4, 20))):
        what = data.draw(st.sampled_from(STEPS))
        if what == "publish":
            key = data.draw(st.integers(0, 4))
            world.publish(key, data.draw(st.none() | documents(depth=2)))
        elif what == "add":
            world.add(number, data.draw(views))
        elif what == "join":
            world.join()
        elif what == "fail" and len(world.hosts) > 1:
            world.fail(data.draw(st.sampled_from(sorted(world.hosts))))
        elif what == "withdraw" and world.subscribers:
            world.withdraw(data.draw(st.sampled_from(sorted(world.subscribers))))
        for _ in range(data.draw(st.integers(0, 8))):
            world.step()
        if data.draw(st.integers(0, 3)) == 0:
            world.drain()
            world.check()
    world.drain()
    world.check()


def test_what_a_feeder_no_longer_keeps_comes_from_the_source() -> None:
    world = Network(1, capacity=3, retained=2)
    world.join()
    world.join()
    world.add(0, tree("a", val=True))
    world.add(1, tree("a", val=True))
    assert world.plan.feeding == {0: (), 1: (0,)}
    feeder, reader = (world.hosts[f"site {number}"] for number in (0, 1))
    for name, host in world.hosts.items():
        host.on_hosting(world.coordinator.hosting_of(name))
    for key in range(5):
        world.publish(key, parse_document(f"<a>{key}</a>"))
    while reads := feeder.take_reads():
        for to, (tag, _, view, first, most) in reads:
            assert to == AT_SOURCE
            feeder.on_answer(Batch(tag, tuple(world.feed.read(view, first, most))))
        if feeder.reached == 5:
            break
    ((to, read),) = reader.take_reads()
    assert (to, read.from_document, read.most) == ("site 0", 0, 4)
    feeder.on_read("reader", read)
    assert feeder.take_answers() == [("reader", Gap(read.tag, 3))]
    reader.on_answer(Gap(read.tag, 3))
    ((to, again),) = reader.take_reads()
    assert (to, again.view, again.from_document, again.most) == (AT_SOURCE, 0, 0, 3)
    reader.on_answer(Batch(again.tag, tuple(world.feed.read(0, 0, 3))))
    assert reader.reached == 3
    assert reader.take_reads()[0][0] == "site 0"


def test_a_document_with_too_many_matches_of_a_feeder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The feeder has no rows to pass on, so the source is asked for that document alone."""
    for module in ("documents.evaluation", "views.document_feed", "views.sites"):
        monkeypatch.setattr(f"penstock.{module}.MAX_RESULT_ROWS", 3)
    world = Network(1, capacity=3, retained=9)
    world.join()
    world.add(0, tree("a", val=True))
    narrow = Predicate(Operator.EQ, "1")
    world.add(1, TreePattern((PatternNode("a", -1, Axis.DESCENDANT, narrow, val=True),)))
    assert world.plan.feeding == {0: (), 1: (0,)}
    world.publish(0, parse_document("<b><a>1</a><a>2</a></b>"))
    world.publish(1, parse_document("<b><a>1</a><a>2</a><a>3</a><a>4</a></b>"))
    world.publish(2, parse_document("<b><a>1</a></b>"))
    world.drain()
    counts = {key: len(rows) for key, rows in world.subscribers[1].contents.items()}
    assert counts == {(0,): 1, (1,): 1, (2,): 1}
    assert world.subscribers[0].contents.keys() == {(0,), (2,)}


def test_results_that_are_too_long_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A document whose elements lie within each other has its text again and again."""
    for module in ("documents.evaluation", "views.sites"):
        monkeypatch.setattr(f"penstock.{module}.MAX_CELLS_BYTES", 1_000)
    world = Network(1, capacity=3, retained=9)
    world.join()
    world.add(0, tree("a", val=True))
    world.add(1, tree("a", val=True))
    assert world.plan.feeding == {0: (), 1: (0,)}
    world.publish(0, parse_document(f"{'<a>' * 9}{'x' * 200}{'</a>' * 9}"))
    world.publish(1, parse_document("<a>x</a>"))
    world.drain()
    for subscriber in world.subscribers.values():
        assert subscriber.contents.keys() == {(1,)}


def test_numbering_anew_tells_readers_only_what_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.views.document_feed.MAX_TOMBSTONES", 1)
    world = Network(1, capacity=3, retained=9)
    world.join()
    world.add(0, tree("a", val=True))
    for key in range(3):
        world.publish(key, parse_document(f"<a>{key}</a>"))
    world.drain()
    before, epoch = dict(world.subscribers[0].contents), world.feed.epoch
    world.publish(0, None)
    world.publish(1, None)
    assert world.feed.epoch != epoch
    world.coordinator.start_anew()
    world.drain()
    world.check()
    assert world.subscribers[0].contents == {(2,): before[2,]}
