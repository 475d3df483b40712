"""The embedding graph as a Spark job is the one of a single process."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock.documents.patterns import TreePattern
from penstock.history.embedding_job import (
    embedding_edges,
    group_embedder,
    spark_embedding_graph,
    views_frame,
)
from penstock.lab.workloads import xmark
from penstock.views.embedding_graph import EmbeddingGraph, remove_cycles, tree_embedding_graph
from penstock.views.packed_patterns import pack_patterns
from tests.documents.strategies import patterns

Edge = tuple[int, int, int, bool]


def edges_of(graph: EmbeddingGraph) -> set[Edge]:
    return set(
        zip(
            graph.feeders.tolist(),
            graph.queries().tolist(),
            graph.coverage.tolist(),
            graph.is_mutual.tolist(),
            strict=True,
        )
    )


def groups_by_hand(views: list[TreePattern], splits: int) -> dict[tuple[str, int], pa.Table]:
    """The exchange that Spark makes: feeders by rarest label, queries by every label."""
    counts = Counter(label for view in views for label in view.labels)
    rows: dict[tuple[str, int], list[tuple[int, bytes, bool]]] = {}
    for number, view in enumerate(views):
        body = pickle.dumps(view)
        rarest = min(view.labels, key=lambda label: (counts[label], label))
        for split in range(splits):
            rows.setdefault((rarest, split), []).append((number, body, True))
        for label in view.labels:
            rows.setdefault((label, number % splits), []).append((number, body, False))
    return {
        key: pa.table(dict(zip(("view", "pattern", "feeds"), zip(*own, strict=True), strict=True)))
        for key, own in rows.items()
    }


@given(st.lists(patterns(most=5), min_size=1, max_size=10), st.booleans(), st.integers(1, 3))
def test_groups_together_have_every_edge_once(
    views: list[TreePattern], navigation: bool, splits: int
) -> None:
    embed = group_embedder(navigation)
    parts = [embed(group) for group in groups_by_hand(views, splits).values()]
    found = [row for part in parts for row in part.to_pylist()]
    whole = tree_embedding_graph(pack_patterns(views), navigation=navigation)
    edges = [
        (row["feeder"], row["query"], row["coverage"] % 2**64, row["is_mutual"]) for row in found
    ]
    assert len(edges) == len(set(edges))
    assert set(edges) == edges_of(whole)
    kept = {edge for edge, row in zip(edges, found, strict=True) if row["is_kept"]}
    assert kept == edges_of(remove_cycles(whole))


def test_the_job_on_spark(spark: SparkSession) -> None:
    views = xmark.unique_views(250, seed=5)
    views += views[:20]  # views at several sites embed in each other
    whole = tree_embedding_graph(pack_patterns(views), navigation=False)
    found = spark_embedding_graph(spark, views, navigation=False, splits=2)
    assert whole.edges > 300
    assert edges_of(found) == edges_of(whole)
    assert found.demands.tolist() == whole.demands.tolist()
    kept = embedding_edges(views_frame(spark, views), navigation=False).where("is_kept").count()
    assert kept == remove_cycles(whole).edges


def test_the_graph_of_some_views() -> None:
    packed = pack_patterns(xmark.unique_views(200, seed=5))
    is_feeder = np.arange(200) % 3 == 0
    queries = np.flatnonzero(np.arange(200) % 2 == 0)
    part = tree_embedding_graph(packed, queries=queries, is_feeder=is_feeder)
    expected = {
        edge
        for edge in edges_of(tree_embedding_graph(packed))
        if edge[0] % 3 == 0 and edge[1] % 2 == 0
    }
    assert edges_of(part) == expected
    assert expected
