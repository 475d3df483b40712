"""The order of linked chains (section 4.2 of Liu et al., 2007): savings of pairs, and a greedy
path.

A chain that is evaluated first can decide another one by a shared predicate that is false, and then
saves the cost of the other's predicates above that one. With links l = 1 … k between chains u and
v, evaluating u first saves

    sum over l of (1 - p_l) (P_ul C'_vl - P_vl C'_ul)

more than evaluating v first. P_ul is the probability that all nodes of u above link l are true;
C'_vl the expected cost of the nodes of v above link l, with those that are linked to u known to be
true. (Results that are reused save the same in both orders.) Costs multiply the terms of C'; the
paper would multiply the probabilities, which is no expected cost.

The paper sorts edges by increasing weight, its weight being a saving; here the largest saving comes
first. Its edges have no direction, its path needs one; here a chain has at most one successor and
one predecessor, and every edge of the path points from the chain that is better evaluated first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.kernels.compiled import njit_when_large
from penstock.operators.schedules.packed import Numbers, Packed

Floats = npt.NDArray[np.float64]

PAIRS_PER_NODE = 4
"""Maximum pairs per node of a chain. All pairs would be the square of a predicate's popularity:
4.5e8 for one that 30,000 branches have. The nodes of a predicate are sorted by P/C, what decides
between two chains with one link, and each is paired with its next two there and with two from the
other half, where savings are largest: at most 4 pairs per node, 1.3 million for 80,000 branches of
four predicates."""


class Nodes(NamedTuple):
    """Per-node values of packed chains, in the order of `Packed.predicates`."""

    probabilities: Floats
    costs: Floats
    above: Floats
    """The probability that all nodes above are true: P."""
    spent: Floats
    """The expected cost of the nodes above: C."""


def measure_nodes(packed: Packed, probabilities: Floats, costs: Floats) -> Nodes:
    """From probabilities and costs by predicate, in the numbering of the packed chains."""
    nodes = Nodes(
        probabilities[packed.predicates],
        costs[packed.predicates],
        np.ones(len(packed.predicates)),
        np.zeros(len(packed.predicates)),
    )
    _fill(packed, nodes)
    return nodes


@njit_when_large
def _fill(packed: Packed, nodes: Nodes) -> None:
    for branch in range(packed.starts.shape[0] - 1):
        for node in range(packed.starts[branch] + 1, packed.starts[branch + 1]):
            nodes.above[node] = nodes.above[node - 1] * nodes.probabilities[node - 1]
            nodes.spent[node] = (
                nodes.spent[node - 1] + nodes.above[node - 1] * nodes.costs[node - 1]
            )


@njit_when_large
def pair_saving(packed: Packed, nodes: Nodes, u: int, v: int) -> float:
    """How much less both cost if u is evaluated before v; negative if v should come first.

    Both chains are sorted by the same order of predicates, so links never cross, and one merge pass
    meets them from top to bottom.
    """
    saving = 0.0
    i, i_end = packed.starts[u], packed.starts[u + 1]
    j, j_end = packed.starts[v], packed.starts[v + 1]
    u_true, u_spent, v_true, v_spent = 1.0, 0.0, 1.0, 0.0  # of nodes without a link
    shared = 1.0  # the probability that all links so far are true
    while i < i_end and j < j_end:
        position = _next_link(packed, i, i_end, j, j_end)
        if position < 0:
            break
        while packed.predicates[i] != packed.predicates[position]:
            u_spent += u_true * nodes.costs[i]
            u_true *= nodes.probabilities[i]
            i += 1
        while packed.predicates[j] != packed.predicates[position]:
            v_spent += v_true * nodes.costs[j]
            v_true *= nodes.probabilities[j]
            j += 1
        truth = nodes.probabilities[i]
        saving += (1.0 - truth) * shared * (u_true * v_spent - v_true * u_spent)
        shared *= truth
        i += 1
        j += 1
    return saving


@njit_when_large
def _next_link(packed: Packed, i: int, i_end: int, j: int, j_end: int) -> int:
    """The first node of one chain from i on whose predicate the other has from j on; -1: none."""
    for a in range(i, i_end):
        for b in range(j, j_end):
            if packed.predicates[a] == packed.predicates[b]:
                return a
    return -1


def choose_pairs(packed: Packed, nodes: Nodes) -> tuple[Numbers, Numbers]:
    """Pairs of linked chains to compare, each once, the smaller number first."""
    predicates = packed.predicates
    owners = np.repeat(np.arange(len(packed.starts) - 1, dtype=np.int64), np.diff(packed.starts))
    ratio = nodes.above / np.maximum(nodes.spent, np.finfo(np.float64).tiny)
    order = np.lexsort((owners, ratio, predicates))
    counts = np.diff(packed.firsts)[predicates[order]]
    place = np.arange(len(order)) - packed.firsts[predicates[order]]
    found = [np.empty(0, np.int64)]
    for distance in (np.ones_like(counts), np.full_like(counts, 2), counts // 2, counts // 2 + 1):
        first = np.flatnonzero((distance > 0) & (place + distance < counts))
        pair = owners[order[first]], owners[order[first + distance[first]]]
        found.append(np.minimum(*pair) * len(packed.starts) + np.maximum(*pair))
    left, right = np.divmod(np.unique(np.concatenate(found)), len(packed.starts))
    return left.astype(np.int32), right.astype(np.int32)


@njit_when_large
def measure_pairs(packed: Packed, nodes: Nodes, left: Numbers, right: Numbers) -> Floats:
    """The saving of evaluating the left chain first, of every pair."""
    savings = np.zeros(left.shape[0])
    for i in range(left.shape[0]):
        savings[i] = pair_saving(packed, nodes, left[i], right[i])
    return savings


def greedy_path(packed: Packed, nodes: Nodes) -> Numbers:
    """All chains in an order that uses the largest savings first, like Kruskal's algorithm."""
    left, right = choose_pairs(packed, nodes)
    savings = measure_pairs(packed, nodes, left, right)
    is_forward = savings > 0
    before, after = np.where(is_forward, left, right), np.where(is_forward, right, left)
    order = np.lexsort((after, before, -np.abs(savings)))
    order = order[np.abs(savings[order]) > 0]
    return _path(before[order], after[order], len(packed.starts) - 1)


@njit_when_large
def _path(before: Numbers, after: Numbers, count: int) -> Numbers:
    """Edges by decreasing saving; an edge is used if its chains are ends of different paths. Paths
    are concatenated in the order of their first chains: there are no savings between them."""
    successor = np.full(count, -1, np.int32)
    predecessor = np.full(count, -1, np.int32)
    root = np.arange(count)
    for edge in range(before.shape[0]):
        u, v = before[edge], after[edge]
        if successor[u] >= 0 or predecessor[v] >= 0:
            continue
        a, b = u, v
        while root[a] != a:
            root[a] = root[root[a]]
            a = root[a]
        while root[b] != b:
            root[b] = root[root[b]]
            b = root[b]
        if a != b:
            successor[u], predecessor[v] = v, u
            root[max(a, b)] = min(a, b)
    path = np.zeros(count, np.int32)
    filled = 0
    for start in range(count):
        if predecessor[start] >= 0:
            continue
        node = start
        while node >= 0:
            path[filled] = node
            filled += 1
            node = successor[node]
    return path
