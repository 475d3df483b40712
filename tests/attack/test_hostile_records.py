"""Records that no release should have written: whoever processes the home goes on with the others.

Every kind of record, with bodies that are no JSON, of wrong types, of other records, too large, too
deep, or about things that do not exist. Earlier releases did append some of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock import Hub
from penstock.maintenance.compaction import compact
from penstock.maintenance.verification import verify
from penstock.registry import Registry, rebuild
from penstock.storage import Home, RecordKind
from penstock.testing import LocalPipeline
from tests.maintenance.test_verify import silent
from tests.pipeline.telling import content, values_of

TABLES = (
    "CREATE TABLE stocks (id BIGINT PRIMARY KEY, symbol VARCHAR)",
    "CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol VARCHAR)",
)
QUERIES = (
    "SELECT id FROM stocks",
    "SELECT stocks.id FROM stocks JOIN reviews USING (symbol)",
)
FIRST = len(TABLES)  # the id of the first subscription
DEEP = b'{"id": ' + b"[" * 2000 + b"]" * 2000 + b"}"
BODIES = {
    "nothing": b"",
    "no JSON": b"\x00\xff\xfe",
    "no object": b"7",
    "nothing in it": b"{}",
    "a float": b'{"id": %d.0, "lease_seconds": 5.5, "expires_ms": 1.0}' % FIRST,
    "a bool": b'{"id": true, "lease_seconds": true, "expires_ms": false}',
    "a text": b'{"id": "%d", "of": "x"}' % FIRST,
    "a huge number": b'{"id": 99999999999999999999, "of": 99999999999999999999}',
    "a number below zero": b'{"id": -1, "of": -1, "primary": "x", "expires_ms": -1}',
    "what is not there": b'{"id": 77, "of": 77, "primary": "x", "decomposition": []}',
    "a lease of nobody": b'{"id": 77, "lease_seconds": 1, "expires_ms": 1}',
    "a table": b'{"id": 0, "decomposition": [], "lease_seconds": 1, "expires_ms": 1}',
    "too deep": DEEP,
    "a wrong decomposition": b'{"id": %d, "decomposition": [[[9, 9]], [[-1]]]}' % FIRST,
    "SQL that does not bind": b'{"sql": "SELECT nope FROM nowhere"}',
    "SQL with a NUL": b'{"sql": "SELECT id FROM stocks\\u0000"}',
    "a lone surrogate": b'{"sql": "\\ud800", "owner": "\\ud800"}',
    "a DDL": b"CREATE TABLE stocks (id BIGINT PRIMARY KEY)",
    "half a DDL": b"CREATE TABLE x (",
    "a large body": b"[" + b"1," * 100_000 + b"1]",
}


def event(table: str, number: int) -> bytes:
    return json.dumps({"table": table, "row": {"id": number, "symbol": f"s{number % 3}"}}).encode()


def begun(path: Path) -> Home:
    home = Home.create(path)
    with Registry(home) as registry:
        for sql in TABLES:
            registry.define(sql)
        registry.subscribe_many(QUERIES)
    publish(home, 0)
    return home


def publish(home: Home, first: int) -> None:
    bodies = [event(table, n) for n in range(first, first + 4) for table in ("stocks", "reviews")]
    home.log.append([(RecordKind.EVENT, body) for body in bodies])


def by_hub(home: Home) -> None:
    Hub(home.path, reoptimise_every=None).close()


def by_pipeline(home: Home) -> None:
    LocalPipeline(home, batch_rows=5).run()


def check_served(home: Home, rows: int) -> None:
    """Both subscriptions have what their queries return."""
    ids = set(range(rows))
    with Registry(home) as registry:
        selected, joined = (content(home, registry, FIRST + i) for i in range(2))
    assert selected is not None
    assert joined is not None
    assert {value for (value,) in values_of(selected)} == ids
    expected = {i: sum(i % 3 == j % 3 for j in ids) for i in ids}
    assert {value: count for ((value,), count) in values_of(joined).items()} == expected


@pytest.mark.slow
@pytest.mark.parametrize("process", [by_hub, by_pipeline])
@pytest.mark.parametrize("kind", [kind for kind in RecordKind if kind is not RecordKind.LOST])
def test_records_of_every_kind(
    tmp_path: Path, kind: RecordKind, process: Callable[[Home], None]
) -> None:
    home = begun(tmp_path / "home")
    process(home)
    bodies = dict(BODIES)
    if kind is RecordKind.WITHDRAW:
        del bodies["a wrong decomposition"]  # which for this kind is a withdrawal
    home.log.append([(kind, body) for body in bodies.values()])
    publish(home, 4)
    process(home)
    check_served(home, 8)
    rebuild(home)
    for other in (by_hub, by_pipeline):
        other(home)
    check_served(home, 8)
    assert not verify(home, silent).has_problems
    compact(home, silent)
    publish(home, 8)
    process(home)
    check_served(home, 12)
