"""The network demonstration: the demo's stocks and reviews over a few dozen brokers.

A Hub turns changes into messages; the same messages then go to the same subscribers in five ways:
one by one, over brokers that pass every interest on, with covering, with merging, and with payload
caching on top. Every subscriber gets the same in all of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from penstock.hub import Hub
from penstock.lab.workloads.stocks import CREATE_REVIEWS, CREATE_STOCKS, Market, draw_interests
from penstock.messages import Message, Point, decode_message
from penstock.network.caching import CachingCarrier, Carried, carry_plainly
from penstock.network.cbn import CbnNetwork
from penstock.network.journeys import ContentNetwork
from penstock.network.metrics import Metrics
from penstock.network.overlays import Edge
from penstock.network.payloads import PayloadSettings
from penstock.network.routing_tables import RoutingSettings
from penstock.network.shapes import shapes_of
from penstock.network.topologies import draw_topology, overlay_tree
from penstock.network.unicast import UnicastNetwork
from penstock.routing.interests import SpaceShape
from penstock.routing.merging.measures import Measure, ObservedMeasure, UniformMeasure
from penstock.routing.merging.policies import when_larger
from penstock.routing.merging.table import MergeSettings
from penstock.spaces import decomposition_of, place
from penstock.sql import bind
from penstock.storage import Home, MessageLog

ROUTERS = 2_000
THRESHOLD, BUDGET = 0.001, 0.10
REVIEW_TEXT = 3
"""The column of reviews that is payload."""


@dataclass(frozen=True, slots=True)
class DemoLine:
    name: str
    figures: dict[str, float]
    table_entries: int


@dataclass(frozen=True, slots=True)
class NetworkDemo:
    brokers: int
    subscriptions: int
    changes: int
    messages: int
    edges: list[Edge]
    lines: list[DemoLine]
    link_bytes: Counter[tuple[int, int]]
    """The traffic of each link, with everything on."""
    subscribers: Counter[int]
    """By broker."""


@dataclass(slots=True)
class _Story:
    shapes: dict[int, SpaceShape]
    payload_columns: dict[int, tuple[int, ...]]
    subscriptions: list[tuple[int, list[Point], int]]
    early: list[Message]
    """Messages before all had subscribed: a sample of how likely messages are."""
    messages: list[Message]


def run_network_demo(brokers: int, subscriptions: int, changes: int, seed: int) -> NetworkDemo:
    story = _tell(brokers, subscriptions, changes, seed)
    edges = overlay_tree(draw_topology(seed, max(ROUTERS, 4 * brokers), brokers), fanout=4)
    plain = _cbn(story, brokers, edges, RoutingSettings(covers=False))
    covering = _cbn(story, brokers, edges, RoutingSettings())
    merging = _cbn(story, brokers, edges, _merging(story))
    merging.merge()
    unicast = UnicastNetwork(story.shapes, brokers)
    for number, points, node in story.subscriptions:
        unicast.subscribe(number, points, node)
    caching = CachingCarrier(merging, PayloadSettings(story.payload_columns))
    last = caching.carry(merging.publish(story.messages))
    lines = [
        _line("one by one (unicast)", unicast, story, changes),
        _line("brokers", plain, story, changes),
        _line("… with covering", covering, story, changes),
        _line("… and merging", merging, story, changes),
        _counted("… and payload caching", merging, last, changes),
    ]
    loads: Counter[tuple[int, int]] = Counter()
    for carried in last:
        for hop in carried.hops:
            loads[hop.hop.sender, hop.hop.receiver] += hop.nbytes
    where = Counter(node for _, _, node in story.subscriptions)
    sent = len(story.messages)
    return NetworkDemo(brokers, subscriptions, changes, sent, edges, lines, loads, where)


def _tell(brokers: int, subscriptions: int, changes: int, seed: int) -> _Story:
    """Half of the changes come first, then the subscribers, then the other half."""
    random, spaces = Random(seed), {}
    with TemporaryDirectory() as directory, Hub(home_path := Path(directory) / "home") as hub:
        log = Home.open(home_path).messages
        for statement in (CREATE_STOCKS, CREATE_REVIEWS):
            hub.execute(statement)
        happened = list(Market(seed).changes(2 * changes))
        hub.apply(happened[:changes])
        held = []
        for interest in draw_interests(subscriptions, seed):
            query = bind(interest.sql, hub.catalog)
            decomposition = decomposition_of(query, None)
            subscription = hub.subscribe(interest.sql, decomposition=decomposition)
            placed = place(query, subscription.id, decomposition)
            spaces.update({one.space.id: one.space for one in placed})
            points = [one.point for one in placed]
            held.append((subscription.id, points, random.randrange(brokers)))
        early = len(_messages(log))
        hub.apply(happened[changes:])
        messages = _messages(log)
        shapes = shapes_of(spaces.values(), hub.catalog)
    payloads: dict[int, tuple[int, ...]] = {
        i: (REVIEW_TEXT,) for i, one in spaces.items() if one.table == "reviews"
    }
    return _Story(shapes, payloads, held, messages[:early], messages[early:])


def _messages(log: MessageLog) -> list[Message]:
    return [decode_message(data) for batch in log.batches() for data in log.read(batch)]


def _merging(story: _Story) -> RoutingSettings:
    measures: dict[int, Measure] = {}
    for space, shape in story.shapes.items():
        observed = ObservedMeasure(shape, UniformMeasure(shape, {}))
        for message in story.early:
            if message.space == space and not message.recipients:
                observed.observe(message)
        measures[space] = observed
    return RoutingSettings(
        merging=MergeSettings(when_larger(8), THRESHOLD, BUDGET), measures=measures
    )


def _cbn(story: _Story, brokers: int, edges: list[Edge], settings: RoutingSettings) -> CbnNetwork:
    network = CbnNetwork(story.shapes, brokers, edges, settings=settings)
    network.subscribe_many(story.subscriptions)
    return network


def _line(name: str, network: ContentNetwork, story: _Story, changes: int) -> DemoLine:
    return _counted(name, network, carry_plainly(network.publish(story.messages)), changes)


def _counted(name: str, network: ContentNetwork, carried: list[Carried], changes: int) -> DemoLine:
    metrics = Metrics(network.server, network.nodes)
    metrics.count(carried, changes)
    return DemoLine(name, metrics.per_event(), network.table_size())
