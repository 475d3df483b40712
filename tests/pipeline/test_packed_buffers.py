"""Kernels reserve room for all that they write. `make bounds` runs this with index checks; without
them, writing past the end of a buffer damages other memory, and nothing reports it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from unittest import mock

import pytest

from penstock.flow import plan
from penstock.registry import Registry
from penstock.storage import Home, RecordKind
from penstock.testing import LocalPipeline
from tests.pipeline.test_packed_stages import no_objects


def insert(table: str, **row: object) -> bytes:
    return json.dumps({"table": table, "op": "insert", "row": row}).encode()


def append(home: Home, changes: Iterable[bytes]) -> None:
    home.log.append([(RecordKind.EVENT, change) for change in changes])


def check(home: Home, first: list[bytes], then: list[bytes]) -> None:
    """The second batch is processed by the fast gear alone."""
    append(home, first)
    pipeline = LocalPipeline(home, batch_rows=100_000)
    with mock.patch.object(plan, "FEW_ROWS", 0):
        pipeline.run()
        append(home, then)
        with no_objects():
            assert len(pipeline.compute(pipeline.planned()).messages) >= len(then)


def test_a_column_that_is_joined_twice(tmp_path: Path) -> None:
    """Its value is written once for each equality, and stands in the row once."""
    home = Home.create(tmp_path / "home", buckets=1)
    with Registry(home) as registry:
        registry.define("CREATE TABLE a (id BIGINT PRIMARY KEY, x VARCHAR)")
        registry.define("CREATE TABLE b (id BIGINT PRIMARY KEY, y VARCHAR, z VARCHAR)")
        registry.subscribe("SELECT a.id, b.id FROM a JOIN b ON a.x = b.y AND a.x = b.z")
    words = [f"{i}".rjust(2_000, "x") for i in range(20)]
    first = [insert("b", id=i, y=word, z=word) for i, word in enumerate(words)]
    check(home, first, [insert("a", id=i, x=word) for i, word in enumerate(words)])


@pytest.mark.parametrize("others", range(100, 107))
def test_a_region_of_many_reaches(tmp_path: Path, others: int) -> None:
    """The buffer begins with 256 bytes for each message. The first one has a thousand reaches, and
    for one of these numbers of other messages it nearly fills the buffer."""
    home = Home.create(tmp_path / "home", buckets=1)
    values = [2**40 + 10 * i for i in range(1_000)]
    with Registry(home) as registry:
        registry.define("CREATE TABLE r (id BIGINT PRIMARY KEY, k INTEGER)")
        registry.define("CREATE TABLE s (id BIGINT PRIMARY KEY, k INTEGER, f BIGINT)")
        # Those between two values are not affected: a region has to leave them out.
        for shift in (0, 5):
            wanted = ", ".join(str(value + shift) for value in values)
            registry.subscribe(f"SELECT * FROM r JOIN s USING (k) WHERE f IN ({wanted})")
    first = [insert("s", id=i, k=0, f=value) for i, value in enumerate(values)]
    first += [insert("s", id=10_000 + i, k=i, f=values[0]) for i in range(1, others + 1)]
    check(home, first, [insert("r", id=i, k=i) for i in range(others + 1)])
