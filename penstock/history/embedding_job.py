"""The embedding graph of a view set too large for one machine, as a Spark job.

A view that embeds in a query has its rarest label among the query's. So every view is a feeder in
the group of its rarest label, and a query in the groups of all its labels: each pair that can embed
meets in one group, and no task holds more views than one group has. The queries of a group are
split among several tasks, which all get its feeders.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from penstock.documents.patterns import TreePattern
from penstock.views.embedding_graph import EmbeddingGraph, mutual_edges, tree_embedding_graph
from penstock.views.packed_patterns import pack_patterns

EDGE_SCHEMA = "feeder long, query long, coverage long, is_mutual boolean, is_kept boolean"
_ARROW_EDGES = pa.schema(
    [
        *((name, pa.int64()) for name in ("feeder", "query", "coverage")),
        *((name, pa.bool_()) for name in ("is_mutual", "is_kept")),
    ]
)
SPLITS = 4
"""Tasks that share the queries of a group; its feeders are copied to each of them."""
MAX_SPLITS = 1_000


def views_frame(spark: SparkSession, patterns: Sequence[TreePattern]) -> DataFrame:
    """Views with their numbers and labels, as input of the job."""
    return spark.createDataFrame(
        pa.table(
            {
                "view": pa.array(range(len(patterns)), pa.int64()),
                "labels": pa.array([sorted(p.labels) for p in patterns], pa.list_(pa.string())),
                "pattern": pa.array([pickle.dumps(p) for p in patterns], pa.binary()),
            }
        )
    )


def embedding_edges(
    views: DataFrame, *, navigation: bool = True, splits: int = SPLITS
) -> DataFrame:
    """All edges of the graph; those with `is_kept` are the graph without cycles."""
    assert 1 <= splits <= MAX_SPLITS
    labelled = views.select("view", sql.explode("labels").alias("label"))
    counts = labelled.groupBy("label").count()
    rarest = (
        labelled.join(counts, "label")
        .groupBy("view")
        .agg(sql.min(sql.struct("count", "label")).getField("label").alias("label"))
    )
    every_split = sql.explode(sql.sequence(sql.lit(0), sql.lit(splits - 1)))
    feeders = views.join(rarest, "view").select(
        "label", every_split.alias("split"), "view", "pattern", sql.lit(True).alias("feeds")
    )
    queries = views.select(
        sql.explode("labels").alias("label"),
        sql.pmod(sql.hash("view"), sql.lit(splits)).alias("split"),
        "view",
        "pattern",
        sql.lit(False).alias("feeds"),
    )
    groups = feeders.unionByName(queries).groupBy("label", "split")
    return groups.applyInArrow(group_embedder(navigation), EDGE_SCHEMA)


def group_embedder(navigation: bool) -> Callable[[pa.Table], pa.Table]:
    """The work of a task on one group of feeders and queries."""

    def embed_group(rows: pa.Table) -> pa.Table:
        numbers, feeds = rows["view"].to_numpy(), rows["feeds"].to_numpy()
        views, first, place = np.unique(numbers, return_index=True, return_inverse=True)
        packed = pack_patterns([pickle.loads(rows["pattern"][int(at)].as_py()) for at in first])
        is_feeder = np.zeros(len(views), np.bool_)
        is_feeder[place[feeds]] = True
        queries = np.unique(place[~feeds])
        graph = tree_embedding_graph(
            packed, navigation=navigation, threads=1, queries=queries, is_feeder=is_feeder
        )
        kept = ~mutual_edges(graph, np.bitwise_count(graph.demands).astype(np.int64))
        columns = (views[graph.feeders], views[graph.queries()], graph.coverage.view(np.int64))
        return pa.table([*columns, graph.is_mutual, kept], _ARROW_EDGES)

    return embed_group


def spark_embedding_graph(
    spark: SparkSession,
    patterns: Sequence[TreePattern],
    *,
    navigation: bool = True,
    splits: int = SPLITS,
) -> EmbeddingGraph:
    """The graph collected on the driver: edges by query, then feeder."""
    edges = embedding_edges(views_frame(spark, patterns), navigation=navigation, splits=splits)
    found = edges.toArrow()
    query = found["query"].to_numpy()
    order = np.lexsort((found["feeder"].to_numpy(), query))
    counts = np.bincount(query, minlength=len(patterns))
    return EmbeddingGraph(
        np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
        found["feeder"].to_numpy()[order].astype(np.int32),
        found["coverage"].to_numpy()[order].view(np.uint64),
        found["is_mutual"].to_numpy()[order],
        pack_patterns(patterns).demands,
    )
