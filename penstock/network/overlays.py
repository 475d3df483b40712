"""Overlays: which nodes are linked. Brokers need trees; anything else is refused."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import TypeAlias

from penstock.errors import NetworkError

Edge: TypeAlias = tuple[int, int]


def check_acyclic(nodes: int, edges: Iterable[Edge]) -> None:
    """NetworkError unless the edges make a forest over the nodes 0 to nodes - 1."""
    leader = list(range(nodes))

    def find(node: int) -> int:
        while leader[node] != node:
            leader[node] = node = leader[leader[node]]
        return node

    for one, other in edges:
        if not (0 <= one < nodes and 0 <= other < nodes):
            raise NetworkError(f"an edge {one}–{other} between nodes that do not exist")
        first, second = find(one), find(other)
        if first == second:
            raise NetworkError(
                f"the overlay has a cycle through {one}–{other}",
                hint="brokers pass messages along a tree: leave one of its edges out",
            )
        leader[first] = second


def random_tree(nodes: int, random: Random) -> list[Edge]:
    """A random tree of any shape: each node is linked to an earlier one."""
    return [(random.randrange(node), node) for node in range(1, nodes)]


def numbered_links(nodes: int, edges: Iterable[Edge]) -> list[dict[int, int]]:
    """For each node: its neighbours by link number, from 1 on."""
    links: list[dict[int, int]] = [{} for _ in range(nodes)]
    for one, other in edges:
        links[one][len(links[one]) + 1] = other
        links[other][len(links[other]) + 1] = one
    return links
