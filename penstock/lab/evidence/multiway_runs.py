"""Multi-way joins on networks: decompositions, relaxed selections and whole join rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from random import Random

from penstock.flow.changes import Change, Op
from penstock.flow.planning import Method, cost_model
from penstock.joins.decomposition.greedy import decompose
from penstock.lab.evidence.scheme_runs import (
    Effort,
    Figures,
    Key,
    Repeated,
    count_figures,
    one_by_one,
)
from penstock.lab.experiments.joins_decomposition import preferring
from penstock.lab.join_rows import JoinedTables, Signature, signature_of
from penstock.lab.workloads.multiway import MultiwayWorkload
from penstock.messages import EVERYONE, Message, Point, PointId, Position
from penstock.network.caching import carry_plainly
from penstock.network.can import CanNetwork
from penstock.network.journeys import ContentNetwork, Journey
from penstock.network.shapes import shapes_of
from penstock.network.topologies import draw_topology, overlay_tree
from penstock.network.trees import TreeNetwork
from penstock.predicates.intervals import EVERYTHING
from penstock.routing.interests import SpaceShape
from penstock.spaces import Decomposition, Replan, Space, place

GREEDY = "greedy"
REL_SEL = "Rel-Sel"
VALUE = 1
"""The column of every table that ranges are over."""

Subscribed = list[tuple[int, list[Point]]]


@dataclass(frozen=True, slots=True)
class Mix:
    subscriptions: int
    star: bool = False
    heavy_facts: bool = False
    share: float = 1.0
    """The share of the star's rows."""


def compare_mix(mix: Mix, effort: Effort) -> Repeated:
    """All measures for every seed; subscriptions, tables and inserts are drawn again."""
    repeated = Repeated()
    for seed in range(1, effort.seeds + 1):
        for key, figures in _Run(mix, effort, seed).figures():
            repeated.add(key, figures)
    return repeated


class _Run:
    def __init__(self, mix: Mix, effort: Effort, seed: int) -> None:
        self._mix, self._effort = mix, effort
        self._workload = MultiwayWorkload(
            mix.subscriptions,
            star=mix.star,
            seed=seed,
            share=mix.share,
            heavy_facts=mix.heavy_facts,
        )
        self._queries = self._workload.engine.queries
        self._inserts = self._workload.inserts(effort.events)
        self._edges = overlay_tree(draw_topology(seed, effort.routers, effort.nodes))
        random = Random(seed)
        self._homes = {number: random.randrange(effort.nodes) for number in self._queries}

    def figures(self) -> Iterator[tuple[Key, Figures]]:
        engine = self._workload.engine
        chosen = {GREEDY: decompose(self._queries, cost_model(engine, Method.SIMULATION))}
        if not self._mix.star:
            chosen |= {
                f"S by {', '.join(order).upper()}": {
                    number: preferring(query, order) for number, query in self._queries.items()
                }
                for order in permutations("rtu")
            }
        for name, decompositions in chosen.items():
            yield from self._decomposed(name, decompositions)
        yield from self._relaxed()
        if self._mix.star:
            yield from self._join_rows()

    def _decomposed(
        self, name: str, chosen: Mapping[int, Decomposition]
    ) -> Iterator[tuple[Key, Figures]]:
        workload = self._workload
        for number, decomposition in chosen.items():
            workload.engine.move(Replan(workload.replan_offset(), number, decomposition))
        sent = [message for change in self._inserts for message in workload.apply(change)]
        for change in self._inserts:  # restores the tables for the next way
            workload.apply(Change(change.table, Op.DELETE, {"id": change.row["id"]}))
        spaces: dict[int, Space] = {}
        subscribed: Subscribed = []
        for number, query in self._queries.items():
            placed = place(query, number, chosen[number])
            spaces |= {one.space.id: one.space for one in placed}
            subscribed.append((number, [one.point for one in placed]))
        shapes = shapes_of(spaces.values(), workload.engine.catalog)
        columns = dict.fromkeys(shapes, (VALUE,))
        yield from self._carried(name, self._networks(shapes, columns, subscribed), sent)

    def _relaxed(self) -> Iterator[tuple[Key, Figures]]:
        catalog = self._workload.engine.catalog
        shapes = shapes_of((Space(relation.name) for relation in catalog), catalog)
        subscribed: Subscribed = []
        for number, query in self._queries.items():
            points = [
                Point(
                    PointId(number, branch, i), Space(node.relation.name).id, boxes[i], EVERYTHING
                )
                for branch, boxes in enumerate(query.branches)
                for i, node in enumerate(query.nodes)
            ]
            subscribed.append((number, points))
        sent = []
        for offset, change in enumerate(self._inserts):
            relation = catalog[change.table]
            row = relation.store_row(change.row)
            space = Space(relation.name).id
            key = relation.key_of(row, 0)
            sent.append(Message(Position(offset, 1), space, key, row, EVERYONE))
        networks = self._networks(shapes, dict.fromkeys(shapes, (VALUE,)), subscribed)
        yield from self._carried(REL_SEL, networks, sent)

    def _join_rows(self) -> Iterator[tuple[Key, Figures]]:
        signatures: dict[Signature, None] = {}
        subscribed: Subscribed = []
        for number, query in self._queries.items():
            signature = signature_of(query)
            signatures[signature] = None
            subscribed.append((number, signature.points(query, number)))
        shapes = {one.shape.space: one.shape for one in signatures}
        columns = {one.shape.space: tuple(s + VALUE for s in one.starts) for one in signatures}
        networks = self._networks(shapes, columns, subscribed)
        tables, catalog = JoinedTables(signatures), self._workload.engine.catalog
        for change in self._workload.loaded:
            relation = catalog[change.table]
            tables.enter(relation, None, relation.store_row(change.row))
        sent: list[Message] = []
        for offset, change in enumerate(self._inserts):
            relation = catalog[change.table]
            row = relation.store_row(change.row)
            found = tables.change(Position(offset, 1), relation, None, row)
            sent += [message for _, message in found]
        for name, network in networks.items():
            journeys = network.publish(sent)
            wanted = [one for one in journeys if one.arrivals]
            yield (name, "Ref-J"), self._counted(network, journeys)
            yield (name, "Ref-J+"), self._counted(network, wanted)
            direct = [one_by_one(journey, network.server) for journey in wanted]
            yield (name, "Enum-J"), self._counted(network, direct, is_direct=True)

    def _networks(
        self,
        shapes: Mapping[int, SpaceShape],
        columns: Mapping[int, Sequence[int]],
        subscribed: Subscribed,
    ) -> dict[str, ContentNetwork]:
        nodes = self._effort.nodes
        tree = TreeNetwork(shapes, nodes, self._edges)
        can = CanNetwork(shapes, columns, nodes)
        tree.subscribe_many((number, own, self._homes[number]) for number, own in subscribed)
        for number, own in subscribed:
            can.subscribe(number, own, self._homes[number])
        can.join_all()
        return {"CAN": can, "CBN": tree}

    def _carried(
        self, scheme: str, networks: Mapping[str, ContentNetwork], sent: Sequence[Message]
    ) -> Iterator[tuple[Key, Figures]]:
        for name, network in networks.items():
            yield (name, scheme), self._counted(network, network.publish(sent))

    def _counted(
        self, network: ContentNetwork, journeys: Sequence[Journey], *, is_direct: bool = False
    ) -> Figures:
        return count_figures(
            network, carry_plainly(journeys), len(self._inserts), is_direct=is_direct
        )
