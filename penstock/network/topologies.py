"""An Internet-like topology of routers, and overlays over some of them.

The paper takes 20,000 routers from INET, a generator that is no longer maintained. Its output has
one property that matters here: the degrees of autonomous systems follow a power law with an
exponent of about 2.2, and nearly all nodes are attached to a small core. igraph's static power-law
game (Goh, Kahng and Kim, 2001) draws graphs with a given exponent; its largest component is kept,
and the rest is attached to it in proportion to degree. (Barabási and Albert's growth, the other
candidate, has an exponent of 3: too few hubs.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from penstock.errors import NetworkError
from penstock.network.overlays import Edge

ROUTERS = 20_000
OVERLAY_NODES = 1_000
DEGREE_EXPONENT = 2.2
EDGES_PER_ROUTER = 2.0
LATENCY_SECONDS = (0.002, 0.020)
"""Range of the latency of one link between routers."""
MAX_FANOUT = 8
"""Maximum children of an overlay node: with more, a broker sends most bytes several times."""


@dataclass(frozen=True, slots=True)
class Topology:
    """`overlay` has the router of each overlay node; `latency[i][j]` is in seconds."""

    overlay: Sequence[int]
    latency: Sequence[Sequence[float]]


def draw_topology(
    seed: int, routers: int = ROUTERS, overlay_nodes: int = OVERLAY_NODES
) -> Topology:
    igraph = _igraph()
    random = Random(seed)
    igraph.set_random_number_generator(Random(seed))
    graph = igraph.Graph.Static_Power_Law(
        routers, round(EDGES_PER_ROUTER * routers), DEGREE_EXPONENT
    )
    _connect(graph, random)
    graph.es["latency"] = [random.uniform(*LATENCY_SECONDS) for _ in graph.es]
    # Hosts are at the edge: routers with few links.
    candidates = sorted(range(routers), key=lambda v: (graph.degree(v), v))[: routers // 2]
    chosen = sorted(random.sample(candidates, overlay_nodes))
    return Topology(chosen, graph.distances(chosen, chosen, weights="latency"))


def _connect(graph: Any, random: Random) -> None:
    """Attach everything to the largest component, in proportion to degree."""
    components = graph.connected_components()
    largest = max(range(len(components)), key=lambda i: len(components[i]))
    core = components[largest]
    weighted = [vertex for vertex in core for _ in range(graph.degree(vertex))] or list(core)
    fresh = [
        (component[0], random.choice(weighted))
        for i, component in enumerate(components)
        if i != largest
    ]
    graph.add_edges(fresh)


def overlay_tree(topology: Topology, root: int = 0, fanout: int = MAX_FANOUT) -> list[Edge]:
    """A tree of short links: nodes join from near to far, each below the nearest node that has room
    and does not make its path to the root much longer."""
    latency = topology.latency
    order = sorted(range(len(latency)), key=lambda node: (latency[root][node], node))
    edges: list[Edge] = []
    children = dict.fromkeys(order, 0)
    distance = {root: 0.0}
    for node in order:
        if node == root:
            continue
        ways = ((distance[one] + 2 * latency[one][node], one) for one in distance)
        _, parent = min(way for way in ways if children[way[1]] < fanout)
        children[parent] += 1
        distance[node] = distance[parent] + latency[parent][node]
        edges.append((parent, node))
    return edges


def _igraph() -> Any:
    try:
        import igraph  # type: ignore[import-untyped]
    except ImportError:
        raise NetworkError(
            "topologies are drawn by igraph, which is not installed",
            hint="pip install 'penstock[networks]'",
        ) from None
    return igraph
