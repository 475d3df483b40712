"""Links that come and go, clients that do not keep up, portions, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from penstock.errors import NetworkError
from penstock.messages import ANY_FILTER, EVERYONE, Message, Point, PointId, Position
from penstock.network import BrokerNode
from penstock.network.frames import (
    Body,
    Check,
    Frame,
    Hello,
    InSync,
    Names,
    Publish,
    Subscribe,
    Want,
)
from penstock.network.link_tables import Entry, LinkTable, entry_name
from penstock.network.payloads import PayloadSettings
from penstock.network.ports import Outcome
from penstock.network.routing_tables import interests_of
from penstock.network.simulator import MemorySource, Simulator
from penstock.predicates.boxes import box
from penstock.predicates.intervals import EVERYTHING
from penstock.routing.interests import (
    MAX_INTEREST_BYTES,
    Interest,
    everything_in,
    interest_of,
)
from tests.network.test_node import (
    TIMING,
    between,
    broker,
    chain,
    open_pair,
    published,
    values,
    wish,
)
from tests.routing.interest_worlds import SELECTION, SHAPES


class Pair:
    """Two nodes whose frames are handed over at once, until there are none."""

    def __init__(self, first: BrokerNode, second: BrokerNode, there: int, back: int) -> None:
        self.nodes = (first, second)
        self.links = (there, back)
        self.delivered: list[tuple[str, int]] = []
        self.bodies: list[object] = []

    def carry(self, sender: int, outcome: Outcome, answer: Outcome | None = None) -> None:
        waiting = [(sender, outcome)]
        if answer is not None:
            waiting.append((1 - sender, answer))
        while waiting:
            at, came = waiting.pop(0)
            self.delivered += [(name, sequence) for name, sequence, _ in came.delivered]
            for link, frame in came.frames:
                assert link == self.links[at]
                self.bodies.append(frame.body)
                other = 1 - at
                waiting.append((other, self.nodes[other].receive(self.links[other], frame, 0.0)))


def joined(portion_messages: int = 1_000) -> tuple[Pair, MemorySource]:
    root = BrokerNode(SHAPES, [], start=1, timing=TIMING, portion_messages=portion_messages)
    leaf = BrokerNode(SHAPES, [], start=2, timing=TIMING)
    log = MemorySource()
    pair = Pair(root, leaf, 3, 5)
    pair.carry(0, root.speak_for("log", log, [everything_in(SELECTION)], 0.0))
    pair.carry(0, root.add_link(3, 0.0), leaf.add_link(5, 0.0))
    return pair, log


def test_links_can_be_added_while_a_node_runs() -> None:
    pair, log = joined()
    pair.carry(1, pair.nodes[1].attach("one", "log", [wish(1, 0, 9)], 0, 0.0))
    log.append(published(4))
    pair.carry(0, pair.nodes[0].publish("log", 0, 0.0))
    assert pair.delivered == [("one", 1)]
    with pytest.raises(NetworkError, match="link 3 is there already"):
        pair.nodes[0].add_link(3, 0.0)


def test_a_link_that_is_removed_takes_its_interests_along() -> None:
    network = chain(3)
    network.subscribe("one", 2, "log", [wish(1, 0, 9)], 0)
    network.run_until_quiet()
    middle = broker(network, 1)
    outcome = middle.remove_link(2, network.now)
    network._carry_out(1, outcome)
    network.run_for(1.0)
    assert not list(interests_of(broker(network, 0).tables.table(1)))
    assert middle.tables.prt_size() == 0
    middle.receive(2, Frame(1, 0, 0, 0, Hello(1)), network.now)
    assert "link 2, which is not known" in str(middle.faults[-1])


def test_a_removed_link_to_the_source_leaves_clients_waiting() -> None:
    pair, log = joined()
    root, leaf = pair.nodes
    pair.carry(1, leaf.attach("one", "log", [wish(1, 0, 99)], 0, 0.0))
    leaf.remove_link(5, 0.0)
    root.remove_link(3, 0.0)
    log.append(published(1))
    assert not root.publish("log", 0, 0.0).frames
    pair.carry(0, root.add_link(3, 0.0), leaf.add_link(5, 0.0))
    assert pair.delivered == [("one", 1)]


def test_a_long_log_is_replayed_in_portions() -> None:
    pair, log = joined(portion_messages=10)
    for value in range(35):
        log.append(published(value))
    pair.carry(1, pair.nodes[1].attach("one", "log", [wish(1, 30, 99)], 0, 0.0))
    assert [sequence for _, sequence in pair.delivered] == [31, 32, 33, 34, 35]
    assert sum(type(body).__name__ == "Replayed" for body in pair.bodies) == 4
    log.append(published(40))
    pair.carry(0, pair.nodes[0].publish("log", 35, 0.0))
    assert pair.delivered[-1] == ("one", 36)


def test_a_held_client_gets_nothing_until_it_is_attached_again() -> None:
    pair, log = joined()
    leaf = pair.nodes[1]
    pair.carry(1, leaf.attach("one", "log", [wish(1, 0, 99)], 0, 0.0))
    leaf.hold("one")
    log.append(published(1))
    pair.carry(0, pair.nodes[0].publish("log", 0, 0.0))
    assert pair.delivered == []
    before = len(pair.bodies)
    pair.carry(1, leaf.attach("one", "log", [wish(1, 0, 99)], 0, 0.0))
    assert pair.delivered == [("one", 1)]
    # Its interests were there all the time.
    assert not any(isinstance(body, Subscribe) for body in pair.bodies[before:])


def test_a_connection_that_is_back_sends_what_may_be_lost() -> None:
    pair, log = joined()
    root, leaf = pair.nodes
    pair.carry(1, leaf.attach("one", "log", [wish(1, 0, 99)], 0, 0.0))
    log.append(published(1))
    lost = root.publish("log", 0, 0.0)
    assert [type(frame.body) for _, frame in lost.frames] == [Publish]
    pair.carry(0, root.reconnect(3, 0.0))
    assert pair.delivered == [("one", 1)]
    pair.carry(0, lost)  # it was not lost after all: nothing comes twice
    assert pair.delivered == [("one", 1)]


def test_what_is_refused_is_not_compared_for_ever() -> None:
    """Tables agree about entries that one side cannot use, and no more is said about them."""
    node = open_pair()
    refused = Interest(99, (), (ANY_FILTER,))
    node.receive(1, Frame(1, 0, 1, 0, Subscribe(1, refused)), 0.0)
    theirs = LinkTable()
    theirs.add(Entry("", refused))
    outcome = node.receive(1, Frame(1, 0, 2, 0, Check(theirs.digest)), 0.0)
    assert [frame.body for _, frame in outcome.frames if frame.body is not None] == [InSync()]


def test_what_was_refused_is_asked_for_when_its_space_is_known() -> None:
    root = BrokerNode({}, [], start=1, timing=TIMING)
    leaf = BrokerNode(SHAPES, [], start=2, timing=TIMING)
    pair = Pair(root, leaf, 3, 5)
    pair.carry(0, root.add_link(3, 0.0), leaf.add_link(5, 0.0))
    # Advertised below, so that interests from above meet it.
    log = MemorySource()
    pair.carry(1, leaf.speak_for("log", log, [everything_in(SELECTION)], 0.0))
    assert "space 1 is not known" in str(root.faults[-1])
    assert not root.tables.sources(3)
    pair.carry(0, root.learn_spaces([SELECTION], 0.0))
    assert root.tables.sources(3) == {"log"}


def test_only_the_parts_of_tables_that_differ_are_compared() -> None:
    """One digest, then 64, then the names in the buckets that differ, then what is missing."""
    network = chain(2)
    for number in range(300):
        network.subscribe(f"c{number}", 1, "log", [wish(number, 10 * number, 10 * number + 5)], 0)
    network.run_until_quiet()
    network.condition(0, 1).is_cut = True
    network.subscribe("new", 1, "log", [wish(999, 5000, 5001)], 0)
    network.run_for(20)
    said: list[Body] = []
    carry_out = network._carry_out

    def listen(number: int, outcome: Outcome) -> None:
        said.extend(frame.body for _, frame in outcome.frames if frame.body is not None)
        carry_out(number, outcome)

    network._carry_out = listen  # type: ignore[method-assign]
    network.condition(0, 1).is_cut = False
    network.run_until_quiet()
    named = [one for body in said if isinstance(body, Names) for _, one in body.buckets]
    assert 0 < sum(map(len, named)) < 30
    assert {name for body in said if isinstance(body, Want) for name in body.names} == {
        entry_name(Entry("", interest_of(wish(999, 5000, 5001))))
    }


def test_an_interest_of_absurd_size_changes_nothing() -> None:
    node = open_pair()
    absurd = Interest(1, box({1: between(0, 1)}), (ANY_FILTER,))
    far = Point(PointId(1, 0, 0), 1, box({3: EVERYTHING}), EVERYTHING)
    text = "x" * MAX_INTEREST_BYTES
    cut = (2, text, 0)
    absurd = absurd._replace(base=((1, EVERYTHING._replace(low=cut)),))
    node.receive(1, Frame(1, 0, 1, 0, Subscribe(1, absurd)), 0.0)
    assert "bytes" in str(node.faults[-1])
    with pytest.raises(NetworkError, match="bytes"):
        node.attach("c", "log", [Point(far.id, 1, absurd.base, EVERYTHING)], 0, 0.0)
    assert node.tables.prt_size() == 0
    assert len(node.clients) == 0


def _caching(_: int, links: Sequence[int], start: int) -> BrokerNode:
    payloads = PayloadSettings({1: (3,)})
    return BrokerNode(SHAPES, links, start=start, timing=TIMING, payloads=payloads)


def _with_payload(number: int) -> Message:
    return Message(Position(number, 1), 1, (number,), (number, 1, number, 7), EVERYONE)


def test_a_link_that_failed_is_sent_payloads_again() -> None:
    """The other side may have lost what it had: an id alone would have to be fetched."""
    network = Simulator(2, [(0, 1)], _caching, 1)
    network.add_source("log", 0, [everything_in(SELECTION)])
    network.subscribe("all", 1, "log", [wish(1, 0, 99)], 0)
    network.run_until_quiet()
    for number in (1, 2):
        network.publish("log", _with_payload(number))
        network.run_until_quiet()
    cache = broker(network, 0).payloads
    assert cache is not None
    assert cache.hits == 1
    network.crash(1)
    network.restart(1)
    network.run_until_quiet()
    network.publish("log", _with_payload(3))
    network.run_until_quiet()
    assert values(network, "all") == [1, 2, 3]
    assert network.traffic.frames["Fetch"] == 0
    assert cache.hits == 1
