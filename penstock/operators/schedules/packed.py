"""Branches and predicates in arrays, for events with too many candidates for plain Python."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain as concatenate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.errors import PenstockError
from penstock.operators.schedules.schedule import Chain, Chains

Numbers = npt.NDArray[np.int32]
"""Indexes of branches, predicates and nodes: half the size of names, to fit caches."""
Names = npt.NDArray[np.int64]
MOST_NODES = 2**31 - 1


class Packed(NamedTuple):
    """The bipartite graph of branches and predicates, stored once in each direction.

    Branches are numbered by their place in the schedule's order, predicates by their rank among
    all numbers in use. The predicates of branch b are `predicates[starts[b]:starts[b + 1]]`, in
    the order of its chain; the branches of predicate t are `branches[firsts[t]:firsts[t + 1]]`,
    ascending.
    """

    starts: Numbers
    predicates: Numbers
    firsts: Numbers
    branches: Numbers
    branch_names: Names
    predicate_names: Names


def pack(chains: list[tuple[int, Chain]]) -> Packed:
    lengths = np.fromiter((len(chain) for _, chain in chains), np.int64, len(chains))
    total = int(lengths.sum())
    if total > MOST_NODES:
        raise PenstockError(f"{total:,} predicates in all branches are more than {MOST_NODES:,}")
    flat = concatenate.from_iterable(chain for _, chain in chains)
    names, predicates = np.unique(np.fromiter(flat, np.int64, total), return_inverse=True)
    owners = np.repeat(np.arange(len(chains), dtype=np.int32), lengths)
    return Packed(
        _starts(lengths),
        predicates.astype(np.int32),
        _starts(np.bincount(predicates, minlength=len(names))),
        owners[np.argsort(predicates, kind="stable")],
        np.fromiter((branch for branch, _ in chains), np.int64, len(chains)),
        names,
    )


def _starts(lengths: npt.NDArray[np.int64]) -> Numbers:
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)


class PackedChains:
    """The packed form of some chains, rebuilt when they have changed.

    Packing 80,000 branches takes some 50 ms: it pays for events with many candidates; those with
    few are scheduled without it.
    """

    def __init__(
        self,
        chains: Chains,
        ordered: Callable[[], list[tuple[int, Chain]]] | None = None,
    ) -> None:
        self._chains = chains
        self._ordered = ordered or (lambda: list(chains.items()))
        self._packed: Packed | None = None
        self._version = -1

    def current(self) -> Packed:
        if self._packed is None or self._version != self._chains.version:
            self._packed = pack(self._ordered())
            self._version = self._chains.version
        return self._packed

    def forget(self) -> None:
        """The order of branches or of their predicates has changed."""
        self._packed = None
