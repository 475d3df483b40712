"""Tree patterns of a whole view set as flat arrays, for kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.views.patterns import Axis, Predicate, TreePattern
from penstock.views.tree_language import CONT_SHIFT, TEST_SHIFT, VAL_SHIFT

LABEL_BITS = 128
"""Label sets are two words. Labels share bits where there are more: a subset stays a subset."""
RETURNS_VAL, RETURNS_CONT = 1, 2


class PackedPatterns(NamedTuple):
    """Node i of pattern p is at `starts[p] + i`."""

    starts: NDArray[np.int64]
    labels: NDArray[np.int32]
    parents: NDArray[np.int8]
    is_deep: NDArray[np.bool_]
    returns: NDArray[np.int8]
    tests: NDArray[np.int32]
    """The number of the predicate; 0 for none."""
    above: NDArray[np.uint16]
    """Of each node the ancestors, as a set of nodes of the same pattern."""
    below: NDArray[np.uint16]
    label_bits: NDArray[np.uint64]
    demands: NDArray[np.uint64]

    @property
    def views(self) -> int:
        return len(self.starts) - 1


def pack_patterns(patterns: Sequence[TreePattern]) -> PackedPatterns:
    """Number labels by frequency and predicates by value, and lay all nodes out."""
    nodes = [node for pattern in patterns for node in pattern.nodes]
    sizes = np.array([len(pattern.nodes) for pattern in patterns], np.int64)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    label_numbers: dict[str, int] = {}
    test_numbers: dict[Predicate | None, int] = {None: 0}
    labels = np.array(
        [label_numbers.setdefault(node.label, len(label_numbers)) for node in nodes], np.int32
    )
    tests = np.array(
        [test_numbers.setdefault(node.predicate, len(test_numbers)) for node in nodes], np.int32
    )
    parents = np.array([node.parent for node in nodes], np.int8)
    is_deep = np.array([node.axis is Axis.DESCENDANT for node in nodes], np.bool_)
    returns = np.array(
        [node.val * RETURNS_VAL + node.cont * RETURNS_CONT for node in nodes], np.int8
    )
    above, below = _relatives(starts, parents)
    return PackedPatterns(
        *(starts, labels, parents, is_deep, returns, tests, above, below),
        _label_bits(starts, labels),
        _demands(starts, returns, tests),
    )


def _owners(starts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def _relatives(
    starts: NDArray[np.int64], parents: NDArray[np.int8]
) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    above = np.zeros(len(parents), np.uint16)
    below = np.zeros(len(parents), np.uint16)
    first = starts[_owners(starts)]
    own = (np.uint64(1) << (np.arange(len(parents)) - first).astype(np.uint64)).astype(np.uint16)
    at = np.arange(len(parents))
    # One level at a time: all nodes climb to their parents until nobody has one.
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
    starts: NDArray[np.int64], returns: NDArray[np.int8], tests: NDArray[np.int32]
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
