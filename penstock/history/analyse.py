"""Analyses the history: one Spark job over the log, and the subscriptions at its end.

Rows are counted per key, join groups per join value; distinct values and samples are kept as the
smallest hashes, which can be merged in any order. So the result does not depend on how the log was
cut into tasks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.catalog import Catalog
from penstock.catalog.derived import base_name
from penstock.history.interest import Interest, interests
from penstock.history.jobs import TaskProgress, brought_together, job_session, tasks_told
from penstock.history.reading import catalog_at, checked_end, read_stretches, stretches
from penstock.history.rows import HISTORY_SCHEMA, batches_of, rows_of
from penstock.history.survey import Survey, TableSurvey
from penstock.history.survey_changes import change_rows
from penstock.history.surveying import survey_groups, survey_rows, whole
from penstock.query import Query
from penstock.registry import Registry
from penstock.spaces import Edge, edge_of
from penstock.storage import (
    ColumnStatistics,
    EdgeStatistics,
    Home,
    HomeStatistics,
    TableStatistics,
    save_statistics,
)


def analyse(
    home: Path,
    *,
    end: int | None = None,
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
    on_progress: TaskProgress | None = None,
) -> HomeStatistics:
    """Read the log up to `end` and store its statistics in the home.

    No lock is taken: a pipeline may be running. HomeError if the log is shorter, PipelineError if
    Spark fails.
    """
    opened = Home.open(home.resolve())
    wanted = checked_end(opened, 0, end)
    catalog = catalog_at(opened.log, wanted)
    queries = queries_at(opened, wanted, catalog)
    edges = edges_of(queries)
    with job_session(opened, master, conf) as spark:
        survey = _run(spark, opened, wanted, catalog, edges, on_progress)
    statistics = put_together(wanted, catalog, queries, edges, survey)
    save_statistics(opened.path, statistics)
    return statistics


def queries_at(home: Home, end: int, catalog: Catalog) -> list[Query]:
    """The queries of the subscriptions that are active at an offset."""
    with Registry(home) as registry:
        return [stored.query(catalog) for stored in registry.subscriptions(end)]


def edges_of(queries: Sequence[Query]) -> list[Edge]:
    """The distinct join conditions of queries."""
    found = {edge_of(query, join)[0] for query in queries for join in query.joins}
    return sorted(found, key=lambda edge: edge.name)


def _run(
    spark: SparkSession,
    home: Home,
    end: int,
    catalog: Catalog,
    edges: Sequence[Edge],
    tell: TaskProgress | None,
) -> Survey:
    shares, path = stretches(0, end) or [(0, 0)], str(home.path)
    tables = frozenset(relation.name for relation in catalog)

    def read(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        mine = [number for batch in numbers for number in batch.column(0).to_pylist()]
        return batches_of(change_rows(read_stretches(path, shares, mine, catalog), tables))

    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches_of(survey_rows(rows_of(batches), catalog, edges))

    def groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return batches_of(survey_groups(rows_of(batches), edges))

    flow = spark.range(0, len(shares), 1, len(shares)).mapInArrow(read, HISTORY_SCHEMA)
    steps = [rows, groups] if edges else [rows]
    for step in steps:
        flow, tasks = brought_together(flow, len(shares), step)
    with tasks_told(spark, len(shares) + tasks * len(steps), tell):
        found = flow.toArrow()
    return whole(rows_of(found.to_batches()))


def put_together(
    end: int, catalog: Catalog, queries: Sequence[Query], edges: Sequence[Edge], survey: Survey
) -> HomeStatistics:
    asked = interests(queries)
    tables = []
    for relation in catalog:
        interest = asked.get(relation.name, Interest(relation))
        tables.append(_table(interest, survey.table(relation)))
    return HomeStatistics(
        offset=end,
        subscriptions=len(queries),
        unreadable=survey.unreadable,
        tables=tuple(tables),
        edges=tuple(_edge(edge, catalog, survey) for edge in edges),
    )


def _table(interest: Interest, counted: TableSurvey) -> TableStatistics:
    relation, sample = interest.relation, [row for _, row in counted.sample.in_order()]
    attributes, passing = interest.attributes(), interest.selectivities(sample)
    columns = tuple(
        ColumnStatistics(
            name=column.name,
            nulls=counted.nulls[i] / max(1, counted.rows),
            distinct=counted.values[i].distinct(),
            frequency=float(attributes.frequency[i]),
            spread=float(attributes.spread[i]),
            together=tuple(attributes.together[i].tolist()),
            selectivity=passing[i],
        )
        for i, column in enumerate(relation.columns)
    )
    return TableStatistics(
        name=relation.name,
        inserts=counted.inserts,
        updates=counted.updates,
        deletes=counted.deletes,
        refused=counted.refused,
        rows=counted.rows,
        conjunctions=len(interest.boxes),
        columns=columns,
        sample=tuple(sample),
    )


def _edge(edge: Edge, catalog: Catalog, survey: Survey) -> EdgeStatistics:
    counted = survey.edge(edge.name)
    left, right = (
        tuple(catalog[side.table].columns[c].name for c in side.columns) for side in edge.sides
    )
    return EdgeStatistics(
        name=edge.name,
        tables=(base_name(edge.sides[0].table), base_name(edge.sides[1].table)),
        columns=(left, right),
        rows=(counted.rows[0], counted.rows[1]),
        values=(counted.values[0], counted.values[1]),
        largest=(counted.largest[0], counted.largest[1]),
        fan_out=counted.fan_out,
    )
