"""What an analysis finds equals what a plain pass over the tables finds; and it changes nothing."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from penstock import Hub
from penstock.errors import CorruptionError, HomeError
from penstock.history.analyse import analyse, edges_of, put_together, queries_at
from penstock.history.reading import catalog_at, read_stretches, stretches
from penstock.history.survey import SKETCHED_HASHES, Smallest, hash_of
from penstock.history.survey_changes import change_rows
from penstock.history.surveying import survey_groups, survey_rows, whole
from penstock.matching import create
from penstock.matching.matchers.diagram.matcher import DiagramMatcher
from penstock.storage import Home, RecordKind
from penstock.storage.home_statistics import (
    EdgeStatistics,
    HomeStatistics,
    load_statistics,
    samples,
    save_statistics,
    statistics_files,
    usable_statistics,
)
from penstock.testing import LocalPipeline
from tests.differential.stories import COMPUTED_JOINS, MIXED, Story, stories
from tests.examples import examples
from tests.history.dry import exchanged
from tests.history.test_backtest import live_through
from tests.pipeline.telling import Teller


def dry_analyse(home: Home, records: int = 3) -> HomeStatistics:
    end = home.log.end
    catalog = catalog_at(home.log, end)
    queries = queries_at(home, end, catalog)
    edges = edges_of(queries)
    tables = frozenset(relation.name for relation in catalog)
    shares = stretches(0, end, records)
    rows = []
    for number in range(len(shares)):
        changes = read_stretches(str(home.path), shares, [number], catalog)
        rows += list(change_rows(changes, tables))
    rows = [out for task in exchanged(rows) for out in survey_rows(task, catalog, edges)]
    rows = [out for task in exchanged(rows) for out in survey_groups(task, edges)]
    return put_together(end, catalog, queries, edges, whole(rows))


@pytest.mark.slow
@settings(max_examples=examples(20))
@given(story=stories(MIXED, max_steps=14) | stories(COMPUTED_JOINS, max_steps=12))
def test_counts_equal_those_of_a_plain_pass(story: Story) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "home"
        live_through(path, story.steps)
        found = dry_analyse(Home.open(path))
        with Hub(path) as hub:
            for table in found.tables:
                rows = hub.rows(table.name)
                assert table.rows == len(rows)
                for column in table.columns:
                    values = [row[column.name] for row in rows]
                    assert column.nulls * max(1, len(rows)) == pytest.approx(values.count(None))
                    assert column.distinct <= len(rows)
            for edge in found.edges:
                check_edge(edge, hub)


def check_edge(edge: EdgeStatistics, hub: Hub) -> None:
    sizes = []
    for side in (0, 1):
        keys = [
            tuple(row[name] for name in edge.columns[side]) for row in hub.rows(edge.tables[side])
        ]
        sizes.append(Counter(key for key in keys if None not in key))
    left, right = sizes
    pairs = sum(n * right[value] for value, n in left.items())
    assert edge.rows == (left.total(), right.total())
    assert edge.values == (len(left), len(right))
    assert edge.largest == (max(left.values(), default=0), max(right.values(), default=0))
    assert edge.fan_out == (pairs / max(1, left.total()), pairs / max(1, right.total()))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    with Hub(tmp_path / "home") as hub:
        hub.execute("CREATE TABLE a (id INTEGER PRIMARY KEY, x INTEGER, y INTEGER)")
        hub.execute("CREATE TABLE b (id INTEGER PRIMARY KEY, x INTEGER)")
        hub.subscribe("SELECT * FROM a WHERE x < 5 AND y = 1")
        hub.subscribe("SELECT * FROM a WHERE x < 5")
        hub.subscribe("SELECT * FROM a WHERE x >= 5")
        hub.subscribe("SELECT a.id FROM a JOIN b USING (x) WHERE a.y = 1")
        for i in range(10):
            hub.insert("a", {"id": i, "x": i % 5, "y": i % 2})
        hub.insert("b", {"id": 1, "x": 3})
        hub.update("a", {"id": 0, "x": None})
        hub.delete("a", {"id": 1})
    home = Home.open(tmp_path / "home")
    bad = b'{"table": "a", "op": "delete", "row": {"id": 77}}'
    home.log.append([(RecordKind.EVENT, b"?"), (RecordKind.EVENT, bad)])
    return home


def test_what_is_found(home: Home) -> None:
    found = dry_analyse(home)
    assert (found.subscriptions, found.unreadable) == (4, 1)
    a = found.table("a")
    assert a is not None
    assert (a.inserts, a.updates, a.deletes, a.refused, a.rows) == (10, 1, 1, 1, 9)
    _, x, y = a.columns
    assert (x.frequency, y.frequency) == (0.75, 0.5)  # of the four boxes over a
    assert x.spread == pytest.approx(9 / 5)  # x < 5 twice, x >= 5 once
    assert x.together[2] == 0.25
    assert x.distinct == 5
    assert x.nulls == pytest.approx(1 / 9)
    # 11 changes leave a row: 10 of them have x < 5, one has none; 5 have y = 1.
    assert x.selectivity == pytest.approx((2 * 10 / 11 + 0) / 3)
    assert y.selectivity == pytest.approx(5 / 11)
    assert len(a.sample) == 11
    (edge,) = found.edges
    assert (edge.tables, edge.columns) == (("a", "b"), (("x",), ("x",)))
    assert edge.rows == (8, 1)
    assert edge.fan_out == (2 / 8, 2.0)


def test_it_does_not_matter_how_the_log_is_cut(home: Home) -> None:
    assert dry_analyse(home, 1) == dry_analyse(home, 1000)


@given(st.integers(0, 4000))
@settings(max_examples=examples(20))
def test_distinct_values_are_counted_about_right(number: int) -> None:
    parts = [Smallest[None](SKETCHED_HASHES) for _ in range(3)]
    for i in range(number):
        for part in (parts[i % 3], parts[(i * 7) % 3]):
            part.add(hash_of(i), None)
    parts[0].update(parts[1])
    parts[0].update(parts[2])
    assert parts[0].distinct() == pytest.approx(number, rel=0.3)


# Keeping


def test_kept_and_found_again(home: Home) -> None:
    with pytest.raises(HomeError, match="no statistics"):
        load_statistics(home.path)
    assert usable_statistics(home.path) is None
    found = dry_analyse(home)
    for offset in range(1, 12):
        save_statistics(home.path, HomeStatistics(offset, 0, 0, (), ()))
    save_statistics(home.path, found)
    assert load_statistics(home.path) == found
    assert len(statistics_files(home.path)) == 8


def test_a_damaged_file_is_named_and_passed_over(home: Home) -> None:
    path = save_statistics(home.path, dry_analyse(home))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(CorruptionError, match="damaged") as refusal:
        load_statistics(home.path)
    assert "penstock analyse" in refusal.value.hint
    with Hub(home.path) as hub:
        assert len(hub.rows("a")) == 9


# Using


def test_the_order_of_a_diagram(home: Home) -> None:
    """The order from what was kept is the one that the diagram would have learnt itself."""
    table = dry_analyse(home).table("a")
    assert table is not None
    catalog = catalog_at(home.log, home.log.end)
    boxes = [
        box
        for query in queries_at(home, home.log.end, catalog)
        for branch in query.branches
        for node, box in zip(query.nodes, branch, strict=True)
        if node.relation.name == "a"
    ]
    learnt = DiagramMatcher(catalog["a"])
    learnt.insert_many((i, [box]) for i, box in enumerate(boxes))
    told = create("diagram", catalog["a"], order=table.attribute_order())
    assert isinstance(told, DiagramMatcher)
    assert told.order == learnt.order
    told.insert_many((i, [box]) for i, box in enumerate(boxes))
    assert all(told.match(row) == learnt.match(row) for row in table.sample)


def test_the_matcher_gets_the_sample(home: Home) -> None:
    save_statistics(home.path, dry_analyse(home))
    with mock.patch("penstock.joins.selections.SCANNED_POINTS", 0), Hub(home.path) as hub:
        hub.insert("a", {"id": 50, "x": 1})
        (points,) = [
            p for p in hub._processor.state.engine.index._spaces.values() if p.space.edge is None
        ]
        assert len(points.sample) == 11


@pytest.mark.slow
@settings(max_examples=examples(12))
@given(story=stories(MIXED, max_steps=12), batch_rows=st.integers(1, 4))
def test_batches_are_the_same_with_and_without_statistics(story: Story, batch_rows: int) -> None:
    """Byte for byte: a batch may be replayed after an analysis that was not there before."""
    files = []
    with tempfile.TemporaryDirectory() as directory:
        for told in (False, True):
            home = Home.create(Path(directory) / f"home-{told}")
            Teller(home).tell(story.steps)
            if told:
                save_statistics(home.path, dry_analyse(home))
            with mock.patch("penstock.joins.selections.SCANNED_POINTS", 0):
                LocalPipeline(home, batch_rows).run()
            files.append({p.name: p.read_bytes() for p in home.messages.directory.iterdir()})
    assert files[0] == files[1]


def test_with_spark(spark: SparkSession, home: Home) -> None:
    """Beside a Hub that holds the home's lock."""
    shown: list[tuple[int, int]] = []
    with Hub(home.path):
        found = analyse(home.path, on_progress=lambda done, total: shown.append((done, total)))
    assert found == dry_analyse(home) == load_statistics(home.path)
    assert len(samples(found)["a"]) == 11
    assert shown
