"""The embedding graph: which views embed in which, and what they cover (Algorithm 3).

Built for any language of views through its interface, or by kernels and two threads for tree
patterns; both give the same graph. Embeddings compose, so views that embed in each other form
cliques; an order of the views removes every cycle, and no order removes fewer edges.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from penstock.views.embedding_kernel import LabelGroups, embed_queries
from penstock.views.extras import load_igraph
from penstock.views.label_sets import LabelBuckets
from penstock.views.language import ViewLanguage
from penstock.views.packed_patterns import LABEL_BITS, PackedPatterns

V = TypeVar("V")
CHUNK_QUERIES = 1_000
"""Queries per kernel call; small enough for two threads to finish together."""


@dataclass(frozen=True, slots=True)
class EmbeddingGraph:
    """Edges by query: the feeders of query q are at `starts[q]` to `starts[q + 1]`."""

    starts: NDArray[np.int64]
    feeders: NDArray[np.int32]
    coverage: NDArray[np.uint64]
    is_mutual: NDArray[np.bool_]
    """Whether the query embeds in the feeder too."""
    demands: NDArray[np.uint64]
    sets_tested: int = 0
    views_tested: int = 0

    @property
    def views(self) -> int:
        return len(self.starts) - 1

    @property
    def edges(self) -> int:
        return len(self.feeders)

    def queries(self) -> NDArray[np.int32]:
        """The query of each edge."""
        return np.repeat(np.arange(self.views, dtype=np.int32), np.diff(self.starts))

    def without(self, removed: NDArray[np.bool_]) -> EmbeddingGraph:
        """The graph without some of its edges."""
        kept = ~removed
        counts = np.bincount(self.queries()[kept], minlength=self.views)
        return EmbeddingGraph(
            _offsets(counts),
            self.feeders[kept],
            self.coverage[kept],
            self.is_mutual[kept],
            self.demands,
            self.sets_tested,
            self.views_tested,
        )


def embedding_graph(views: Sequence[V], language: ViewLanguage[V]) -> EmbeddingGraph:
    """The graph of any views, through the interface."""
    labels = [language.labels(view) for view in views]
    index = LabelBuckets(labels)
    feeders: list[int] = []
    coverage: list[int] = []
    counts: list[int] = []
    for query, view in enumerate(views):
        before = len(feeders)
        for other in sorted(index.subsets_of(labels[query])):
            mask = language.embeds(views[other], view) if other != query else 0
            if mask:
                feeders.append(other)
                coverage.append(mask)
        counts.append(len(feeders) - before)
    starts = _offsets(counts)
    pairs = set(zip(feeders, np.repeat(np.arange(len(views)), counts).tolist(), strict=True))
    mutual = [(query, view) in pairs for view, query in _edge_pairs(starts, feeders)]
    return EmbeddingGraph(
        starts,
        np.array(feeders, np.int32),
        np.array(coverage, np.uint64),
        np.array(mutual, np.bool_),
        np.array([language.demands(view) for view in views], np.uint64),
    )


def tree_embedding_graph(
    packed: PackedPatterns,
    *,
    navigation: bool = True,
    threads: int = 2,
    queries: NDArray[np.int64] | None = None,
    is_feeder: NDArray[np.bool_] | None = None,
) -> EmbeddingGraph:
    """The graph of tree patterns, by kernels.

    With `queries` (ascending) and `is_feeder` only the edges from some views to some views.
    """
    groups = label_groups(packed, is_feeder)
    queries = np.arange(packed.views) if queries is None else queries
    chunks = [queries[at : at + CHUNK_QUERIES] for at in range(0, len(queries), CHUNK_QUERIES)]
    parts = run_chunks(
        lambda chunk: embed_queries(chunk, packed, groups, navigation), chunks, threads
    )
    if not parts:
        parts = [embed_queries(queries, packed, groups, navigation)]
    feeders, coverage, is_mutual, counts = (
        np.concatenate([part[column] for part in parts]) for column in range(4)
    )
    by_view = np.zeros(packed.views, np.int64)
    by_view[queries] = counts
    return EmbeddingGraph(
        *(_offsets(by_view), feeders, coverage, is_mutual, packed.demands),
        sets_tested=sum(part[4] for part in parts),
        views_tested=sum(part[5] for part in parts),
    )


def label_groups(packed: PackedPatterns, is_feeder: NDArray[np.bool_] | None = None) -> LabelGroups:
    """Views (or only those that feed) by label set, and label sets by rarest label."""
    bits, of_view = np.unique(packed.label_bits, axis=0, return_inverse=True)
    of_view = of_view.ravel().astype(np.int64)
    members = np.argsort(of_view, kind="stable").astype(np.int32)
    if is_feeder is not None:
        members = members[is_feeder[members]]
    member_start = np.searchsorted(of_view[members], np.arange(len(bits) + 1))
    has_label = np.unpackbits(bits.view(np.uint8), axis=1, bitorder="little").astype(np.int64)
    size = has_label.sum(axis=1)
    frequency = np.where(has_label > 0, has_label.sum(axis=0), np.iinfo(np.int64).max)
    rarest = frequency.argmin(axis=1) if len(bits) else np.zeros(0, np.int64)
    order = np.lexsort((size, rarest))
    bucket_start = np.searchsorted(rarest[order], np.arange(LABEL_BITS + 1))
    return LabelGroups(
        bits,
        size.astype(np.int32),
        of_view,
        member_start.astype(np.int64),
        members,
        bucket_start.astype(np.int64),
        order.astype(np.int32),
    )


def mutual_edges(graph: EmbeddingGraph, priority: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The edges to remove from a transitive graph so that no cycle is left.

    Views on a cycle embed in each other: of each such pair the edge to the view with the higher
    priority is removed, ties by number.
    """
    rank = np.empty(graph.views, np.int64)
    rank[np.lexsort((np.arange(graph.views), -priority))] = np.arange(graph.views)
    removed: NDArray[np.bool_] = graph.is_mutual & (rank[graph.feeders] > rank[graph.queries()])
    return removed


