"""Brokers in a simulated network: small, readable scenarios."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import pytest

from penstock.errors import NetworkError
from penstock.messages import ANY_FILTER, EVERYONE, Message, Point, PointId, Position
from penstock.network import BrokerNode, Timing
from penstock.network.frames import Ack, Frame, Hello, Subscribe, decode_frame, encode_frame
from penstock.network.overlays import check_acyclic
from penstock.network.routing_tables import RoutingSettings, interests_of
from penstock.network.simulator import Simulator
from penstock.predicates.boxes import box
from penstock.predicates.intervals import EVERYTHING, Interval, below
from penstock.routing.interests import Interest, everything_in
from tests.routing.interest_worlds import SELECTION, SHAPES

TIMING = Timing(resend_after=1.0, fail_after=5.0)


def make_node(_: int, links: Sequence[int], start: int) -> BrokerNode:
    return BrokerNode(SHAPES, links, start=start, timing=TIMING)


def chain(nodes: int, seed: int = 1) -> Simulator:
    network = Simulator(nodes, [(i, i + 1) for i in range(nodes - 1)], make_node, seed)
    network.add_source("log", 0, [everything_in(SELECTION)])
    return network


def between(first: int, last: int) -> Interval:
    return Interval(below(first), below(last + 1))


def wish(number: int, first: int, last: int) -> Point:
    return Point(PointId(number, 0, 0), 1, box({2: between(first, last)}), EVERYTHING)


def published(value: int) -> Message:
    return Message(Position(value, 1), 1, (value,), (value, 1, value, 0), EVERYONE)


def values(network: Simulator, name: str) -> list[int]:
    return [message.key[0] for _, message in network.clients[name].received]  # type: ignore[misc]


def broker(network: Simulator, number: int) -> BrokerNode:
    node = network.nodes[number]
    assert node is not None
    return node


def forwarded(network: Simulator, number: int, link: int) -> list[Interest]:
    return sorted(interests_of(broker(network, number).tables.table(link)))


def test_messages_reach_who_wants_them_and_nobody_else() -> None:
    network = chain(4)
    network.subscribe("low", 3, "log", [wish(1, 0, 4)], 0)
    network.subscribe("high", 1, "log", [wish(2, 5, 9)], 0)
    network.run_until_quiet()
    for value in range(10):
        network.publish("log", published(value))
    network.run_until_quiet()
    assert values(network, "low") == [0, 1, 2, 3, 4]
    assert values(network, "high") == [5, 6, 7, 8, 9]
    assert network.traffic.frames["Publish"] == 10 + 5 + 5
    assert not any(broker(network, i).faults for i in range(4))


def test_a_client_that_comes_late_gets_what_it_missed_once() -> None:
    network = chain(3)
    for value in range(10):
        network.publish("log", published(value))
    network.subscribe("late", 2, "log", [wish(1, 0, 99)], 4)
    for value in range(10, 15):
        network.publish("log", published(value))
    network.run_until_quiet()
    assert values(network, "late") == list(range(4, 15))


def test_covered_interests_are_not_passed_on_and_come_back() -> None:
    network = chain(3)
    network.subscribe("wide", 2, "log", [wish(1, 0, 9)], 0)
    network.run_until_quiet()
    before = network.traffic.frames["Subscribe"]
    network.subscribe("narrow", 2, "log", [wish(2, 3, 4)], 0)
    network.run_until_quiet()
    assert network.traffic.frames["Subscribe"] == before
    assert len(forwarded(network, 0, 1)) == 1
    # Withdrawing what is covered is passed on to nobody.
    withdrawn = network.traffic.frames["Unsubscribe"]
    network.unsubscribe("narrow")
    network.run_until_quiet()
    assert network.traffic.frames["Unsubscribe"] == withdrawn
    network.subscribe("narrow", 2, "log", [wish(2, 3, 4)], 0)
    network.unsubscribe("wide")
    network.run_until_quiet()
    assert [dict(one.base)[2] for one in forwarded(network, 0, 1)] == [between(3, 4)]
    network.publish("log", published(3))
    network.publish("log", published(8))
    network.run_until_quiet()
    assert values(network, "narrow") == [3]


def test_interests_go_towards_advertisements_only() -> None:
    network = Simulator(3, [(0, 1), (1, 2)], make_node, 1)
    low = Interest(1, box({2: between(0, 4)}), (ANY_FILTER,))
    network.add_source("low", 0, [low])
    network.add_source("high", 2, [low._replace(base=box({2: between(5, 9)}))])
    network.subscribe("one", 1, "low", [wish(1, 2, 3)], 0)
    network.run_until_quiet()
    assert len(forwarded(network, 0, 1)) == 1
    assert len(forwarded(network, 2, 1)) == 0
    network._carry_out(0, broker(network, 0).unadvertise("low", [low], network.now))
    network.run_until_quiet()
    assert len(forwarded(network, 0, 1)) == 0


def advertised(network: Simulator, number: int, link: int) -> list[Interval]:
    table = broker(network, number).tables.table(link)
    return sorted(dict(entry.interest.base)[2] for _, entry in table if entry.source)


def test_advertisements_are_covered_and_merged_perfectly_only() -> None:
    network = Simulator(3, [(0, 1), (1, 2)], make_node, 1)

    def advert(first: int, last: int) -> Interest:
        return Interest(1, box({2: between(first, last)}), (ANY_FILTER,))

    adverts = [advert(0, 4), advert(5, 9), advert(6, 7), advert(20, 24)]
    network.add_source("log", 0, adverts)
    network.run_until_quiet()
    for node, link in ((1, 1), (2, 1)):
        assert advertised(network, node, link) == [between(0, 9), between(20, 24)]
    # A part is withdrawn: the merger is taken back, and what was covered counts again.
    network._carry_out(0, broker(network, 0).unadvertise("log", [adverts[1]], network.now))
    network.run_until_quiet()
    expected = [between(0, 4), between(6, 7), between(20, 24)]
    assert advertised(network, 2, 1) == expected


@pytest.mark.parametrize("crashed", [0, 1, 2])
def test_a_crash_in_a_chain_loses_nothing(crashed: int) -> None:
    network = chain(4)
    network.subscribe("all", 3, "log", [wish(1, 0, 99)], 0)
    network.run_until_quiet()
    for value in range(30):
        network.publish("log", published(value))
        network.run_for(0.3)
        if value == 8:
            network.crash(crashed)
        if value == 18:
            network.restart(crashed)
    network.run_until_quiet()
    assert values(network, "all") == list(range(30))


def test_a_cut_link_returns_with_little_traffic() -> None:
    network = chain(3)
    for number in range(300):
        network.subscribe(f"c{number}", 2, "log", [wish(number, 10 * number, 10 * number + 5)], 0)
    network.run_until_quiet()
    network.condition(0, 1).is_cut = True
    network.publish("log", published(11))
    network.unsubscribe("c7")
    network.subscribe("new", 2, "log", [wish(999, 5000, 5001)], 0)
    network.run_for(20)
    before = network.traffic.frames["Subscribe"]
    network.condition(0, 1).is_cut = False
    network.run_until_quiet()
    assert network.traffic.frames["Subscribe"] - before <= 2
    assert values(network, "c1") == [11]
    assert len(forwarded(network, 0, 1)) == 300
    assert forwarded(network, 0, 1) == forwarded(network, 1, 2)


def test_frames_that_are_lost_are_sent_again() -> None:
    network = chain(3)
    for edge in ((0, 1), (1, 2)):
        network.condition(*edge).loss = 0.3
    network.subscribe("all", 2, "log", [wish(1, 0, 99)], 0)
    for value in range(50):
        network.publish("log", published(value))
        network.run_for(0.2)
    network.run_until_quiet()
    assert values(network, "all") == list(range(50))
    assert network.traffic.lost > 10


def test_nothing_is_resumed_while_links_only_delay() -> None:
    network = chain(4)
    for edge in ((0, 1), (1, 2), (2, 3)):
        network.condition(*edge).jitter = 0.4
    network.subscribe("all", 3, "log", [wish(1, 0, 99)], 0)
    network.run_until_quiet()
    resumes = network.traffic.frames["Resume"]
    for value in range(50):
        network.publish("log", published(value))
        network.run_for(0.05)
    network.run_until_quiet()
    assert values(network, "all") == list(range(50))
    assert network.traffic.frames["Resume"] == resumes


def test_equal_seeds_give_equal_runs() -> None:
    traces = []
    for seed in (1, 1, 2):
        network = chain(3, seed)
        network.condition(0, 1).loss = 0.2
        network.subscribe("all", 2, "log", [wish(1, 0, 99)], 0)
        for value in range(20):
            network.publish("log", published(value))
            network.run_for(0.2)
        network.run_until_quiet()
        traces.append(network.trace)
    assert traces[0] == traces[1] != traces[2]


def test_operations_are_acknowledged_when_they_are_done_everywhere() -> None:
    network = chain(3)
    network.run_until_quiet()
    node = broker(network, 2)
    outcome = node.attach("one", "log", [wish(1, 0, 9)], 0, network.now)
    assert outcome.acknowledged == []
    network._carry_out(2, outcome)
    network.run_until_quiet()
    covered = node.attach("two", "log", [wish(2, 1, 2)], 0, network.now)
    assert len(covered.acknowledged) == 1


def open_pair() -> BrokerNode:
    node = make_node(0, [1], 1)
    node.start(0.0)
    node.receive(1, Frame(1, 0, 0, 0, Hello(1)), 0.0)
    assert not node.faults
    return node


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (Ack(77), "acknowledgement of operation 77"),
        (Subscribe(1, Interest(99, (), ())), "space 99 is not known"),
        (Subscribe(1, Interest(3, (), ())), "bounds"),
        (Hello(9), "version 9"),
    ],
)
def test_what_cannot_be_understood_is_named_and_disturbs_nobody(body: object, said: str) -> None:
    node = open_pair()
    node.receive(1, Frame(1, 0, 1, 0, body), 0.0)  # type: ignore[arg-type]
    assert said in str(node.faults[-1])
    good = Interest(1, (), (ANY_FILTER,))
    node.receive(1, Frame(1, 0, 2, 0, Subscribe(5, good)), 0.0)
    assert list(interests_of(node.tables.table(1))) == [good]


def test_cyclic_overlays_are_refused() -> None:
    with pytest.raises(NetworkError, match="cycle"):
        Simulator(3, [(0, 1), (1, 2), (2, 0)], make_node, 1)
    with pytest.raises(NetworkError, match="do not exist"):
        check_acyclic(2, [(0, 5)])


@pytest.mark.parametrize("data", [b"", b"\x07abc", b"\x01", b"\x01\x92\x01\x02", b"\x01\xc1"])
def test_bytes_that_are_no_frame_are_refused(data: bytes) -> None:
    with pytest.raises(NetworkError):
        decode_frame(data)


def test_a_frame_survives_its_encoding() -> None:
    frame = Frame(3, 4, 5, 6, Subscribe(1, Interest(1, box({2: between(1, 2)}), (ANY_FILTER,))))
    assert decode_frame(encode_frame(frame)) == frame


def test_without_covering_everything_is_passed_on() -> None:
    def plain(_: int, links: Sequence[int], start: int) -> BrokerNode:
        settings = RoutingSettings(covers=False)
        return BrokerNode(SHAPES, links, start=start, timing=TIMING, settings=settings)

    network = Simulator(2, [(0, 1)], plain, 1)
    network.add_source("log", 0, [everything_in(SELECTION)])
    network.subscribe("wide", 1, "log", [wish(1, 0, 9)], 0)
    network.subscribe("narrow", 1, "log", [wish(2, 3, 4)], 0)
    network.run_until_quiet()
    assert len(forwarded(network, 0, 1)) == 2


def test_brokers_load_without_a_compiler() -> None:
    program = (
        "import sys\n"
        "import penstock.network, penstock.network.simulator, penstock.network.can\n"
        "loaded = {'numba', 'numpy', 'pyarrow', 'sqlglot', 'pyspark'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
