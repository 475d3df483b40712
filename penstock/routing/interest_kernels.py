"""A k-d tree over the boxes of many interests: the fast gear of the interest index.

A box over D dimensions is a point with 2 D codes: its low ends, then its high ends. "Meets",
"contains" and "lies within" all say that some of these codes are small enough and others large
enough, so every query is a range query over the 2 D codes. Nodes are in preorder and `skip[i]` is
the node after the subtree of i: a walk needs no stack. Each node stores the smallest and the
largest of each code below it and the links of its boxes; a walk for links skips subtrees whose
links it has already found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from penstock.kernels.compiled import njit
from penstock.kernels.trees import select_place

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]

LEAF_BOXES = 8
"""Maximum boxes in a leaf: with three dimensions, 8 boxes are three cache lines."""

_FAR = np.int64(1 << 24)
"""Code of unbounded ends when spreads are compared: beyond all codes of a few million keys, but not
so far that a single one dominates."""


class Tree(NamedTuple):
    boxes: Codes
    """One row of 2 D codes per box, in the order of the tree."""
    order: Ints
    """By row of `boxes`: the number of the box in the input."""
    links: Words
    """One row of bits per box: its links."""
    skip: Ints
    first: Ints
    last: Ints
    """A node's boxes are boxes[first:last]."""
    smallest: Codes
    largest: Codes
    node_links: Words
    """The links of all boxes below a node."""
    alive: Flags
    """By row of `boxes`: False for a removed box, which is no longer found."""
    is_whole: Flags
    """By node: whether no box below it was removed."""


@njit
def _widest(smallest: Codes, largest: Codes, columns: Ints) -> int:
    """Of these columns, the one with the widest spread."""
    widest, spread = 0, np.int64(-1)
    for i in range(columns.shape[0]):
        column = int(columns[i])
        high = min(np.int64(largest[column]), _FAR)
        if high - smallest[column] > spread:
            widest, spread = column, high - smallest[column]
    return widest


