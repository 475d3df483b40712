"""Stages that work on packed rows give what they give one by one, byte for byte."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import cycle, islice
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.client import Initial
from penstock.flow import plan
from penstock.flow.index import Index
from penstock.flow.packed import delta_steps as stepping
from penstock.flow.packed.rows import PackedDeltas
from penstock.flow.plain import JoinStage, RowStage
from penstock.joins import make_scheme
from penstock.joins.packed.groups import GroupRun
from penstock.lab.workloads.streams import stream_workload
from penstock.registry import Registry
from penstock.storage import Home, RecordKind
from penstock.testing import LocalPipeline
from tests.differential.stories import (
    COMPUTED,
    COMPUTED_JOINS,
    HOT_KEYS,
    JOINS,
    MIXED,
    SELECTIONS,
    Shape,
    Story,
    stories,
)
from tests.examples import examples
from tests.pipeline.telling import Teller
from tests.pipeline.test_stages import files

SUBSCRIPTIONS = (
    "SELECT * FROM l JOIN r ON l.name = r.name WHERE l.v > 3 AND r.v < 7",
    "SELECT * FROM l JOIN r ON l.name = r.name WHERE l.v IS NULL",
    "SELECT * FROM l x JOIN l y ON x.name = y.name AND x.day = y.day WHERE x.v = 4 AND y.id > 0",
    "SELECT * FROM l JOIN d ON l.price = d.price WHERE l.v > 2",
    "SELECT * FROM s JOIN l ON s.name = l.name WHERE s.v > 3 AND l.v > 1",
    "SELECT * FROM l WHERE v BETWEEN 2 AND 5 AND big > 10",
    "SELECT * FROM r WHERE name LIKE 'b%' OR w < 1.5",
    "SELECT * FROM d WHERE flag",
    "SELECT * FROM l JOIN w ON l.big = w.big WHERE l.v > 2 AND w.big < 5000000000000000000000",
    "SELECT * FROM w JOIN d ON w.x = d.w WHERE w.big > -7 AND d.price > 1",
    "SELECT * FROM w JOIN d ON w.flag = d.flag WHERE w.small > 0.5 AND d.w >= 1",
    "SELECT * FROM w WHERE big BETWEEN -1000 AND 99999999999999999999999999",
)
LEFT = """CREATE TABLE l (id BIGINT, name VARCHAR, day DATE, v INTEGER, price DECIMAL(9,2),
big DECIMAL(38,0), PRIMARY KEY (name, id))"""
TABLES = (
    LEFT,
    "CREATE TABLE r (id BIGINT PRIMARY KEY, name VARCHAR, v INTEGER, w DOUBLE)",
    "CREATE STREAM s (name VARCHAR, v INTEGER)",
    "CREATE TABLE d (flag BOOLEAN PRIMARY KEY, price DECIMAL(12,4), w DOUBLE)",
    """CREATE TABLE w (x DOUBLE, big DECIMAL(30,2), flag BOOLEAN, small DECIMAL(20,19),
PRIMARY KEY (x, big))""",
)

names = st.sampled_from(["a", "b", "bc", "é" * 20, "long" * 120]) | st.none()
small = st.integers(0, 9) | st.none()
doubles = st.sampled_from(["NaN", -0.0, 0.0, 1.0, 2.5, "Infinity"]) | st.none()
bigs = st.sampled_from(["11", 11, -7, 99999999999999999999, -(10**26)]) | st.none()
prices = st.sampled_from(["0.5", "1.25", "3"]) | st.none()
ROWS = {
    "l": st.fixed_dictionaries(
        {"id": st.integers(0, 2), "name": names.filter(bool)},
        optional={
            "day": st.sampled_from(["2024-02-29", "2024-03-01"]) | st.none(),
            "v": small,
            "price": prices,
            "big": st.sampled_from(["9" * 38, "-" + "1" * 30]) | bigs,
        },
    ),
    "r": st.fixed_dictionaries(
        {"id": st.integers(0, 5)}, optional={"name": names, "v": small, "w": doubles}
    ),
    "s": st.fixed_dictionaries({"name": names, "v": small}),
    "w": st.fixed_dictionaries(
        {"x": doubles.filter(lambda x: x is not None), "big": bigs.filter(bool)},
        optional={"flag": st.booleans() | st.none(), "small": st.sampled_from([0, 0.5, 1, -1.25])},
    ),
    "d": st.fixed_dictionaries({"flag": st.booleans()}, optional={"price": prices, "w": doubles}),
}
ops = st.sampled_from(["insert", "update", "upsert", "delete", "insert"])
events = st.sampled_from(sorted(ROWS)).flatmap(
    lambda table: st.fixed_dictionaries({"table": st.just(table), "op": ops, "row": ROWS[table]})
)


@contextmanager
def one_by_one() -> Iterator[None]:
    """All stages in the plain gear."""
    with mock.patch.dict(os.environ, PENSTOCK_GEAR="plain"):
        yield


def published(home: Home, batch_rows: int, in_turns: Sequence[bool]) -> dict[str, bytes]:
    """The files of a copy of the home, whose batches are computed in one way or the other."""
    with (
        tempfile.TemporaryDirectory() as directory,
        mock.patch.object(plan, "FEW_ROWS", 0),  # none are too few
    ):
        copy = Home.open(Path(shutil.copytree(home.path, Path(directory) / "copy")))
        pipeline = LocalPipeline(copy, batch_rows)
        for is_packed in cycle(in_turns):
            if pipeline.planned() == pipeline.offset:
                return files(copy)
            with nullcontext() if is_packed else one_by_one():
                pipeline.process(pipeline.planned())
    raise AssertionError("there is no other way out")


def started_over(home: Home, batch_rows: int) -> dict[str, bytes]:
    """The same where the checkpoint is lost after every batch, so that groups are filled anew."""
    with tempfile.TemporaryDirectory() as directory:
        copy = Home.open(Path(shutil.copytree(home.path, Path(directory) / "copy")))
        reached, end = -1, 0
        while reached < end:
            pipeline, reached = LocalPipeline(copy, batch_rows), end
            while pipeline.offset.position < reached:
                pipeline.process(pipeline.planned())
            if reached < copy.log.end:
                pipeline.process(pipeline.planned())
            frontier = copy.messages.frontier
            end = 0 if frontier is None else frontier.end
        pipeline.run()  # for those who still wait
        return files(copy)


def check(home: Home, batch_rows: int) -> dict[str, bytes]:
    """Both ways publish the same, also where each takes over from the other, and in whatever pieces
    steps travel."""
    packed = published(home, batch_rows, [True])
    assert packed == published(home, batch_rows, [False])
    with (
        mock.patch.object(stepping, "STEPS_AT_ONCE", 3),
        mock.patch.object(stepping, "BYTES_AT_ONCE", 100),
    ):
        assert packed == published(home, batch_rows, [True, False])
    if batch_rows > 5:
        assert packed == started_over(home, batch_rows)
    return packed


def filled(path: Path, texts: Iterable[str], changes: Iterable[bytes]) -> Home:
    """A home with the tables, subscriptions that start with nothing, and changes."""
    home = Home.create(path)
    with Registry(home) as registry:
        for sql in TABLES:
            registry.define(sql)
        registry.subscribe_many(list(texts), initial=Initial.NONE)
    home.log.append([(RecordKind.EVENT, change) for change in changes])
    return home


@given(
    changes=st.lists(events, max_size=40),
    texts=st.lists(st.sampled_from(SUBSCRIPTIONS), min_size=1, max_size=5, unique=True),
    batch_rows=st.sampled_from([1, 7, 100]),
)
def test_any_changes_whether_they_can_be_made_or_not(
    changes: list[dict[str, object]], texts: list[str], batch_rows: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        lines = [json.dumps(change).encode() for change in changes]
        check(filled(Path(directory) / "home", texts, lines), batch_rows)


SHAPES = (SELECTIONS, JOINS, HOT_KEYS, MIXED, COMPUTED, COMPUTED_JOINS)
ANY_BATCH_ROWS = st.sampled_from([2, 10, 1000])


@pytest.mark.slow
@settings(max_examples=examples(12))
@given(data=st.data(), batch_rows=ANY_BATCH_ROWS)
@pytest.mark.parametrize("shape", SHAPES)
def test_any_story(shape: Shape, data: st.DataObject, batch_rows: int) -> None:
    """`make soak` tells more of them."""
    check_story(data.draw(stories(shape, max_steps=24, any_plan=True)), batch_rows)


def check_story(story: Story, batch_rows: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        teller = Teller(Home.create(Path(directory) / "home"))
        teller.tell(story.steps)
        check(teller.home, batch_rows)


def test_the_usual_changes_never_become_objects(tmp_path: Path) -> None:
    """What the benchmarks measure is what kernels do."""
    workload = stream_workload("joins", 50)
    home = Home.create(tmp_path / "home")
    with Registry(home) as registry:
        for sql in workload.tables:
            registry.define(sql)
        registry.subscribe_many(workload.subscriptions)
    lines = [*workload.rows[:2000], *islice(workload.events, 3000)]
    home.log.append([(RecordKind.EVENT, line) for line in lines])
    pipeline = LocalPipeline(home, batch_rows=10_000)
    # Then subscriptions are active, and edges know their rows: what is there goes one by one.
    for count in (1, 3000):
        pipeline.run()
        home.log.append([(RecordKind.EVENT, line) for line in islice(workload.events, count)])
    with no_objects():
        assert len(pipeline.compute(pipeline.planned()).messages) > 100


COMPUTING = (
    "SELECT name, v + 1 AS more FROM s WHERE v * 2 > 3",
    "SELECT id, upper(name) AS name, price * 2 AS p, big + 1 AS b FROM l WHERE v % 2 = 1",
    "SELECT * FROM l JOIN r ON l.name = r.name WHERE l.v + 1 > 3 AND lower(r.name) <> 'a'",
    "SELECT x.id, y.day + 1 AS next FROM l x JOIN l y ON x.name = y.name WHERE y.v IS NULL",
)


def test_derived_columns_never_become_objects(tmp_path: Path) -> None:
    """Also in the plan: every line of it is the fast gear's."""
    home = Home.create(tmp_path / "home")
    lines = [
        json.dumps({"table": table, "op": "upsert" if table != "s" else "insert", "row": row})
        for i in range(400)  # more than a few in every bucket
        for table, row in (
            ("l", {"id": i, "name": "ab"[i % 2], "v": i % 5, "price": "1.25", "day": None}),
            ("r", {"id": i, "name": "ab"[i % 2], "v": i % 5, "w": 0.5}),
            ("s", {"name": "ab"[i % 2], "v": i % 5}),
        )
    ]
    with Registry(home) as registry:
        for sql in TABLES:
            registry.define(sql)
        registry.subscribe_many(COMPUTING)
        catalog = registry.catalog()
        index = Index(catalog)
        for stored in registry.subscriptions():
            index.add(stored.id, stored.query(catalog))
    planned = list(plan.ExecutionPlan(catalog).lines(index, make_scheme("ref-sj-gap")))
    assert {one.decision.gear for one in planned} == {plan.Gear.FAST}
    assert sum(one.work == "derived columns" for one in planned) == 5
    pipeline = LocalPipeline(home, batch_rows=10_000)
    for _ in range(2):
        home.log.append([(RecordKind.EVENT, line.encode()) for line in lines])
        pipeline.run()
    home.log.append([(RecordKind.EVENT, line.replace("1.25", "2.50").encode()) for line in lines])
    with (
        mock.patch.object(RowStage, "resolve", side_effect=AssertionError),
        mock.patch.object(JoinStage, "run", side_effect=AssertionError),
        mock.patch.object(PackedDeltas, "objects", side_effect=AssertionError),
        mock.patch("penstock.expressions.evaluation.compute", side_effect=AssertionError),
    ):
        assert len(pipeline.compute(pipeline.planned()).messages) > 50


