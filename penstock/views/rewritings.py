"""Rewritings: the sets of views that can feed a view (Algorithms 1 and 4).

A rewriting is a cover: views that embed in the query and together cover what it demands. Covers are
found depth first, the most interesting view next, until there are k of them. Ties are broken as
published (the view that covers attributes of most nodes, then the first), or by *spreading*: equal
views are shuffled, and the number of rewritings that begin with the same view is limited. With
published ties the same few views feed all others, and capacity limits cannot be met.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.documents.patterns import MAX_PATTERN_NODES
from penstock.views.embedding_graph import EmbeddingGraph, run_chunks
from penstock.views.language import MASK_BITS
from penstock.views.rewriting_kernel import MAX_COVER, CoverLimits, find_covers

CHUNK_QUERIES = 500
TREE_NODE_BITS = MAX_PATTERN_NODES
PLAIN_NODE_BITS = MASK_BITS
"""For languages without nodes: every attribute counts separately."""


def published_limits(rewritings: int = 30, node_bits: int = TREE_NODE_BITS) -> CoverLimits:
    return CoverLimits(rewritings, rewritings, 400, False, node_bits)


def spreading_limits(rewritings: int = 30, node_bits: int = TREE_NODE_BITS) -> CoverLimits:
    return CoverLimits(rewritings, rewritings, 400, True, node_bits)


@dataclass(frozen=True, slots=True)
class RewritabilityGraph:
    """Rewritings by view. Those of view v are `starts[v]` to `starts[v + 1]`; rewriting r joins
    `inputs[input_starts[r] : input_starts[r + 1]]`. Every view can be fed by the source too."""

    starts: NDArray[np.int64]
    input_starts: NDArray[np.int64]
    inputs: NDArray[np.int32]

    @property
    def views(self) -> int:
        return len(self.starts) - 1

    @property
    def rewritings(self) -> int:
        return len(self.input_starts) - 1

    @property
    def is_rewritable(self) -> NDArray[np.bool_]:
        return np.diff(self.starts) > 0

    def targets(self) -> NDArray[np.int64]:
        """The view that each rewriting feeds."""
        return np.repeat(np.arange(self.views), np.diff(self.starts))

    def inputs_of(self, rewriting: int) -> tuple[int, ...]:
        first, last = self.input_starts[rewriting], self.input_starts[rewriting + 1]
        return tuple(self.inputs[first:last].tolist())


def rewritability_graph(
    graph: EmbeddingGraph, limits: CoverLimits, threads: int = 2
) -> RewritabilityGraph:
    """At most k rewritings of every view, over an embedding graph without cycles."""
    chunks = [
        (first, min(graph.views, first + CHUNK_QUERIES))
        for first in range(0, graph.views, CHUNK_QUERIES)
    ] or [(0, 0)]
    parts = run_chunks(
        lambda chunk: find_covers(
            chunk[0], chunk[1], graph.starts, graph.feeders, graph.coverage, graph.demands, limits
        ),
        chunks,
        threads,
    )
    counts, lengths, inputs = (
        np.concatenate([part[column] for part in parts]) for column in range(3)
    )
    zero = np.zeros(1, np.int64)
    return RewritabilityGraph(
        np.concatenate([zero, np.cumsum(counts)]),
        np.concatenate([zero, np.cumsum(lengths)]),
        inputs,
    )


def covers_of(
    candidates: Sequence[tuple[int, int]], demands: int, limits: CoverLimits
) -> Iterator[tuple[int, ...]]:
    """Rewritings one by one, on demand: the plain gear, in the order of the kernel.

    Candidates are views with their coverage. Ties are broken by their order.
    """
    views = [view for view, _ in candidates]
    masks = [mask for _, mask in candidates]
    seen: set[tuple[int, ...]] = set()
    expansions = with_first = 0

    def extend(picks: tuple[int, ...], done: int) -> Iterator[tuple[int, ...]]:
        nonlocal expansions, with_first
        expansions += 1
        if expansions > limits.expansions:
            return
        missing = demands & ~done
        for pick in _most_interesting(masks, missing, limits.node_bits):
            if not picks:
                with_first = 0
            elif with_first >= limits.per_first:
                return
            if expansions > limits.expansions:
                return
            covered = done | masks[pick]
            if covered & demands == demands:
                cover = _minimal_cover((*picks, pick), masks, demands)
                if cover not in seen:
                    seen.add(cover)
                    with_first += 1
                    yield tuple(views[place] for place in cover)
            elif len(picks) + 1 < MAX_COVER:
                yield from extend((*picks, pick), covered)

    for number, cover in enumerate(extend((), 0)):
        if number == limits.rewritings:
            return
        yield cover


def _most_interesting(masks: Sequence[int], missing: int, node_bits: int) -> list[int]:
    def interest(place: int) -> tuple[int, int]:
        gain = masks[place] & missing
        return (-gain.bit_count(), -min(16, _touched(gain, node_bits)))

    return sorted((p for p in range(len(masks)) if masks[p] & missing), key=interest)


def _touched(gain: int, node_bits: int) -> int:
    folded = 0
    while gain:
        folded |= gain & ((1 << node_bits) - 1)
        gain >>= node_bits
    return folded.bit_count()


def _minimal_cover(cover: tuple[int, ...], masks: Sequence[int], demands: int) -> tuple[int, ...]:
    left = list(cover)
    for place in cover:
        others = [other for other in left if other != place]
        covered = 0
        for other in others:
            covered |= masks[other]
        if others and covered & demands == demands:
            left = others
    return tuple(sorted(left))