def feedback_edges(graph: EmbeddingGraph) -> NDArray[np.bool_]:
    """The edges that Eades, Lin and Smyth (1993) remove; for graphs that are not transitive."""
    igraph = load_igraph()
    edges = np.stack([graph.feeders, graph.queries()], axis=1)
    built: Any = igraph.Graph(n=graph.views, edges=edges, directed=True)
    removed = np.zeros(graph.edges, np.bool_)
    removed[np.array(built.feedback_arc_set(method="eades"), np.int64)] = True
    return removed


def remove_cycles(graph: EmbeddingGraph) -> EmbeddingGraph:
    """The graph without cycles: of views that embed in each other the richer one feeds."""
    return graph.without(mutual_edges(graph, np.bitwise_count(graph.demands).astype(np.int64)))


def run_chunks(work: Any, chunks: Sequence[Any], threads: int) -> list[Any]:
    """Results of kernels that release the GIL, in order; each thread takes the next chunk."""
    results: list[Any] = [None] * len(chunks)
    failures: list[BaseException] = []
    pending = iter(range(len(chunks)))
    lock = threading.Lock()

    def run() -> None:
        while not failures:
            with lock:
                number = next(pending, None)
            if number is None:
                return
            try:
                results[number] = work(chunks[number])
            except BaseException as error:  # noqa: BLE001 - raised again by the caller's thread
                failures.append(error)

    workers = [threading.Thread(target=run) for _ in range(min(threads, len(chunks)))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]
    return results


def _offsets(counts: Any) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def _edge_pairs(starts: NDArray[np.int64], feeders: Sequence[int]) -> list[tuple[int, int]]:
    queries = np.repeat(np.arange(len(starts) - 1), np.diff(starts)).tolist()
    return list(zip(feeders, queries, strict=True))
