"""The flow: runners know no stage by name, and Hub and pipeline run the same functions."""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from unittest import mock

import pytest
from pyspark.sql import SparkSession

import penstock
from penstock import Hub
from penstock.flow.graph import tasks_of
from penstock.history.backtest import Backtest, backtest
from penstock.pipeline.run import run
from penstock.registry import Registry
from penstock.storage import Home, RecordKind
from penstock.testing import LocalPipeline
from tests.history.dry import dry_backtest
from tests.pipeline.extra_stages import MOST_CHANGES
from tests.pipeline.telling import content, plain, values_of
from tests.test_architecture import PURE

EXTRA = "tests.pipeline.extra_stages:STAGES"
TABLES = (
    "CREATE TABLE people (id BIGINT PRIMARY KEY, name VARCHAR, city VARCHAR)",
    "CREATE TABLE cities (city VARCHAR PRIMARY KEY, size INTEGER)",
)
QUERIES = (
    "SELECT id, name FROM people WHERE name >= 'A' AND name < 'a'",
    "SELECT name, size FROM people JOIN cities USING (city) WHERE size > 1",
)
CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("cities", {"city": "Oslo", "size": 2}),
    *(("people", {"id": i, "name": f"name {i}", "city": "oslo"}) for i in range(6)),
    *(("people", {"id": 1, "name": f"renamed {i}"}) for i in range(5)),
]


def make_home(path: Path) -> Home:
    """A home with subscriptions, and with changes of which the last are one row's."""
    home = Home.create(path)
    with Registry(home) as registry:
        for sql in TABLES:
            registry.define(sql)
        for sql in QUERIES:
            registry.subscribe(sql)
    for table, row in CHANGES:
        op = "update" if "city" not in row else "insert"
        body = json.dumps({"table": table, "op": op, "row": row}).encode()
        home.log.append([(RecordKind.EVENT, body)])
    return home


# In capitals, city by city; the first row may be changed once more after its insert.
PEOPLE = [(i, f"RENAMED {MOST_CHANGES - 2}" if i == 1 else f"NAME {i}") for i in range(6)]
EXPECTED = [
    sorted(PEOPLE),
    sorted((name, 2) for _, name in PEOPLE),
]


def contents(home: Home) -> list[list[tuple[Any, ...]]]:
    with Registry(home) as registry:
        ids = [one.id for one in registry.subscriptions()]
        found = [content(home, registry, number) for number in ids]
    return [sorted(values_of(one or Counter()).elements()) for one in found]


def contents_after(found: Backtest) -> list[list[tuple[Any, ...]]]:
    """The contents that notifications lead to."""
    ends = []
    for query in found.queries:
        rows: dict[object, tuple[Any, ...]] = {}
        for one in query.notifications:
            rows.pop(one.key, None)
            if one.after is not None:
                rows[one.key] = tuple(one.after.values())
        ends.append(sorted(rows.values()))
    return ends


def test_stages_of_ones_own_in_process(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    LocalPipeline(home, batch_rows=4, flow=EXTRA).run()
    assert contents(home) == EXPECTED


def test_stages_of_ones_own_in_a_backtest(tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    assert contents_after(dry_backtest(home, QUERIES, flow=EXTRA)) == EXPECTED


@pytest.mark.spark
def test_stages_of_ones_own_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    home = make_home(tmp_path / "home")
    run(home.path, once=True, master="local[2]", flow=EXTRA)
    assert contents(home) == EXPECTED
    assert contents_after(backtest(home.path, QUERIES, master="local[2]", flow=EXTRA)) == EXPECTED


def test_tasks_begin_with_keyed_stages() -> None:
    names = [[stage.name for stage in task] for task in tasks_of(EXTRA)]
    assert names == [["decode", "uppercase"], ["limit"], ["rows"], ["groups"]]
    for task in tasks_of(EXTRA):
        for stage in task:
            assert stage.takes
            assert stage.gives


# What Hub and pipeline share


def functions_run(action: Callable[[], object]) -> set[str]:
    """The functions of pure rooms that an action calls."""
    codes: set[CodeType] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            codes.add(frame.f_code)

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    package = Path(inspect.getfile(penstock)).parent
    found = set()
    for code in codes:
        path = Path(code.co_filename)
        if package in path.parents:
            room = path.relative_to(package).parts[0].removesuffix(".py")
            if room in PURE and not code.co_name.startswith("<"):
                found.add(f"{path.relative_to(package)}:{code.co_qualname}")
    return found


def test_hub_and_pipeline_run_the_same_functions(tmp_path: Path) -> None:
    """In the plain gear, at least 80 % of the pure functions that the Hub runs for a story are
    among those that the pipeline runs."""

    def in_hub() -> None:
        with Hub(make_home(tmp_path / "hub").path) as hub:
            for number in hub.subscriptions():
                plain(hub.subscription(number).content())

    def in_pipeline() -> None:
        home = make_home(tmp_path / "pipeline")
        with mock.patch.dict(os.environ, PENSTOCK_GEAR="plain"):
            LocalPipeline(home, batch_rows=4).run()
        contents(home)

    hub, pipeline = functions_run(in_hub), functions_run(in_pipeline)
    assert len(hub) > 100
    missing = sorted(hub - pipeline)
    assert len(missing) <= len(hub) / 5, "\n".join(missing)
