"""Tree patterns of a whole view set as flat arrays, for kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.documents.patterns import Axis, Predicate, TreePattern
from penstock.views.tree_language import CONT_SHIFT, TEST_SHIFT, VAL_SHIFT

LABEL_BITS = 128
"""Label sets are two words. If there are more labels, they share bits: a subset stays a subset."""
RETURNS_VAL, RETURNS_CONT = 1, 2


# Columns of `PackedPatterns.nodes`. One array: a call with ten arguments takes longer than a test.
LABEL, PARENT, IS_DEEP, RETURNS, TEST, ABOVE, BELOW = range(7)
_COLUMNS = 8
"""Seven, and one for padding: a node is half a cache line."""


class PackedPatterns(NamedTuple):
    """Node i of pattern p is row `starts[p] + i` of `nodes`.

    A row holds the label's number, the parent's place (-1: none), whether it hangs on a descendant
    edge, what it returns, the predicate's number (0: none), and the sets of its ancestors and of
    the nodes below it as masks.
    """

    starts: NDArray[np.int64]
    nodes: NDArray[np.int32]
    label_bits: NDArray[np.uint64]
    demands: NDArray[np.uint64]

    @property
    def views(self) -> int:
        return len(self.starts) - 1


def pack_patterns(patterns: Sequence[TreePattern]) -> PackedPatterns:
    """Number labels and predicates, and lay out all nodes."""
    flat = [node for pattern in patterns for node in pattern.nodes]
    sizes = np.array([len(pattern.nodes) for pattern in patterns], np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    labels: dict[str, int] = {}
    tests: dict[Predicate | None, int] = {None: 0}
    nodes = np.zeros((len(flat), _COLUMNS), np.int32)
    nodes[:, LABEL] = [labels.setdefault(node.label, len(labels)) for node in flat]
    nodes[:, PARENT] = [node.parent for node in flat]
    nodes[:, IS_DEEP] = [node.axis is Axis.DESCENDANT for node in flat]
    nodes[:, RETURNS] = [node.val * RETURNS_VAL + node.cont * RETURNS_CONT for node in flat]
    nodes[:, TEST] = [tests.setdefault(node.predicate, len(tests)) for node in flat]
    nodes[:, ABOVE], nodes[:, BELOW] = _relatives(starts, nodes[:, PARENT])
    return PackedPatterns(
        starts,
        nodes,
        _label_bits(starts, nodes[:, LABEL]),
        _demands(starts, nodes[:, RETURNS], nodes[:, TEST]),
    )


def _owners(starts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def _relatives(
    starts: NDArray[np.int64], parents: NDArray[np.int32]
) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    above = np.zeros(len(parents), np.uint16)
    below = np.zeros(len(parents), np.uint16)
    first = starts[_owners(starts)]
    own = (np.uint64(1) << (np.arange(len(parents)) - first).astype(np.uint64)).astype(np.uint16)
    at = np.arange(len(parents))
    # One level at a time: all nodes climb to their parents until none has one.
    climber, walker = at, at
    while len(climber):
        has_parent = parents[walker] >= 0
        climber, walker = climber[has_parent], walker[has_parent]
        walker = first[walker] + parents[walker]
        above[climber] |= own[walker]
        np.bitwise_or.at(below, walker, own[climber])
    return above, below


def _label_bits(starts: NDArray[np.int64], labels: NDArray[np.int32]) -> NDArray[np.uint64]:
    bits = np.zeros((len(starts) - 1, 2), np.uint64)
    place = labels % LABEL_BITS
    word = np.uint64(1) << (place % 64).astype(np.uint64)
    np.bitwise_or.at(bits, (_owners(starts), place // 64), word)
    return bits


def _demands(
    starts: NDArray[np.int64], returns: NDArray[np.int32], tests: NDArray[np.int32]
) -> NDArray[np.uint64]:
    owners = _owners(starts)
    place = (np.arange(len(owners)) - starts[owners]).astype(np.uint64)
    bit = np.uint64(1) << place
    masks = bit.copy()
    masks |= np.where(returns & RETURNS_VAL, bit << np.uint64(VAL_SHIFT), np.uint64(0))
    masks |= np.where(returns & RETURNS_CONT, bit << np.uint64(CONT_SHIFT), np.uint64(0))
    masks |= np.where(tests > 0, bit << np.uint64(TEST_SHIFT), np.uint64(0))
    demands = np.zeros(len(starts) - 1, np.uint64)
    np.bitwise_or.at(demands, owners, masks)
    return demands
