"""`sub-order`: linked chains, evaluated one by one in an order that saves the most (section 4.2).

A chain's predicates are sorted by (1 - p) / cost, the best first; for equal costs that is by
increasing probability, which the paper's text once calls decreasing. Ties go to the smaller number,
in every chain: so equivalence links never cross. Estimates are read for a predicate once, and again
for all by `refresh`, since chains sorted by different estimates would have links that cross.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, islice
from math import isnan, nan

import numpy as np

from penstock.operators.schedules.chain_order import (
    PAIRS_PER_NODE,
    Nodes,
    greedy_path,
    measure_nodes,
    pair_saving,
)
from penstock.operators.schedules.packed import Packed, PackedChains, pack
from penstock.operators.schedules.replaying import replay_chains
from penstock.operators.schedules.schedule import (
    Chain,
    Chains,
    Estimates,
    Evaluated,
    OneByOne,
    Run,
    Truths,
    Undecided,
)

FEWEST_FOR_PATH = 16
"""Number of branches from which on the path is rebuilt each time their number has doubled. Below,
new chains are inserted one by one."""


class SubOrder:
    name = "sub-order"

    def __init__(self, estimates: Estimates) -> None:
        self._estimates = estimates
        self._chains = Chains()
        self._known: dict[int, tuple[float, float, float]] = {}
        """By predicate: its key in chains, probability, cost."""
        self._linked: dict[int, dict[int, None]] = {}
        """By predicate: the chains with a node of it, all linked to each other."""
        self._place: dict[int, float] = {}
        """By branch: its position on the path."""
        self._path: list[tuple[float, int]] | None = []
        """Positions in ascending order; None: the path must be rebuilt."""
        self._path_size = FEWEST_FOR_PATH
        self._packed = PackedChains(self._chains, self._in_order)

    def add(self, branch: int, predicates: Iterable[int]) -> None:
        chain = self._chains.add(branch, sorted(predicates, key=self._key))
        if self._path is not None and len(self._chains) >= 2 * self._path_size:
            self._path = None
        if self._path is not None:
            self._insert(branch, chain)
        for predicate in chain:
            self._linked.setdefault(predicate, {})[branch] = None

    def remove(self, branch: int) -> None:
        for predicate in self._chains.remove(branch):
            del self._linked[predicate][branch]
            if not self._linked[predicate]:
                del self._linked[predicate], self._known[predicate]
        place = self._place.pop(branch, None)
        if self._path is not None and place is not None:
            del self._path[bisect_left(self._path, (place, branch))]

    def refresh(self) -> None:
        """Read all estimates again, sort all chains by them, and rebuild the path."""
        self._known.clear()
        for branch, chain in list(self._chains.items()):
            self._chains.put(branch, sorted(chain, key=self._key))
        self._path = None

    def start(
        self, candidates: Iterable[int] | None = None, known: Mapping[int, bool] | None = None
    ) -> Run:
        self._make_path()
        picked = self._chains.pick(candidates)
        undecided = Undecided({b: picked[b] for b in sorted(picked, key=self._by_place)})
        return OneByOne(undecided, known, _order(undecided))

    def replay(self, truths: Truths) -> Evaluated:
        self._make_path()
        return replay_chains(self._packed.current(), truths)

    def order(self) -> list[int]:
        """The branches in the order of the path."""
        self._make_path()
        return sorted(self._place, key=self._by_place)

    def _key(self, predicate: int) -> tuple[float, int]:
        if predicate not in self._known:
            p, cost = self._estimates.probability(predicate), self._estimates.cost(predicate)
            self._known[predicate] = (p - 1.0) / cost, p, cost
        return self._known[predicate][0], predicate

    def _by_place(self, branch: int) -> tuple[float, int]:
        return self._place[branch], branch

    def _in_order(self) -> list[tuple[int, Chain]]:
        return [(branch, self._chains[branch]) for branch in self.order()]

    def _make_path(self) -> None:
        if self._path is not None:
            return
        chains = list(self._chains.items())
        path = greedy_path(*self._measured(chains)).tolist()
        self._place = {chains[number][0]: float(place) for place, number in enumerate(path)}
        self._path = [(place, branch) for branch, place in self._place.items()]
        self._path_size = max(FEWEST_FOR_PATH, len(chains))
        self._packed.forget()

    def _measured(self, chains: list[tuple[int, Chain]]) -> tuple[Packed, Nodes]:
        packed = pack(chains)
        known = [self._known[name] for name in packed.predicate_names.tolist()]
        probabilities = np.array([p for _, p, _ in known], np.float64)
        costs = np.array([cost for *_, cost in known], np.float64)
        return packed, measure_nodes(packed, probabilities, costs)

    def _insert(self, branch: int, chain: Chain) -> None:
        """Insert a new chain where the savings of its pairs sum up to the most."""
        assert self._path is not None
        partners = sorted(self._partners(chain), key=self._by_place)
        place = self._path[-1][0] + 1.0 if self._path else 0.0
        if partners:
            packed, nodes = self._measured([(b, self._chains[b]) for b in (branch, *partners)])
            behind = [-pair_saving(packed, nodes, 0, i + 1) for i in range(len(partners))]
            if any(behind):
                gains = [0.0, *accumulate(behind)]
                place = self._place_behind(partners, gains.index(max(gains)))
        if isnan(place):  # no number is left between two neighbours
            self._path = None
            return
        self._place[branch] = place
        insort(self._path, (place, branch))

    def _partners(self, chain: Chain) -> dict[int, None]:
        """Chains to compare a new one with: for each of its nodes, those linked most recently."""
        found: dict[int, None] = {}
        for predicate in chain:
            linked = self._linked.get(predicate, {})
            found |= dict.fromkeys(islice(reversed(linked), PAIRS_PER_NODE))
        return found

    def _place_behind(self, partners: list[int], count: int) -> float:
        """The position right after the first `count` partners; with none, right before the
        first."""
        assert self._path is not None
        branch = partners[max(0, count - 1)]
        index = bisect_left(self._path, (self._place[branch], branch)) + (count > 0)
        if index == 0:
            return self._path[0][0] - 1.0
        if index == len(self._path):
            return self._path[-1][0] + 1.0
        low, high = self._path[index - 1][0], self._path[index][0]
        middle = (low + high) / 2
        return middle if low < middle < high else nan


def _order(undecided: Undecided) -> Iterator[int]:
    for branch, chain in undecided.chains.items():
        for predicate in chain:
            if branch not in undecided.remaining:
                break
            if predicate not in undecided.truths:
                yield predicate
