"""Shared decision nodes with many roots: the modified binary decision diagrams of Li et al. (2005).

A node is (variable, low, high): if the variable is true go to `high`, else to `low`. Nodes 0 and 1
are the constants. Variables are tested in one order on every path, no node has equal children, and
no two nodes are the same; so equal conditions have the same root, and subscriptions share every
part of their diagrams that is equal. A node comes after its children: one pass from left to right
evaluates all of them.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from penstock.kernels.compiled import njit

FALSE, TRUE = 0, 1
_SHIFT = 32

Ints32 = npt.NDArray[np.int32]


class TooLargeError(Exception):
    """An operation would exceed its step limit."""


class NodeTable:
    """Nodes, each once. `rank` gives a variable's place in the order, small ranks on top."""

    def __init__(self, rank: Callable[[int], int]) -> None:
        self.rank = rank
        self.variables = array("i", [-1, -1])
        self.lows = array("i", [FALSE, TRUE])
        self.highs = array("i", [FALSE, TRUE])
        self._places: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.variables)

    def children(self, node: int) -> tuple[int, int]:
        return self.lows[node], self.highs[node]

    def node(self, variable: int, low: int, high: int) -> int:
        """The node with these children; created if it does not exist."""
        if low == high:
            return low
        key = _key(variable, low, high)
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(self.variables)
            self.variables.append(variable)
            self.lows.append(low)
            self.highs.append(high)
        return place

    def conjunction(self, variables: Iterable[int]) -> int:
        """The AND of the variables."""
        node = TRUE
        for variable in sorted(variables, key=self.rank, reverse=True):
            node = self.node(variable, FALSE, node)
        return node

    def disjunction(self, conjunctions: Iterable[Iterable[int]], steps: int) -> int:
        """The OR of conjunctions, without building a diagram for each of them first.

        A set of conjunctions (tuples of ascending ranks) is split by its topmost variable into what
        remains if the variable is false, and if it is true.

        TooLargeError, with all nodes rolled back, if it takes more than `steps` steps.
        """
        by_rank: dict[int, int] = {}
        terms_of_all = []
        for one in conjunctions:
            ranked = {self.rank(variable): variable for variable in one}
            by_rank.update(ranked)
            terms_of_all.append(tuple(sorted(ranked)))
        ordered = frozenset(terms_of_all)
        known: dict[frozenset[tuple[int, ...]], int] = {frozenset(): FALSE}
        before = len(self)
        waiting = [ordered]
        while waiting:
            terms = waiting[-1]
            if terms in known:
                waiting.pop()
            elif () in terms:
                known[terms] = TRUE
            else:
                top = min(term[0] for term in terms)
                low = frozenset(term for term in terms if term[0] != top)
                high = frozenset(term[1:] if term[0] == top else term for term in terms)
                missing = [part for part in (low, high) if part not in known]
                if not missing:
                    known[terms] = self.node(by_rank[top], known[low], known[high])
                waiting += missing
            if len(known) > steps:
                self.forget_after(before)
                raise TooLargeError
        return known[ordered]

    def both(self, one: int, other: int, steps: int) -> int:
        return self._apply(one, other, FALSE, steps)

    def either(self, one: int, other: int, steps: int) -> int:
        return self._apply(one, other, TRUE, steps)

    def _apply(self, one: int, other: int, decides: int, steps: int) -> int:
        """AND or OR: `decides` is the absorbing constant, the other one is neutral.

        Not recursive: a subscription of 500 predicates is 500 nodes deep.
        """
        known: dict[tuple[int, int], int] = {}
        before = len(self)
        waiting = [(one, other)]
        while waiting:
            f, g = pair = waiting[-1]
            if pair in known:
                waiting.pop()
            elif decides in pair:
                known[pair] = decides
            elif f == g or g <= TRUE:
                known[pair] = f
            elif f <= TRUE:
                known[pair] = g
            else:
                top = min(self.variables[f], self.variables[g], key=self.rank)
                f_parts = self.children(f) if self.variables[f] == top else (f, f)
                g_parts = self.children(g) if self.variables[g] == top else (g, g)
                parts = list(zip(f_parts, g_parts, strict=True))
                missing = [part for part in parts if part not in known]
                if not missing:
                    known[pair] = self.node(top, *(known[part] for part in parts))
                waiting += missing
            if len(known) > steps:
                self.forget_after(before)
                raise TooLargeError
        return known[one, other]

    def negation(self, node: int) -> int:
        known = {FALSE: TRUE, TRUE: FALSE}
        for place in self.reachable([node]):
            low, high = self.children(place)
            known[place] = self.node(self.variables[place], known[low], known[high])
        return known[node]

    def reachable(self, roots: Iterable[int]) -> list[int]:
        """The inner nodes below some roots, themselves included, children first."""
        seen: set[int] = set()
        waiting = [root for root in roots if root > TRUE]
        while waiting:
            node = waiting.pop()
            if node not in seen:
                seen.add(node)
                waiting += [child for child in self.children(node) if child > TRUE]
        return sorted(seen)

    def forget_after(self, count: int) -> None:
        """Roll back to the first `count` nodes."""
        for place in range(count, len(self)):
            del self._places[_key(self.variables[place], *self.children(place))]
        for column in (self.variables, self.lows, self.highs):
            del column[count:]

    def arrays(self) -> tuple[Ints32, Ints32, Ints32]:
        """Variables and children for kernels: views, to be dropped before the table changes."""
        return _view(self.variables), _view(self.lows), _view(self.highs)

    def sweep(self, roots: Sequence[int]) -> npt.NDArray[np.int64]:
        """Drop unreachable nodes; returns the new position of each node, -1 if it was dropped."""
        variables, lows, highs = self.arrays()
        live = _mark(lows, highs, np.array(roots, np.int64))
        moved = np.where(live, np.cumsum(live) - 1, -1)
        self.variables = array("i", variables[live].tolist())
        self.lows = array("i", moved[lows[live]].tolist())
        self.highs = array("i", moved[highs[live]].tolist())
        self._reindex()
        return moved

    def rename(self, names: dict[int, int]) -> None:
        """Give variables new names, which must be in the same order."""
        self.variables = array("i", [-1, -1, *(names[variable] for variable in self.variables[2:])])
        self._reindex()

    def _reindex(self) -> None:
        self._places = {
            _key(self.variables[place], *self.children(place)): place
            for place in range(TRUE + 1, len(self))
        }

    @property
    def nbytes(self) -> int:
        arrays = (self.variables, self.lows, self.highs)
        return sys.getsizeof(self._places) + sum(map(sys.getsizeof, arrays))


def _key(variable: int, low: int, high: int) -> int:
    return ((variable << _SHIFT | low) << _SHIFT) | high


def _view(numbers: array[int]) -> Ints32:
    return np.frombuffer(numbers, np.int32)


@njit
def _mark(lows: Ints32, highs: Ints32, roots: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Mark the nodes reachable from the roots. Children precede parents: one reverse pass."""
    live = np.zeros(len(lows), np.bool_)
    live[FALSE] = live[TRUE] = True
    for root in roots:
        live[root] = True
    for node in range(len(lows) - 1, TRUE, -1):
        if live[node]:
            live[lows[node]] = live[highs[node]] = True
    return live
