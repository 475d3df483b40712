"""What a run builds on is looked at before it begins, where damage would go unnoticed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from penstock.errors import CorruptionError, HomeError
from penstock.pipeline.preflight import check_before_run
from penstock.registry import Registry, rebuild
from penstock.storage import BatchHeader, Home, RecordKind


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home.create(tmp_path / "home")
    with Registry(home) as registry:
        registry.define("CREATE TABLE stocks (id INTEGER PRIMARY KEY, per INTEGER)")
    home.messages.publish(BatchHeader(0, 1, 0), [b"a message"])
    return home


def test_a_whole_home(home: Home) -> None:
    check_before_run(home)


def test_a_log_that_was_cut_off_between_two_records(home: Home) -> None:
    """Nobody has processed the last one yet, so nobody else knows of it."""
    (segment,) = home.log.directory.glob("*.log")
    whole_bytes = segment.stat().st_size
    home.log.append([(RecordKind.EVENT, b"")])
    with segment.open("r+b") as file:
        file.truncate(whole_bytes)
    with pytest.raises(CorruptionError, match="ends at offset 1, but 2 records") as caught:
        check_before_run(Home.open(home.path))
    assert "restore the log from a backup" in caught.value.hint


def test_the_last_batch_is_cut_off(home: Home) -> None:
    (batch,) = home.messages.directory.glob("*.messages")
    batch.write_bytes(batch.read_bytes()[:-1])
    with pytest.raises(CorruptionError, match="is damaged at byte"):
        check_before_run(home)


@pytest.mark.parametrize(
    "wrong",
    [
        "sql = replace(sql, 'per', 'pes')",
        "sql = '('",
        "sql = CAST(x'ff' AS TEXT)",
        "broken = 'so it is said'",
        "offset = 77",
    ],
)
def test_a_catalog_with_other_tables(home: Home, wrong: str) -> None:
    with closing(sqlite3.connect(home.catalog_db)) as catalog, catalog:
        catalog.execute(f"UPDATE relations SET {wrong}")
    with pytest.raises(HomeError, match=str(home.catalog_db)) as caught:
        check_before_run(home)
    assert f"penstock rebuild {home.path}" in caught.value.hint
    rebuild(home)
    check_before_run(home)
