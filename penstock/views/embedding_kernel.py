"""Kernels of the embedding graph: subset search over label sets, and the embedding test.

The test uses bit masks of query nodes: bottom-up, for each view node the possible images; top-down,
those that some embedding uses. On trees this is exact. The same masks give the coverage.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.compiled import njit
from penstock.views.packed_patterns import (
    ABOVE,
    BELOW,
    IS_DEEP,
    LABEL,
    PARENT,
    RETURNS,
    RETURNS_CONT,
    RETURNS_VAL,
    TEST,
)

_ONE = np.uint32(1)


class LabelGroups(NamedTuple):
    """Views by label set, and the sets in buckets by their rarest label, the smallest first."""

    bits: NDArray[np.uint64]
    size: NDArray[np.int32]
    of_view: NDArray[np.int64]
    member_start: NDArray[np.int64]
    members: NDArray[np.int32]
    bucket_start: NDArray[np.int64]
    buckets: NDArray[np.int32]


@njit
def embed(starts: Any, nodes: Any, view: Any, query: Any, navigation: Any, images: Any) -> Any:
    """The attributes of a query that a view covers; 0 if it does not embed. `images`: 16 words."""
    at, base = starts[view], starts[query]
    size, count = starts[view + 1] - at, starts[query + 1] - base
    for node in range(size):
        images[node] = np.uint32(0xFFFF)
    for node in range(size - 1, -1, -1):
        label, test, allowed = nodes[at + node, LABEL], nodes[at + node, TEST], images[node]
        mask = np.uint32(0)
        for place in range(count):
            if nodes[base + place, LABEL] == label and (
                test == 0 or test == nodes[base + place, TEST]
            ):
                mask |= _ONE << np.uint32(place)
        mask &= allowed
        if node == 0 and not nodes[at, IS_DEEP]:
            mask &= np.uint32(0) if nodes[base, IS_DEEP] else _ONE
        if mask == 0:
            return np.uint64(0)
        images[node] = mask
        if node > 0:
            above = np.uint32(0)
            for place in range(1, count):
                if (mask >> np.uint32(place)) & _ONE:
                    if nodes[at + node, IS_DEEP]:
                        above |= np.uint32(nodes[base + place, ABOVE])
                    elif not nodes[base + place, IS_DEEP]:
                        above |= _ONE << np.uint32(nodes[base + place, PARENT])
            images[nodes[at + node, PARENT]] &= above
    return _coverage(nodes, at, size, base, count, navigation, images)


@njit
def _coverage(
    nodes: Any, at: Any, size: Any, base: Any, count: Any, navigation: Any, images: Any
) -> Any:
    """Top-down: keep images with an image of the parent above them, and collect the coverage."""
    ids = np.uint64(0)
    vals = np.uint64(0)
    conts = np.uint64(0)
    checked = np.uint64(0)
    for node in range(size):
        mask = images[node]
        if node > 0:
            mask = _kept_images(nodes, at + node, base, count, mask, images)
            images[node] = mask
        own, returns = np.uint64(mask), nodes[at + node, RETURNS]
        ids |= own
        if nodes[at + node, TEST] != 0 or returns != 0:
            checked |= own
        if returns & RETURNS_VAL:
            vals |= own
        if returns & RETURNS_CONT:
            conts |= own
            if navigation:
                under = np.uint64(0)
                for place in range(count):
                    if (mask >> np.uint32(place)) & _ONE:
                        under |= np.uint64(nodes[base + place, BELOW])
                ids |= under
                vals |= own | under
                conts |= under
                checked |= under
    return ids | (vals << np.uint64(16)) | (conts << np.uint64(32)) | (checked << np.uint64(48))


@njit
def _kept_images(nodes: Any, row: Any, base: Any, count: Any, mask: Any, images: Any) -> Any:
    """The images of a node that have an image of its parent above them."""
    over, kept = images[nodes[row, PARENT]], np.uint32(0)
    for place in range(1, count):
        if (mask >> np.uint32(place)) & _ONE:
            if nodes[row, IS_DEEP]:
                if np.uint32(nodes[base + place, ABOVE]) & over:
                    kept |= _ONE << np.uint32(place)
            elif (
                not nodes[base + place, IS_DEEP]
                and (over >> np.uint32(nodes[base + place, PARENT])) & _ONE
            ):
                kept |= _ONE << np.uint32(place)
    return kept


@njit
def embed_queries(queries: Any, packed: Any, groups: Any, navigation: Any) -> Any:
    """For each query the views that embed in it, what they cover, and whether it embeds in them.

    Views are found by label sets: a set contained in a query's is in the bucket of one of the
    query's labels. Also returns how many sets and how many views were tested.
    """
    capacity = 1 << 16
    feeders = np.empty(capacity, np.int32)
    coverage = np.empty(capacity, np.uint64)
    is_mutual = np.empty(capacity, np.bool_)
    counts = np.zeros(len(queries), np.int64)
    images = np.empty(16, np.uint32)
    starts, nodes = packed.starts, packed.nodes
    found = sets_tested = views_tested = 0
    for row in range(len(queries)):
        query = queries[row]
        group = groups.of_view[query]
        missing_low, missing_high = ~groups.bits[group, 0], ~groups.bits[group, 1]
        before = found
        for label in range(128):
            if not (groups.bits[group, label >> 6] >> np.uint64(label & 63)) & np.uint64(1):
                continue
            for at in range(groups.bucket_start[label], groups.bucket_start[label + 1]):
                other = groups.buckets[at]
                if groups.size[other] > groups.size[group]:
                    break
                sets_tested += 1
                if (groups.bits[other, 0] & missing_low) | (groups.bits[other, 1] & missing_high):
                    continue
                for member in range(groups.member_start[other], groups.member_start[other + 1]):
                    view = groups.members[member]
                    if view == query:
                        continue
                    views_tested += 1
                    mask = embed(starts, nodes, view, query, navigation, images)
                    if mask == 0:
                        continue
                    if found == capacity:
                        capacity *= 2
                        feeders = _grown(feeders, capacity)
                        coverage = _grown(coverage, capacity)
                        is_mutual = _grown(is_mutual, capacity)
                    feeders[found] = view
                    coverage[found] = mask & packed.demands[query]
                    # Views that embed in each other have the same labels.
                    is_mutual[found] = other == group and (
                        embed(starts, nodes, query, view, navigation, images) != 0
                    )
                    found += 1
        counts[row] = found - before
    return (
        *(feeders[:found].copy(), coverage[:found].copy(), is_mutual[:found].copy()),
        *(counts, sets_tested, views_tested),
    )


@njit
def _grown(array: Any, capacity: Any) -> Any:
    larger = np.empty(capacity, array.dtype)
    larger[: len(array)] = array
    return larger


@njit
def count_bucket_subsets(queries: Any, groups: Any) -> Any:
    """Subset search by rarest-label buckets: returns subsets found, sets visited."""
    found = looked_at = 0
    for group in queries:
        missing_low, missing_high = ~groups.bits[group, 0], ~groups.bits[group, 1]
        for label in range(128):
            if not (groups.bits[group, label >> 6] >> np.uint64(label & 63)) & np.uint64(1):
                continue
            for at in range(groups.bucket_start[label], groups.bucket_start[label + 1]):
                other = groups.buckets[at]
                if groups.size[other] > groups.size[group]:
                    break
                looked_at += 1
                if not (
                    (groups.bits[other, 0] & missing_low) | (groups.bits[other, 1] & missing_high)
                ):
                    found += 1
    return found, looked_at


@njit
def count_trie_subsets(
    queries: Any, bits: Any, label: Any, first: Any, after: Any, ends: Any
) -> Any:
    """Subset search in a set trie: returns subsets found, trie nodes visited.

    For each trie node its label, first child, next sibling, and whether a set ends there.
    """
    found = looked_at = 0
    stack = np.empty(1 << 14, np.int64)
    for group in queries:
        stack[0] = 0
        depth = 1
        while depth:
            depth -= 1
            node = stack[depth]
            found += ends[node]
            child = first[node]
            while child >= 0:
                looked_at += 1
                own = label[child]
                if (bits[group, own >> 6] >> np.uint64(own & 63)) & np.uint64(1):
                    stack[depth] = child
                    depth += 1
                child = after[child]
    return found, looked_at
