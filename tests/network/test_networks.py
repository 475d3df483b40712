"""One contract for all content networks: those a message is meant for get it, and nobody else."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from penstock.errors import NetworkError
from penstock.messages import Message, Point, PointId
from penstock.network.caching import CachingCarrier, carry_plainly
from penstock.network.can import CanNetwork
from penstock.network.cbn import CbnNetwork
from penstock.network.journeys import ContentNetwork, Journey
from penstock.network.metrics import Metrics
from penstock.network.overlays import random_tree
from penstock.network.payloads import PayloadSettings
from penstock.network.routing_tables import RoutingSettings
from penstock.network.topologies import draw_topology, overlay_tree
from penstock.network.trees import TreeNetwork
from penstock.network.unicast import UnicastNetwork
from penstock.routing.merging.policies import every
from penstock.routing.merging.table import MergeSettings
from tests.examples import examples
from tests.routing.interest_worlds import (
    JOINED,
    RELATION,
    SELECTION,
    SHAPES,
    WIDE,
    messages,
    points,
)

NODES = 7


def cbn(**options: object) -> CbnNetwork:
    edges = random_tree(NODES, Random(3))
    return CbnNetwork(SHAPES, NODES, edges, settings=RoutingSettings(**options))  # type: ignore[arg-type]


MAKERS: dict[str, Callable[[], ContentNetwork]] = {
    "unicast": lambda: UnicastNetwork(SHAPES, NODES),
    "cbn": cbn,
    "cbn without covering": lambda: cbn(covers=False),
    "cbn with merging": lambda: cbn(merging=MergeSettings(every(2))),
    "tree": lambda: TreeNetwork(SHAPES, NODES, random_tree(NODES, Random(3))),
    "can": lambda: CanNetwork(SHAPES, {1: (2, 3), 2: (2,), 3: (2,)}, NODES),
}


def check_journey(journey: Journey, held: dict[int, list[Point]], network: ContentNetwork) -> None:
    message = journey.message
    meant = {
        number
        for number, own in held.items()
        if any(
            message.upserts(point, RELATION) or message.removes(point, RELATION)
            for point in own
            if point.space == message.space
        )
    }
    assert {arrival.subscription for arrival in journey.arrivals} == meant
    reached = {network.server}
    for hop in journey.hops:
        assert hop.sender in reached
        assert hop.sender != hop.receiver
        reached.add(hop.receiver)
    assert {arrival.node for arrival in journey.arrivals} <= reached


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=examples(30), phases=[Phase.generate])
@given(data=st.data())
def test_messages_reach_those_they_are_meant_for(name: str, data: st.DataObject) -> None:
    network, held = MAKERS[name](), dict[int, list[Point]]()
    for number in range(1, data.draw(st.integers(2, 15))):
        if held and data.draw(st.integers(0, 3)) == 0:
            gone = data.draw(st.sampled_from(sorted(held)))
            del held[gone]
            network.unsubscribe(gone)
        else:
            shape = data.draw(st.sampled_from([SELECTION, JOINED, WIDE]))
            drawn = data.draw(st.lists(points(shape), min_size=1, max_size=2))
            held[number] = [
                Point(PointId(number, i, 0), one.space, one.base, one.filter, one.more)
                for i, one in enumerate(drawn)
            ]
            network.subscribe(number, held[number], data.draw(st.integers(0, NODES - 1)))
        if isinstance(network, CanNetwork):
            churn(network, data)
        elif isinstance(network, CbnNetwork):
            network.merge()
    sent = [
        data.draw(messages(data.draw(st.sampled_from([SELECTION, JOINED, WIDE])))) for _ in range(4)
    ]
    sent = [message for message in sent if not message.recipients]
    for journey in network.publish(sent):
        check_journey(journey, held, network)


def churn(network: CanNetwork, data: st.DataObject) -> None:
    """Nodes join and leave; zones must cover their space without overlap."""
    away = [node for node in range(1, NODES) if node not in network._joined]
    here = [node for node in network._joined if node != network.server]
    choice = data.draw(st.integers(0, 3))
    if choice <= 1 and away:
        network.join(data.draw(st.sampled_from(away)))
    elif choice == 2 and here:
        network.leave(data.draw(st.sampled_from(here)))
    for zones in network.spaces.values():
        for number, one in zones.zones.items():
            assert all(one.zone.contains(place) for place, _ in one.points.values())
            touching = {i for i, o in zones.zones.items() if o.zone.touches(one.zone)}
            assert one.neighbours == touching - {number}


def test_a_zone_receives_a_message_once() -> None:
    random = Random(5)
    network = CanNetwork({2: JOINED}, {2: (2,)}, 40)
    held = spread_subscriptions(network, 400, random)
    network.join_all()
    assert max(network.loads().values()) < 60
    for journey in network.publish(spread_messages(100, random)):
        check_journey(journey, held, network)
        # Once on the way to the place that all boxes share, at most, and once from there.
        way_in = [hop for i, hop in enumerate(journey.hops) if hop.depth == i + 1]
        spread = [hop.receiver for hop in journey.hops[len(way_in) :]]
        assert len(spread) == len(set(spread))


def test_a_tree_worked_out_and_one_of_brokers_give_the_same_journeys() -> None:
    brokers, tree = cbn(), MAKERS["tree"]()
    for network in (brokers, tree):
        spread_subscriptions(network, 80, Random(9))
    sent = spread_messages(100, Random(10))
    for one, other in zip(brokers.publish(sent), tree.publish(sent), strict=True):
        assert sorted(one.hops) == sorted(other.hops)
        assert sorted(one.arrivals) == sorted(other.arrivals)
        assert one.in_vain == 0


def test_filling_tables_at_once_gives_what_filling_them_one_by_one_gives() -> None:
    one, other = cbn(), cbn()
    held = spread_subscriptions(one, 80, Random(9))
    random = Random(9)
    again = [(number, points, one._places[number][0]) for number, points in held.items()]
    other.subscribe_many(again)
    assert one.table_sizes() == other.table_sizes()
    sent = spread_messages(50, random)
    for first, second in zip(one.publish(sent), other.publish(sent), strict=True):
        assert sorted(first.hops) == sorted(second.hops)


def test_the_servers_node_does_not_leave() -> None:
    network = CanNetwork({2: JOINED}, {2: (2,)}, 3)
    with pytest.raises(NetworkError):
        network.leave(0)


def spread_subscriptions(
    network: ContentNetwork, count: int, random: Random
) -> dict[int, list[Point]]:
    from penstock.predicates.boxes import box
    from penstock.predicates.intervals import Interval, above, below

    held = {}
    for number in range(count):
        a, c = random.randrange(1000), random.randrange(1000)
        base = box({2: Interval(below(a), above(a + random.randrange(200)))})
        filters = Interval(below(c), above(c + random.randrange(200)))
        held[number] = [Point(PointId(number, 0, 0), 2, base, filters)]
        network.subscribe(number, held[number], random.randrange(network.nodes))
    return held


def spread_messages(count: int, random: Random, payloads: int = 0) -> list[Message]:
    from penstock.messages import Position, Reach
    from penstock.predicates.intervals import BOTTOM, TOP, above, below

    found = []
    for number in range(count):
        value = random.randrange(1000)
        region = tuple(
            Reach(BOTTOM, below(c), above(c), TOP)
            for c in sorted(random.randrange(1000) for _ in range(3))
        )
        payload = random.randrange(payloads) * 10**600 if payloads else 0
        row = (number, 1, value, payload)
        found.append(Message(Position(number, 1), 2, (number,), row, region))
    return found


def test_caching_saves_payloads_and_changes_no_journey() -> None:
    random = Random(1)
    network = cbn()
    held = spread_subscriptions(network, 60, random)
    sent = spread_messages(200, random, payloads=4)
    plain, cached, some = (Metrics(0, NODES) for _ in range(3))
    plain.count(carry_plainly(network.publish(sent)), 200)

    def settings_of(entries: int) -> PayloadSettings:
        return PayloadSettings({2: (3,)}, 512 << 10, entries)

    carried = CachingCarrier(network, settings_of(400)).carry(network.publish(sent))
    cached.count(carried, 200)
    for one in carried:
        check_journey(one.journey, held, network)
        assert len(one.hops) == len(one.journey.hops)
    mixed = CachingCarrier(network, settings_of(400), plain=[1, 2])
    some.count(mixed.carry(network.publish(sent)), 200)
    empty = CachingCarrier(network, settings_of(0)).carry(network.publish(sent))
    assert sum(len(one.fetches) for one in carried) == 0
    assert sum(len(one.fetches) for one in empty) > 0
    bytes_of = [m.per_event()["traffic_bytes"] for m in (cached, some, plain)]
    assert bytes_of == sorted(bytes_of)
    assert bytes_of[0] < bytes_of[2]


def test_topologies_are_connected_and_the_same_for_a_seed() -> None:
    one, other = (draw_topology(4, routers=400, overlay_nodes=30) for _ in range(2))
    assert one == other
    assert all(0 <= delay < 1 for row in one.latency for delay in row)
    edges = overlay_tree(one)
    assert len(edges) == 29
    CbnNetwork(SHAPES, 30, edges)


def test_metrics_add_up() -> None:
    network = UnicastNetwork(SHAPES, NODES)
    random = Random(2)
    spread_subscriptions(network, 50, random)
    metrics = Metrics(0, NODES)
    metrics.count(carry_plainly(network.publish(spread_messages(50, random))), 50)
    figures = metrics.per_event()
    assert figures["server_stress_bytes"] == figures["traffic_bytes"] == figures["stress_p100"]
    assert figures["overlay_hops"] <= figures["arrivals"]
    assert figures["hop_latency"] <= 1