@njit
def plant(boxes: Codes, links: Words, split_by: Ints) -> Tree:
    """Build a tree. `split_by` are the columns that queries bound, so that splitting by them helps.

    `stack` holds at most one pending sibling per level; halving gives fewer than 60 levels.
    """
    count, columns = boxes.shape
    order = np.arange(count)
    most = 4 * (count // LEAF_BOXES + 1) + 1  # halving keeps each leaf at least half full
    skip, first, last = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    smallest, largest = np.empty((most, columns), np.int32), np.empty((most, columns), np.int32)
    stack = np.empty((64, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, count
    depth, node = 1, 0
    while depth > 0:
        depth -= 1
        begin, end = stack[depth, 0], stack[depth, 1]
        first[node], last[node] = begin, end
        for column in range(columns):
            low = high = boxes[order[begin], column]
            for i in range(begin + 1, end):
                code = boxes[order[i], column]
                low, high = min(low, code), max(high, code)
            smallest[node, column], largest[node, column] = low, high
        if end - begin > LEAF_BOXES:
            column = _widest(smallest[node], largest[node], split_by)
            middle = (begin + end) >> 1
            select_place(boxes, order, column, begin, end - 1, middle)
            stack[depth, 0], stack[depth, 1] = middle, end
            stack[depth + 1, 0], stack[depth + 1, 1] = begin, middle
            depth += 2
        node += 1
    words = links.shape[1]
    node_links = np.zeros((node, words), np.uint64)
    placed = links[order]
    for i in range(node - 1, -1, -1):
        if last[i] - first[i] <= LEAF_BOXES:
            skip[i] = i + 1
            for place in range(first[i], last[i]):
                node_links[i] |= placed[place]
        else:
            right = skip[i + 1]
            skip[i] = skip[right]
            node_links[i] = node_links[i + 1] | node_links[right]
    return Tree(
        boxes[order],
        order,
        placed,
        skip[:node].copy(),
        first[:node].copy(),
        last[:node].copy(),
        smallest[:node].copy(),
        largest[:node].copy(),
        node_links,
        np.ones(count, np.bool_),
        np.ones(node, np.bool_),
    )


@njit
def strike_out(tree: Tree, place: int) -> None:
    """Mark the box in row `place` as removed, and the nodes above it as not whole."""
    tree.alive[place] = False
    node, end = 0, tree.skip.shape[0]
    while node < end:
        if tree.first[node] <= place < tree.last[node]:
            tree.is_whole[node] = False
            node += 1
        else:
            node = tree.skip[node]


@njit
def _is_out(low: Codes, high: Codes, at_least: Codes, at_most: Codes) -> bool:
    for column in range(low.shape[0]):
        if high[column] < at_least[column] or low[column] > at_most[column]:
            return True
    return False


@njit
def _is_in(low: Codes, high: Codes, at_least: Codes, at_most: Codes) -> bool:
    for column in range(low.shape[0]):
        if low[column] < at_least[column] or high[column] > at_most[column]:
            return False
    return True


@njit
def _adds(found: Words, links: Words) -> bool:
    for word in range(found.shape[0]):  # noqa: SIM110, numba compiles no generators
        if links[word] & ~found[word]:
            return True
    return False


@njit
def links_within(tree: Tree, at_least: Codes, at_most: Codes, asked: Ints, found: Words) -> None:
    """For each row q of the ranges: add the links of boxes within it to `found[asked[q]]`."""
    end = tree.skip.shape[0]
    for q in range(at_least.shape[0]):
        low, high, links = at_least[q], at_most[q], found[asked[q]]
        node = 0
        while node < end:
            skip = tree.skip[node]
            if not _adds(links, tree.node_links[node]) or _is_out(
                tree.smallest[node], tree.largest[node], low, high
            ):
                node = skip
                continue
            if tree.is_whole[node] and _is_in(tree.smallest[node], tree.largest[node], low, high):
                links |= tree.node_links[node]
                node = skip
                continue
            if skip == node + 1:
                for place in range(tree.first[node], tree.last[node]):
                    box = tree.boxes[place]
                    if tree.alive[place] and _is_in(box, box, low, high):
                        links |= tree.links[place]
            node += 1
    return


@njit
def _is_out_of_all(low: Codes, high: Codes, at_least: Codes, at_most: Codes) -> bool:
    for q in range(at_least.shape[0]):  # noqa: SIM110, numba compiles no generators
        if not _is_out(low, high, at_least[q], at_most[q]):
            return False
    return True


@njit
def _is_in_one(box: Codes, at_least: Codes, at_most: Codes) -> bool:
    for q in range(at_least.shape[0]):  # noqa: SIM110, numba compiles no generators
        if _is_in(box, box, at_least[q], at_most[q]):
            return True
    return False


@njit
def boxes_within(tree: Tree, at_least: Codes, at_most: Codes, links: Words, most: int) -> Ints:
    """The numbers of the boxes that lie within one of the ranges (a row each) and belong to one of
    the links, each once: all, or the first `most` found."""
    found = np.empty(64, np.int64)
    used, node, end = 0, 0, tree.skip.shape[0]
    nothing = np.zeros_like(links)
    while node < end and used < most:
        skip = tree.skip[node]
        if not _adds(nothing, tree.node_links[node] & links) or _is_out_of_all(
            tree.smallest[node], tree.largest[node], at_least, at_most
        ):
            node = skip
            continue
        if skip == node + 1:
            for place in range(tree.first[node], tree.last[node]):
                is_wanted = tree.alive[place] and _adds(nothing, tree.links[place] & links)
                if is_wanted and _is_in_one(tree.boxes[place], at_least, at_most):
                    if used == found.shape[0]:
                        grown = np.empty(2 * used, np.int64)
                        grown[:used] = found
                        found = grown
                    found[used] = tree.order[place]
                    used += 1
        node += 1
    return found[: min(used, most)]
