"""The kernel of Algorithm 4: covers of every query by views that embed in it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from penstock.kernels.compiled import njit, popcount

MAX_COVER = 10
"""Views in a rewriting; patterns have at most 16 nodes, and every view must add something."""
_KEYS = 64 * 17 + 17
"""Number of distinct (interest, nodes) pairs."""


class CoverLimits(NamedTuple):
    """Limits of the search for covers, per query."""

    rewritings: int
    per_first: int
    """Rewritings that begin with the same view."""
    expansions: int
    """Maximum number of partial covers that are extended."""
    spreads: bool
    """Break ties at random, seeded by the query's number."""
    node_bits: int
    """The bits of one node's attributes are this far apart."""


@njit
def touched_nodes(gain: Any, node_bits: Any) -> Any:
    """How many query nodes have an attribute in a mask."""
    folded = gain
    shift = node_bits
    while shift < 64:
        folded |= gain >> np.uint64(shift)
        shift += node_bits
    if node_bits < 64:
        folded &= (np.uint64(1) << np.uint64(node_bits)) - np.uint64(1)
    return popcount(folded)


@njit
def _order_candidates(masks: Any, count: Any, missing: Any, node_bits: Any, out: Any) -> Any:
    """Candidates that cover something missing, the most interesting first; returns how many.

    Interest is the number of missing attributes that a view covers, then the number of their nodes.
    A counting sort is stable for equal candidates.
    """
    tally = np.zeros(_KEYS, np.int64)
    keys = np.empty(count, np.int64)
    ordered = 0
    for place in range(count):
        gain = masks[place] & missing
        keys[place] = -1
        if gain != 0:
            nodes = min(16, touched_nodes(gain, node_bits))
            keys[place] = _KEYS - 1 - (popcount(gain) * 17 + nodes)
            tally[keys[place]] += 1
            ordered += 1
    total = 0
    for key in range(_KEYS):
        here = tally[key]
        tally[key] = total
        total += here
    for place in range(count):
        if keys[place] >= 0:
            out[tally[keys[place]]] = place
            tally[keys[place]] += 1
    return ordered


@njit
def _minimise(cover: Any, length: Any, masks: Any, demands: Any) -> Any:
    """Drop redundant views, the first ones first; sort; returns the new length."""
    at = 0
    while at < length and length > 1:
        covered = np.uint64(0)
        for other in range(length):
            if other != at:
                covered |= masks[cover[other]]
        if covered & demands == demands:
            for other in range(at, length - 1):
                cover[other] = cover[other + 1]
            length -= 1
        else:
            at += 1
    for place in range(1, length):
        moved, other = cover[place], place - 1
        while other >= 0 and cover[other] > moved:
            cover[other + 1] = cover[other]
            other -= 1
        cover[other + 1] = moved
    return length


@njit
def _is_known(cover: Any, length: Any, known: Any, lengths: Any, count: Any) -> Any:
    for other in range(count):
        if lengths[other] == length:
            place = 0
            while place < length and known[other, place] == cover[place]:
                place += 1
            if place == length:
                return True
    return False


@njit
def _shuffle(views: Any, masks: Any, count: Any, seed: Any) -> None:
    """A random order that depends only on the query, so that the result does not depend on
    threads."""
    state = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(12345)
    for place in range(count - 1, 0, -1):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        other = np.int64(state % np.uint64(place + 1))
        views[place], views[other] = views[other], views[place]
        masks[place], masks[other] = masks[other], masks[place]


@njit
def _search(masks: Any, count: Any, demands: Any, limits: Any, known: Any, lengths: Any) -> Any:
    """Depth-first search for covers; fills `known` and `lengths`, and returns how many there
    are."""
    order = np.empty((MAX_COVER, count), np.int32)
    size = np.full(MAX_COVER, -1, np.int64)
    at = np.zeros(MAX_COVER, np.int64)
    done = np.zeros(MAX_COVER + 1, np.uint64)
    picks = np.empty(MAX_COVER, np.int32)
    cover = np.empty(MAX_COVER, np.int32)
    found = expansions = depth = with_first = 0
    while depth >= 0 and found < limits.rewritings:
        if size[depth] < 0:
            expansions += 1
            if expansions > limits.expansions:
                break
            missing = demands & ~done[depth]
            size[depth] = _order_candidates(masks, count, missing, limits.node_bits, order[depth])
            at[depth] = 0
        if at[depth] == size[depth] or (depth > 0 and with_first >= limits.per_first):
            size[depth] = -1
            depth -= 1
            continue
        pick = order[depth, at[depth]]
        at[depth] += 1
        if depth == 0:
            with_first = 0
        picks[depth] = pick
        covered = done[depth] | masks[pick]
        if covered & demands == demands:
            cover[: depth + 1] = picks[: depth + 1]
            length = _minimise(cover, depth + 1, masks, demands)
            if not _is_known(cover, length, known, lengths, found):
                known[found, :length] = cover[:length]
                lengths[found] = length
                found += 1
                with_first += 1
        elif depth + 1 < MAX_COVER:
            depth += 1
            done[depth] = covered
            size[depth] = -1
    return found


@njit
def find_covers(
    first: Any, last: Any, starts: Any, feeders: Any, coverage: Any, demands: Any, limits: Any
) -> Any:
    """Rewritings of the queries from `first` to before `last`."""
    most = 0
    for query in range(first, last):
        most = max(most, starts[query + 1] - starts[query])
    views = np.empty(most, np.int32)
    masks = np.empty(most, np.uint64)
    known = np.empty((limits.rewritings, MAX_COVER), np.int32)
    lengths = np.empty(limits.rewritings, np.int64)
    counts = np.zeros(last - first, np.int64)
    all_lengths = np.empty((last - first) * limits.rewritings, np.int64)
    all_views = np.empty((last - first) * limits.rewritings * MAX_COVER, np.int32)
    rewritings = inputs = 0
    for query in range(first, last):
        count, union = 0, np.uint64(0)
        for edge in range(starts[query], starts[query + 1]):
            views[count], masks[count] = feeders[edge], coverage[edge]
            union |= coverage[edge]
            count += 1
        if count == 0 or union & demands[query] != demands[query]:
            continue
        if limits.spreads:
            _shuffle(views, masks, count, query + 1)
        found = _search(masks, count, demands[query], limits, known, lengths)
        counts[query - first] = found
        for cover in range(found):
            all_lengths[rewritings] = lengths[cover]
            rewritings += 1
            for place in range(lengths[cover]):
                all_views[inputs] = views[known[cover, place]]
                inputs += 1
    return counts, all_lengths[:rewritings].copy(), all_views[:inputs].copy()
