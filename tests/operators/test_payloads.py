"""Payloads of queries that compute: halves of relations that have derived columns."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from unittest import mock

import pytest

from penstock import Hub
from penstock.maintenance.verification import verify
from penstock.registry import Registry
from penstock.storage import Home, RecordKind
from penstock.testing import LocalPipeline
from tests.maintenance.test_verify import silent
from tests.operators.evaluating import Call

TABLE = "CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT, photo VARCHAR)"
OPERATOR = "CREATE OPERATOR isOdd AS 'tests.operators.samples:is_odd'"
CONDITIONS = ("isOdd(n)", "n * 2 > 5", "isOdd(n) AND length(photo) + n > 4 AND n < 20", "n > 3")
QUERIES = [
    f"SELECT {hint} id, n, photo FROM t WHERE {condition}"
    for condition in CONDITIONS
    for hint in ("", "/*+ payload(photo) */")
]


def events() -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for number in range(24):
        row = {"id": number, "n": number, "photo": f"photo {number % 5}"}
        found.append({"table": "t", "op": "insert", "row": row})
    for number in range(0, 24, 2):
        found.append({"table": "t", "op": "update", "row": {"id": number, "n": number + 3}})
        found.append({"table": "t", "op": "update", "row": {"id": number + 1, "photo": "other"}})
    found += [{"table": "t", "op": "delete", "row": {"id": number}} for number in (3, 8, 9)]
    return found


def publish(home: Home, some: list[dict[str, object]]) -> None:
    home.log.append([(RecordKind.EVENT, json.dumps(one).encode()) for one in some])


def check(home: Home, numbers: list[int]) -> None:
    with Hub(home.path) as hub:
        contents = [
            sorted(tuple(map(str, row.values())) for row in hub.subscription(number).content())
            for number in numbers
        ]
    for plain, halved in zip(contents[::2], contents[1::2], strict=True):
        assert plain == halved
        assert plain
    verdict = verify(home, silent)
    assert verdict.findings == []
    assert len(verdict.compared) == len(numbers)


@pytest.mark.parametrize("runner", ["hub", "plain", "fast"])
def test_nobody_else_asks(runner: str, tmp_path: Path, calls: Counter[Call]) -> None:
    home = Home.create(tmp_path / "home")
    with Registry(home) as registry:
        registry.define(TABLE)
        registry.define(OPERATOR)
        number = registry.subscribe(QUERIES[1]).id
    pipeline = None if runner == "hub" else LocalPipeline(home)
    with mock.patch.dict(os.environ, PENSTOCK_GEAR="fast" if runner == "fast" else "plain"):
        _advance(home, pipeline)
        publish(home, events())
        _advance(home, pipeline)
        with Registry(home) as registry:
            late = registry.subscribe(QUERIES[1].replace("isOdd(n)", "isOdd(id)")).id
        _advance(home, pipeline)
    verdict = verify(home, silent)
    assert verdict.findings == []
    assert verdict.compared == [number, late]


@pytest.mark.slow
@pytest.mark.parametrize("runner", ["hub", "plain", "fast"])
def test_contents_are_the_same_with_and_without(
    runner: str, tmp_path: Path, calls: Counter[Call]
) -> None:
    home = Home.create(tmp_path / "home")
    with Registry(home) as registry:
        registry.define(TABLE)
        registry.define(OPERATOR)
        early = [registry.subscribe(sql).id for sql in QUERIES]
    gear = "plain" if runner == "hub" else runner
    with mock.patch.dict(os.environ, PENSTOCK_GEAR=gear):
        pipeline = None if runner == "hub" else LocalPipeline(home)
        for some in (events()[:30], events()[30:]):
            publish(home, some)
            _advance(home, pipeline)
        with Registry(home) as registry:
            late = [registry.subscribe(sql).id for sql in QUERIES]
        publish(home, [{"table": "t", "op": "delete", "row": {"id": 1}}])
        _advance(home, pipeline)
        check(home, [*early, *late])


def _advance(home: Home, pipeline: LocalPipeline | None) -> None:
    if pipeline is None:
        Hub(home.path).close()
    else:
        pipeline.run()
