"""Networks over the workloads of the lab: points, shapes and messages in the form networks take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from random import Random

from penstock.joins import make_scheme
from penstock.lab.workloads.joins import R_SPACE, S_SPACE, JoinWorkload
from penstock.messages import Message, Point, PointId, each_message
from penstock.network.can import CanNetwork
from penstock.network.cbn import CbnNetwork
from penstock.network.routing_tables import RoutingSettings
from penstock.network.shapes import shapes_of
from penstock.network.topologies import Topology, draw_topology, overlay_tree
from penstock.network.trees import TreeNetwork
from penstock.network.unicast import UnicastNetwork
from penstock.predicates.boxes import box
from penstock.predicates.intervals import Interval, below

COLUMNS = {R_SPACE.id: (1,), S_SPACE.id: (2,)}
"""The base columns that a CAN has dimensions for."""


class NetworkWorkload:
    """A workload of select-joins over the nodes of an overlay."""

    def __init__(self, workload: JoinWorkload, nodes: int, seed: int) -> None:
        self.workload = workload
        self.nodes = nodes
        self.seed = seed
        self.shapes = shapes_of((R_SPACE, S_SPACE), workload.catalog)

    def subscriptions(self) -> Iterator[tuple[int, list[Point], int]]:
        """Number, points, and the node it is at: any, all equally likely."""
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
        """The messages of each change: rows of R come while the oldest go, and rows of S."""
        maker = make_scheme(scheme)
        workload = self.workload
        for value, step in workload.turnover(0, count):
            group = workload.groups[value]
            yield list(each_message(maker.run(group, [step], workload.spaces)))

    @cached_property
    def topology(self) -> Topology:
        return draw_topology(self.seed, overlay_nodes=self.nodes)

    def cbn(self, settings: RoutingSettings | None = None) -> CbnNetwork:
        network = CbnNetwork(
            self.shapes, self.nodes, overlay_tree(self.topology), settings=settings
        )
        network.subscribe_many(self.subscriptions())
        return network

    def tree(self) -> TreeNetwork:
        """A CBN whose journeys are worked out: for many nodes and subscriptions."""
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


def flatten(events: Sequence[Sequence[Message]]) -> list[Message]:
    return [message for event in events for message in event]
