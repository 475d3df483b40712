"""The embedding graph of many views: time by size, and subset search two ways."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from penstock.documents.patterns import TreePattern
from penstock.lab.benchmarks._measuring import Result, peak_megabytes, progress, show
from penstock.lab.workloads import xmark
from penstock.views.embedding_graph import label_groups, remove_cycles, tree_embedding_graph
from penstock.views.embedding_kernel import (
    LabelGroups,
    count_bucket_subsets,
    count_trie_subsets,
)
from penstock.views.packed_patterns import PackedPatterns, pack_patterns

EXAMPLES = """
  penstock bench embeddings
  penstock bench embeddings --views 100000 --threads 1 --json
  penstock bench embeddings --views 30000 --spark
"""
COLUMNS = (
    "views",
    "label_sets",
    "subsets",
    "buckets_looked_at",
    "buckets_cpu_s",
    "trie_looked_at",
    "trie_cpu_s",
    "embedding_tests",
    "edges",
    "edges_removed",
    "graph_cpu_s",
    "graph_s",
    "spark_s",
)


def embeddings(
    views: Annotated[
        list[int] | None, typer.Option(help="How many views; may be repeated.", min=1)
    ] = None,
    threads: Annotated[int, typer.Option(help="Threads of the graph.", min=1)] = 2,
    spark: Annotated[
        bool, typer.Option("--spark", help="Also build the graph as a Spark job.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Chooses views.")] = 1,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure subset search over label sets, and the whole embedding graph.

    `buckets` store each label set under its rarest label; `trie` is the paper's set trie. Both find
    the same subsets for every view's label set.
    """
    sizes = views or [10_000, 30_000]
    with progress("generating views"):
        patterns = xmark.unique_views(max(sizes), seed)
    tree_embedding_graph(pack_patterns(patterns[:50]), threads=threads)  # compile
    results: list[Result] = []
    for size in sizes:
        with progress(f"{size:,} views"):
            results.append(_measure(pack_patterns(patterns[:size]), threads))
            if spark:
                results[-1]["spark_s"] = _spark_seconds(patterns[:size], results[-1]["edges"])
    show(results, json, COLUMNS, threads=threads, peak_megabytes=peak_megabytes())


def _measure(packed: PackedPatterns, threads: int) -> Result:
    groups = label_groups(packed)
    queries = groups.of_view
    trie = _set_trie(groups)
    count_bucket_subsets(queries[:1], groups)
    count_trie_subsets(queries[:1], groups.bits, *trie)
    began = time.process_time()
    found, by_buckets = count_bucket_subsets(queries, groups)
    bucket_s = time.process_time() - began
    began = time.process_time()
    same, by_trie = count_trie_subsets(queries, groups.bits, *trie)
    trie_s = time.process_time() - began
    if found != same:
        raise AssertionError("buckets and trie disagree")
    began, wall = time.process_time(), time.perf_counter()
    graph = tree_embedding_graph(packed, navigation=False, threads=threads)
    kept = remove_cycles(graph)
    return {
        "views": packed.views,
        "label_sets": len(groups.bits),
        "subsets": found,
        "buckets_looked_at": by_buckets,
        "buckets_cpu_s": bucket_s,
        "trie_looked_at": by_trie,
        "trie_cpu_s": trie_s,
        "embedding_tests": graph.views_tested,
        "edges": graph.edges,
        "edges_removed": graph.edges - kept.edges,
        "graph_cpu_s": time.process_time() - began,
        "graph_s": time.perf_counter() - wall,
    }


def _spark_seconds(patterns: Sequence[TreePattern], edges: object) -> float:
    """Seconds of the Spark job on this machine, without starting Spark."""
    from penstock.history.embedding_job import embedding_edges, views_frame
    from penstock.pipeline.session import spark_session

    session = spark_session("penstock-embeddings")
    embedding_edges(views_frame(session, patterns[:50]), navigation=False).count()  # compile
    began = time.perf_counter()
    found = embedding_edges(views_frame(session, patterns), navigation=False).count()
    if found != edges:
        raise AssertionError("the Spark job found another graph")
    return time.perf_counter() - began


def _set_trie(groups: LabelGroups) -> tuple[NDArray[np.int64], ...]:
    """A trie of all label sets, rare labels first: label, first child, next sibling, whether a set
    ends; by node."""
    bits = np.unpackbits(groups.bits.view(np.uint8), axis=1, bitorder="little")
    order = np.argsort(bits.sum(axis=0), kind="stable")
    label, first, after, ends = [-1], [-1], [-1], [0]
    known: dict[tuple[int, int], int] = {}
    for row in bits:
        node = 0
        for one in order[row[order] > 0].tolist():
            child = known.get((node, one))
            if child is None:
                child = known[node, one] = len(label)
                label.append(one)
                first.append(-1)
                after.append(first[node])
                ends.append(0)
                first[node] = child
            node = child
        ends[node] = 1
    return tuple(np.array(one, np.int64) for one in (label, first, after, ends))


if __name__ == "__main__":
    typer.run(embeddings)
