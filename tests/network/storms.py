"""Random networks in bad weather: what every client has in the end is what DuckDB says.

Everything follows from a seed: the overlay, the subscriptions, the changes, and what goes wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random

from penstock import Change, Hub, Op
from penstock.client import Content
from penstock.messages import Message, Point, decode_message
from penstock.network import BrokerNode, Timing
from penstock.network.overlays import random_tree
from penstock.network.payloads import PayloadSettings
from penstock.network.routing_tables import RoutingSettings, interests_of
from penstock.network.shapes import shapes_of
from penstock.network.simulator import Simulator
from penstock.query import Query
from penstock.routing.interests import Interest, everything_in
from penstock.routing.merging.measures import Measure, UniformMeasure
from penstock.routing.merging.policies import every
from penstock.routing.merging.table import MergeSettings
from penstock.spaces import Decomposition, place
from penstock.sql import bind
from penstock.testing.decompositions import numbered_decomposition
from penstock.testing.oracle import Oracle, comparable
from tests.drawn_changes import DrawnChanges

SOURCE = "home"
TIMING = Timing(resend_after=1.0, fail_after=4.0)
TABLES = (
    "CREATE TABLE r (id BIGINT PRIMARY KEY, k INTEGER, a INTEGER, text VARCHAR)",
    "CREATE TABLE s (id BIGINT PRIMARY KEY, k INTEGER, b INTEGER, c INTEGER)",
)
VALUES = (None, 0, 1, 2, 3, 4)
TEXTS = ("x" * 40, "y" * 60, None)


def draw_sql(random: Random) -> str:
    low, high = sorted((random.randrange(5), random.randrange(5)))
    first, last = sorted((random.randrange(5), random.randrange(5)))
    return random.choice(
        (
            f"SELECT * FROM r WHERE a BETWEEN {low} AND {high}",
            f"SELECT * FROM r WHERE a = {low} OR k > {first}",
            f"SELECT id, b FROM s WHERE b >= {low} AND c <= {last}",
            f"SELECT * FROM r JOIN s USING (k) WHERE a BETWEEN {low} AND {high} AND b >= {first}",
            f"SELECT * FROM r JOIN s ON r.k = s.k WHERE a <= {high} AND b = {first} AND c > {low}",
            f"SELECT r.id, s.c FROM r JOIN s USING (k) WHERE (a = {low} OR b = {last}) AND c < 4",
        )
    )


@dataclass
class Subscriber:
    number: int
    sql: str
    query: Query
    decomposition: Decomposition
    points: tuple[Point, ...]

    @property
    def name(self) -> str:
        return str(self.number)


class Storm:
    """`is_calm`: links delay, and nothing else goes wrong."""

    def __init__(self, random: Random, *, is_calm: bool = False, steps: int = 30) -> None:
        self.random = random
        self.is_calm = is_calm
        self.merges = self.random.random() < 0.4
        self.portion_messages = self.random.choice((2, 1_000))
        self.sqls = [draw_sql(self.random) for _ in range(6)]
        self.hub, self.oracle = Hub(), Oracle()
        for sql in TABLES:
            self.hub.execute(sql)
            self.oracle.define(list(self.hub.catalog)[-1])
        spaces = {}
        self.queries = [bind(sql, self.hub.catalog) for sql in self.sqls]
        for query in self.queries:
            for placed in place(query, 0, numbered_decomposition(query, 0)):
                spaces[placed.space.id] = placed.space
        self.shapes = shapes_of(spaces.values(), self.hub.catalog)
        self.payload_columns = {i: (3,) for i, one in spaces.items() if one.table == "r"}
        self.nodes = self.random.randint(2, 8)
        self.edges = random_tree(self.nodes, self.random)
        share = self.random.choice((0.5, 1.0))
        self.caching = [self.random.random() < share for _ in range(self.nodes)]
        self.repository = self.random.choice((0, 0, 1, 400))
        self.places = self.random.choice((0, 1, 50_000))
        self.held_messages = self.random.choice((1, 3, 10_000))
        self.observes = self.random.random() < 0.5
        self.merged_at_once = self.random.choice((None, 2))
        self.root = self.random.randrange(self.nodes)
        self.network = self._network(self.random.getrandbits(30))
        self.published = 0
        self.subscribers: dict[str, Subscriber] = {}
        self.changes = DrawnChanges(("r", "s"))
        for _ in range(2):
            self._subscribe()
        for _ in range(steps):
            self._step()

    def _network(self, seed: int) -> Simulator:
        network = Simulator(self.nodes, self.edges, self._make_node, seed)
        network.add_source(SOURCE, self.root, map(everything_in, self.shapes.values()))
        for conditions in network.conditions.values():
            conditions.latency = 0.01 + 0.1 * self.random.random()
            conditions.jitter = 0.2 * self.random.random()
        return network

    def _make_node(self, number: int, links: Sequence[int], start: int) -> BrokerNode:
        merging, measures = None, dict[int, Measure]()
        if self.merges:
            merging = MergeSettings(every(2), 0.3, budget=0.2, most_at_once=self.merged_at_once)
            ranges = dict.fromkeys((1, 2, 3), (0, 4))
            measures = {i: UniformMeasure(one, ranges) for i, one in self.shapes.items()}
        payloads = PayloadSettings(
            self.payload_columns,
            600,
            self.repository,
            places=self.places,
            held_messages=self.held_messages,
        )
        return BrokerNode(
            self.shapes,
            links,
            start=start,
            timing=TIMING,
            settings=RoutingSettings(merging=merging, measures=measures, observes=self.observes),
            payloads=payloads if self.caching[number] else None,
            portion_messages=self.portion_messages,
        )

    def _step(self) -> None:
        self.random.choice(
            [self._change, self._change, self._change, self._subscribe, self._leave]
            + ([] if self.is_calm else [self._disturb, self._disturb, self._repair, self._repair])
        )()
        self.network.run_for(self.random.choice((0.0, 0.05, 0.3, 1.0, 5.0)))

    def _change(self) -> None:
        changes = [self._draw_change() for _ in range(self.random.choice((1, 3)))]
        self.hub.apply(changes)
        for change in changes:
            self.oracle.apply(change)
        self._publish()

    def _draw_change(self) -> Change:
        change = self.changes.draw(self.random)
        if change.op is Op.DELETE:
            return change
        row = {**change.row, "k": self.random.choice((0, 1))}
        for name in ("a", "text") if change.table == "r" else ("b", "c"):
            row[name] = self.random.choice(TEXTS if name == "text" else VALUES)
        return replace(change, row=row)

    def _publish(self) -> None:
        for message in self._messages()[self.published :]:
            self.network.publish(SOURCE, message)
            self.published += 1

    def _messages(self) -> list[Message]:
        log = self.hub._home.messages
        return [decode_message(data) for batch in log.batches() for data in log.read(batch)]

    def _subscribe(self) -> None:
        query = self.random.choice(self.queries)
        sql = query.sql
        chosen = numbered_decomposition(query, 0)
        after = self.published
        number = self.hub.subscribe(sql, decomposition=chosen).id
        points = tuple(placed.point for placed in place(query, number, chosen))
        one = Subscriber(number, sql, query, chosen, points)
        self.subscribers[one.name] = one
        node = self.random.randrange(self.nodes)
        if self.random.random() < 0.5:
            self._publish()
        self.network.subscribe(one.name, node, SOURCE, points, after)
        self._publish()

    def _leave(self) -> None:
        if not self.subscribers:
            return
        name = self.random.choice(sorted(self.subscribers))
        if self.random.random() < 0.5:
            self.network.move(name, self.random.randrange(self.nodes))
            return
        self.hub.unsubscribe(self.subscribers.pop(name).number)
        self.network.unsubscribe(name)

    def _disturb(self) -> None:
        conditions = self.network.condition(*self.random.choice(self.edges))
        match self.random.randrange(4):
            case 0:
                self.network.crash(self.random.randrange(self.nodes))
            case 1:
                conditions.is_cut = True
            case 2:
                conditions.loss = self.random.choice((0.1, 0.4))
            case 3:
                conditions.bandwidth = self.random.choice((200.0, 5_000.0))

    def _repair(self) -> None:
        self.network.restart(self.random.randrange(self.nodes))
        conditions = self.network.condition(*self.random.choice(self.edges))
        conditions.is_cut, conditions.loss, conditions.bandwidth = False, 0.0, 0.0

    def settle(self) -> None:
        for conditions in self.network.conditions.values():
            conditions.is_cut, conditions.loss, conditions.bandwidth = False, 0.0, 0.0
        for node in range(self.nodes):
            self.network.restart(node)
        self.network.run_until_quiet()

    def check(self) -> None:
        for name, one in self.subscribers.items():
            received = self.network.clients[name].received
            sequences = [sequence for sequence, _ in received]
            assert sequences == sorted(set(sequences)), "a message came twice, or too late"
            for _, message in received:
                assert self._is_meant(message, one.points), "a message from outside the region"
            content = Content(one.number, one.query, one.decomposition)
            content.apply([message for _, message in received])
            found = comparable(row.values() for row in content.rows())
            assert found == self.oracle.content(one.sql), one.sql
        faults = [node.faults for node in self.network.nodes if node is not None and node.faults]
        assert not faults, faults

    def _is_meant(self, message: Message, points: Sequence[Point]) -> bool:
        base = self.shapes[message.space].base
        return any(
            message.upserts(point, base) or message.removes(point, base)
            for point in points
            if point.space == message.space
        )

    def check_tables(self) -> None:
        """The tables are those of a network that has seen nothing but the end."""
        fresh = self._network(0)
        for name, one in self.subscribers.items():
            fresh.subscribe(name, self.network.clients[name].node, SOURCE, one.points, 0)
        fresh.run_until_quiet()
        for number in range(self.nodes):
            for link in self.network.links[number]:
                mine, its = (
                    self._table(self.network, number, link),
                    self._table(fresh, number, link),
                )
                if not self.merges:
                    assert mine == its
                else:
                    held = self._table(self.network, number, link)
                    assert all(any(m.covers(i) for m in held) for i in self._needed(number, link))

    def _table(self, network: Simulator, number: int, link: int) -> set[Interest]:
        node = network.nodes[number]
        assert node is not None
        return set(interests_of(node.tables.table(link)))

    def _needed(self, number: int, link: int) -> list[Interest]:
        """What must be covered at the far end of a link: what its near end holds from elsewhere."""
        near = self.network.links[number][link]
        back = next(i for i, other in self.network.links[near].items() if other == number)
        node = self.network.nodes[near]
        assert node is not None
        return list(node.tables.merged_table(back).sent().values())

    def close(self) -> None:
        self.hub.close()
        self.oracle.__exit__(None, None, None)


def live_through(storm: Storm) -> str:
    """The trace says whether two runs were the same."""
    try:
        storm.settle()
        storm.check()
        storm.check_tables()
        return storm.network.trace
    finally:
        storm.close()


def weather(seed: int) -> str:
    return live_through(Storm(Random(seed)))


def weather_of(seeds: Iterable[int]) -> None:
    """One storm after the other; one that fails says how to run it again."""
    for seed in seeds:
        try:
            weather(seed)
        except BaseException as error:
            error.add_note(f"seed {seed}: tests.network.storms.weather({seed}) runs it again")
            raise
