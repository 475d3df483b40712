"""Walks over the diagrams of conjunctions, for covering.

A conjunction is a chain of nodes: its topmost predicate, then the rest, which other conjunctions
share. Values of nodes are cached per query: `stamps[node]` is the query for which `values[node]`
was computed, so nothing needs to be cleared between queries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.kernels.compiled import inlined, njit

Ints32 = npt.NDArray[np.int32]
Ints64 = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]

TRUE = 1


class Diagrams(NamedTuple):
    variables: Ints32
    highs: Ints32
    """By node: its predicate, and the node of the remaining conjunction."""
    roots: Ints32
    """By slot: the root of a subscription; 0 if the slot is free."""
    attributes: Words
    """By slot: a bit for each attribute that is tested (bits are shared beyond 64 attributes)."""


class Remembered(NamedTuple):
    values: Bytes
    stamps: Ints64
    path: Ints32
    """Scratch for the nodes of a chain; as long as there are nodes, and a chain repeats none."""


@inlined
def _value(
    variables: Ints32,
    highs: Ints32,
    values: Bytes,
    stamps: Ints64,
    path: Ints32,
    node: int,
    holds: Bytes,
    stamp: int,
) -> int:
    """Whether all predicates of a chain hold. Tests the topmost first, and stops at the first that
    does not hold. Takes arrays as separate arguments: unpacking named tuples of arrays once per
    root took as long as the walk itself."""
    depth, value = 0, 1
    while node > TRUE:
        if stamps[node] == stamp:
            value = values[node]
            break
        path[depth] = node
        depth += 1
        if not holds[variables[node]]:
            value = 0
            break
        node = highs[node]
    for i in range(depth - 1, -1, -1):
        values[path[i]] = value
        stamps[path[i]] = stamp
    return value


@njit
def relations_in_one_pass(
    diagrams: Diagrams,
    left: Bytes,
    right: Bytes,
    attributes: np.uint64,
    knowns: tuple[Remembered, Remembered],
    stamp: int,
    found: Ints64,
) -> tuple[int, int]:
    """Figure 7: the slot that covers a new conjunction, or -1; and the number of slots that it
    covers, written to `found`, which needs one entry per slot. Once it covers one, nothing can
    cover it (in a table without covered members)."""
    variables, highs, roots, own = diagrams
    right_values, right_stamps, right_path = knowns[0]
    left_values, left_stamps, left_path = knowns[1]
    is_right_open, used = True, 0
    for slot in range(roots.shape[0]):
        root = roots[slot]
        if root == 0:
            continue
        # A conjunction covers another one only if the other tests all of its attributes.
        if (
            is_right_open
            and not own[slot] & ~attributes
            and _value(variables, highs, right_values, right_stamps, right_path, root, right, stamp)
        ):
            return slot, 0
        if attributes & ~own[slot]:
            continue
        if _value(variables, highs, left_values, left_stamps, left_path, root, left, stamp):
            is_right_open = False
            found[used] = slot
            used += 1
    return -1, used


@njit
def first_cover(
    diagrams: Diagrams, right: Bytes, attributes: np.uint64, known: Remembered, stamp: int
) -> int:
    """The first of two separate passes: a slot that covers a new conjunction, or -1."""
    variables, highs, roots, own = diagrams
    values, stamps, path = known
    for slot in range(roots.shape[0]):
        root = roots[slot]
        is_asked = root != 0 and not own[slot] & ~attributes
        if is_asked and _value(variables, highs, values, stamps, path, root, right, stamp):
            return slot
    return -1


@njit
def all_covered(
    diagrams: Diagrams,
    left: Bytes,
    attributes: np.uint64,
    known: Remembered,
    stamp: int,
    found: Ints64,
) -> int:
    """The second pass: write the slots that a new conjunction covers; returns how many."""
    variables, highs, roots, own = diagrams
    values, stamps, path = known
    used = 0
    for slot in range(roots.shape[0]):
        root = roots[slot]
        is_asked = root != 0 and not attributes & ~own[slot]
        if is_asked and _value(variables, highs, values, stamps, path, root, left, stamp):
            found[used] = slot
            used += 1
    return used
