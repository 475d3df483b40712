"""Kernels of the embedding graph: subset search over label sets, and the embedding test.

The test works on sets of query nodes as bit masks: from the leaves of a view up, the nodes that an
image is possible for; from the root down, those that some embedding uses. On trees this is exact.
The same masks give the coverage.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.matching.compiled import njit

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
def embed(view: Any, query: Any, packed: Any, navigation: Any, images: Any) -> Any:
    """The attributes of a query that a view covers; 0 if it does not embed. `images`: 16 words."""
    starts, labels, parents = packed.starts, packed.labels, packed.parents
    is_deep, tests = packed.is_deep, packed.tests
    at, base = starts[view], starts[query]
    size, count = starts[view + 1] - at, starts[query + 1] - base
    for node in range(size):
        images[node] = np.uint32(0xFFFF)
    for node in range(size - 1, -1, -1):
        label, test, allowed = labels[at + node], tests[at + node], images[node]
        mask = np.uint32(0)
        for place in range(count):
            if labels[base + place] == label and (test == 0 or test == tests[base + place]):
                mask |= _ONE << np.uint32(place)
        mask &= allowed
        if node == 0 and not is_deep[at]:
            mask &= np.uint32(0) if is_deep[base] else _ONE
        if mask == 0:
            return np.uint64(0)
        images[node] = mask
        if node > 0:
            above = np.uint32(0)
            for place in range(1, count):
                if (mask >> np.uint32(place)) & _ONE:
                    if is_deep[at + node]:
                        above |= np.uint32(packed.above[base + place])
                    elif not is_deep[base + place]:
                        above |= _ONE << np.uint32(parents[base + place])
            images[parents[at + node]] &= above
    return _coverage(at, size, base, count, packed, navigation, images)


@njit
def _coverage(
    at: Any, size: Any, base: Any, count: Any, packed: Any, navigation: Any, images: Any
) -> Any:
    """From the root down: keep images with an image of the parent above them, and collect."""
    ids = np.uint64(0)
    vals = np.uint64(0)
    conts = np.uint64(0)
    checked = np.uint64(0)
    for node in range(size):
        mask = images[node]
        if node > 0:
            over, kept = images[packed.parents[at + node]], np.uint32(0)
            for place in range(1, count):
                if (mask >> np.uint32(place)) & _ONE:
                    if packed.is_deep[at + node]:
                        if np.uint32(packed.above[base + place]) & over:
                            kept |= _ONE << np.uint32(place)
                    elif not packed.is_deep[base + place]:
                        parent = np.uint32(packed.parents[base + place])
                        if (over >> parent) & _ONE:
                            kept |= _ONE << np.uint32(place)
            mask = kept
            images[node] = mask
        own = np.uint64(mask)
        ids |= own
        if packed.tests[at + node] != 0:
            checked |= own
        if packed.returns[at + node] & 1:
            vals |= own
            checked |= own
        if packed.returns[at + node] & 2:
            conts |= own
            checked |= own
            if navigation:
                vals |= own
                for place in range(count):
                    if (mask >> np.uint32(place)) & _ONE:
                        under = np.uint64(packed.below[base + place])
                        ids |= under
                        vals |= under
                        conts |= under
                        checked |= under
    return ids | (vals << np.uint64(16)) | (conts << np.uint64(32)) | (checked << np.uint64(48))


@njit
def embed_queries(queries: Any, packed: Any, groups: Any, navigation: Any) -> Any:
    """For each query the views that embed in it, what they cover, and whether it embeds in them.

    Views are found by label sets: a set that is contained in a query's is in the bucket of one of
    the query's labels. Also returned: how many sets and how many views were tested.
    """
    capacity = 1 << 16
    feeders = np.empty(capacity, np.int32)
    coverage = np.empty(capacity, np.uint64)
    is_mutual = np.empty(capacity, np.bool_)
    counts = np.zeros(len(queries), np.int64)
    images = np.empty(16, np.uint32)
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
                    mask = embed(view, query, packed, navigation, images)
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
                    is_mutual[found] = (
                        other == group and embed(query, view, packed, navigation, images) != 0
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
    """Subset search by rarest-label buckets: subsets found, sets looked at."""
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
    """Subset search in a set trie: subsets found, trie nodes looked at.

    Of each trie node its label, first child, next sibling, and whether a set ends there.
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