@contextmanager
def no_objects() -> Iterator[None]:
    with (
        mock.patch.object(RowStage, "resolve", side_effect=AssertionError),
        mock.patch.object(JoinStage, "run", side_effect=AssertionError),
        mock.patch.object(PackedDeltas, "objects", side_effect=AssertionError),
        mock.patch.object(GroupRun, "objects", side_effect=AssertionError),
        mock.patch("penstock.flow.stages.decode.read_change", side_effect=AssertionError),
    ):
        yield


def test_no_type_of_a_column_needs_the_plain_gear(tmp_path: Path) -> None:
    """Keys, join values, filter columns and conditions of every type, and decimals of 128 bits."""
    types = {
        "DECIMAL(38,3)": [f"{sign}{10**34 + i}.{i:03}" for i in range(9) for sign in ("", "-")],
        "DECIMAL(9,2)": ["1.25", "-3", "0.5"],
        "DOUBLE": ["1.5", "-2.25", "0"],
        "BOOLEAN": ["true", "false"],
        "VARCHAR": ['"a"', '"b"'],
        "DATE": ['"2024-02-29"', '"2024-03-01"'],
        "TIMESTAMP": ['"2024-02-29T01:02:03"', '"2024-03-01T00:00:00"'],
        "BIGINT": ["-5", "7"],
    }
    home = Home.create(tmp_path / "home")
    lines: list[bytes] = []
    with Registry(home) as registry:
        for number, (name, values) in enumerate(types.items()):
            left, right = f"l{number}", f"r{number}"
            for table in (left, right):
                registry.define(f"CREATE TABLE {table} (k {name}, j {name}, PRIMARY KEY (k))")
                lines += [
                    f'{{"table":"{table}","op":"upsert","row":{{"k":{k},"j":{j}}}}}'.encode()
                    for k in values
                    for j in values
                ]
            shown = values[0].replace('"', "'")
            registry.subscribe(
                f"SELECT * FROM {left} a JOIN {right} b ON a.j = b.j "
                f"WHERE a.k >= {shown} AND b.k <= {shown}"
            )
            registry.subscribe(f"SELECT * FROM {left} WHERE j >= {shown}")
    home.log.append([(RecordKind.EVENT, lines[0])])
    pipeline = LocalPipeline(home, batch_rows=10_000)
    pipeline.run()
    home.log.append([(RecordKind.EVENT, line) for line in lines])
    with no_objects(), mock.patch.object(plan, "FEW_ROWS", 0):
        assert len(pipeline.compute(pipeline.planned()).messages) > 100
