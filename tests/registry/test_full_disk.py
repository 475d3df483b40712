"""A full disk is called a full disk, with the path and what to do, whoever meets it first."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from pathlib import Path

import pytest

from penstock.errors import CorruptionError, HomeError, LockedError, PenstockError
from penstock.registry import damage
from penstock.registry.damage import sqlite_failure
from penstock.storage.disk import NO_ROOM
from tests.pipeline.test_full_disk import on_a_small_disk

PLACE = Path("/shop/registry.db")


@pytest.mark.slow
def test_commands_on_a_full_disk(tmp_path: Path) -> None:
    try:
        may = on_a_small_disk(tmp_path / "try", "true").returncode == 0
    except FileNotFoundError:
        may = False
    if not may:
        pytest.skip("this system does not let us mount a disk of our own")
    disk = tmp_path / "disk"
    drive = [sys.executable, "-m", "tests.registry.on_full_disk", str(disk)]
    result = on_a_small_disk(disk, *drive)
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert len(told) >= 10
    for text in told:
        assert re.search("No space left on device|the disk is full", text), text
        assert str(disk) in text, text
        assert NO_ROOM in text, text


def failure(code: int, text: str = "disk I/O error") -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(text)
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("code", "room", "kind", "says"),
    [
        (sqlite3.SQLITE_FULL, True, HomeError, "the disk is full"),
        (sqlite3.SQLITE_IOERR | 19 << 8, False, HomeError, "the disk is full"),
        (sqlite3.SQLITE_IOERR, True, HomeError, "cannot use /shop/registry.db: disk I/O error"),
        (sqlite3.SQLITE_CANTOPEN, False, HomeError, "the disk is full"),
        (sqlite3.SQLITE_READONLY, True, HomeError, "it is read-only"),
        (sqlite3.SQLITE_BUSY, True, LockedError, "another process keeps"),
        (sqlite3.SQLITE_CORRUPT, True, CorruptionError, "is damaged"),
        (sqlite3.SQLITE_NOTADB, True, CorruptionError, "is damaged"),
        (sqlite3.SQLITE_CONSTRAINT, True, CorruptionError, "is damaged"),
    ],
)
def test_what_sqlite_says(
    monkeypatch: pytest.MonkeyPatch, code: int, room: bool, kind: type[PenstockError], says: str
) -> None:
    monkeypatch.setattr(damage, "lacks_room", lambda _: not room)
    error = sqlite_failure(failure(code), PLACE)
    assert type(error) is kind
    assert says in error.primary
    assert str(PLACE) in error.primary
    assert error.hint
