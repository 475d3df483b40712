"""Networks over the workloads of the lab: points, shapes and messages in the form of networks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from random import Random

from penstock.joins import make_scheme
from penstock.lab.join_rows import JoinedTables, signature_of
from penstock.lab.workloads.joins import R_SPACE, S_SPACE, JoinWorkload
from penstock.messages import Message, Point, PointId, Position, each_message
from penstock.network.can import CanNetwork
from penstock.network.cbn import CbnNetwork
from penstock.network.routing_tables import RoutingSettings
from penstock.network.shapes import shapes_of
from penstock.network.topologies import ROUTERS, Topology, draw_topology, overlay_tree
from penstock.network.trees import TreeNetwork
from penstock.network.unicast import UnicastNetwork
from penstock.predicates.boxes import box
from penstock.predicates.intervals import EVERYTHING, Interval, below
from penstock.sql import bind

COLUMNS = {R_SPACE.id: (1,), S_SPACE.id: (2,)}
"""The base columns that a CAN has dimensions for."""


class NetworkWorkload:
    """A workload of select-joins over the nodes of an overlay."""

    def __init__(
        self, workload: JoinWorkload, nodes: int, seed: int, routers: int = ROUTERS
    ) -> None:
        self.workload = workload
        self.nodes = nodes
        self._routers = routers
        self.seed = seed
        self.shapes = shapes_of((R_SPACE, S_SPACE), workload.catalog)

    def subscriptions(self) -> Iterator[tuple[int, list[Point], int]]:
        """Number, points, and the node it is at, drawn uniformly."""
        random = Random(self.seed)
        ranges = self.workload.interests
        columns = (ranges.a_low, ranges.a_high, ranges.c_low, ranges.c_high)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for number, (a_low, a_high, c_low, c_high) in enumerate(rows):
            over_a = Interval(below(a_low), below(a_high + 1))
            over_c = Interval(below(c_low), below(c_high + 1))
            points = [
                Point(PointId(number, 0, 0), R_SPACE.id, box({1: over_a}), over_c),
                Point(PointId(number, 0, 1), S_SPACE.id, box({2: over_c}), over_a),
            ]
            yield number, points, random.randrange(self.nodes)

    def events(self, count: int, scheme: str = "ref-sj-gap") -> Iterator[list[Message]]:
        """The messages of each change: rows of R are inserted while the oldest are deleted, and
        rows of S."""
        maker = make_scheme(scheme)
        workload = self.workload
        for value, step in workload.turnover(0, count):
            group = workload.groups[value]
            yield list(each_message(maker.run(group, [step], workload.spaces)))

    def join_rows(self) -> JoinRowWorkload:
        return JoinRowWorkload(self)

    @cached_property
    def topology(self) -> Topology:
        return draw_topology(self.seed, self._routers, self.nodes)

    def cbn(self, settings: RoutingSettings | None = None) -> CbnNetwork:
        network = CbnNetwork(
            self.shapes, self.nodes, overlay_tree(self.topology), settings=settings
        )
        network.subscribe_many(self.subscriptions())
        return network

    def tree(self) -> TreeNetwork:
        """A CBN whose journeys are computed: for many nodes and subscriptions."""
        network = TreeNetwork(self.shapes, self.nodes, overlay_tree(self.topology))
        network.subscribe_many(self.subscriptions())
        return network

    def can(self) -> CanNetwork:
        network = CanNetwork(self.shapes, COLUMNS, self.nodes)
        for number, points, node in self.subscriptions():
            network.subscribe(number, points, node)
        network.join_all()
        return network

    def unicast(self) -> UnicastNetwork:
        network = UnicastNetwork(self.shapes, self.nodes)
        for number, points, node in self.subscriptions():
            network.subscribe(number, points, node)
        return network


class JoinRowWorkload:
    """The same subscriptions and changes with whole join rows: one message each, in a space of
    their own. It takes over the groups of the workload."""

    def __init__(self, given: NetworkWorkload) -> None:
        self._given = given
        catalog = given.workload.catalog
        self._relations = (catalog["r"], catalog["s"])
        self._signature = signature_of(bind("SELECT * FROM r JOIN s ON r.b = s.b", catalog))
        self.shapes = {self._signature.shape.space: self._signature.shape}

    def subscriptions(self) -> Iterator[tuple[int, list[Point], int]]:
        start, space = self._signature.starts[1], self._signature.shape.space
        for number, (over_r, over_s), node in self._given.subscriptions():
            base = (*over_r.base, *((start + column, i) for column, i in over_s.base))
            yield number, [Point(PointId(number, 0, 0), space, base, EVERYTHING)], node

    def events(self, count: int) -> Iterator[list[Message]]:
        """The join rows inserted and removed by each change."""
        tables, workload = JoinedTables([self._signature]), self._given.workload
        for group in workload.groups.values():
            for relation, rows in zip(self._relations, group.sides, strict=True):
                for row in rows.values():
                    tables.enter(relation, None, row)
        for value, step in workload.turnover(0, count):
            position = Position(step.offset, step.step)
            found = tables.change(position, self._relations[step.side], step.old, step.new)
            yield [message for _, message in found]
            rows = workload.groups[value].sides[step.side]
            if step.new is None:
                del rows[step.key]
            else:
                rows[step.key] = step.new

    def can(self) -> CanNetwork:
        space, start = self._signature.shape.space, self._signature.starts[1]
        network = CanNetwork(self.shapes, {space: (1, start + 2)}, self._given.nodes)
        for number, points, node in self.subscriptions():
            network.subscribe(number, points, node)
        network.join_all()
        return network

    def tree(self) -> TreeNetwork:
        given = self._given
        network = TreeNetwork(self.shapes, given.nodes, overlay_tree(given.topology))
        network.subscribe_many(self.subscriptions())
        return network


def flatten(events: Sequence[Sequence[Message]]) -> list[Message]:
    return [message for event in events for message in event]
