"""A home is verified without writing to it: on a read-only disk, by somebody who may only read."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.maintenance.copies import copy_database
from penstock.registry import Registry
from penstock.storage import Home
from tests.maintenance.conftest import QUERIES
from tests.maintenance.test_verify import look

# In a mount namespace of its own even an ordinary user may make a directory read-only.
READ_ONLY = (
    'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && '
    '! touch "$0/x" 2>/dev/null && exec "$@"'
)
PATIENCE_SECONDS = 600  # only to end a test that hangs


def on_a_read_only_disk(home: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", READ_ONLY, str(home), *command],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )


def files(home: Path) -> dict[Path, tuple[int, bytes]]:
    found = sorted(path for path in home.rglob("*") if path.is_file())
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in found}


@pytest.mark.slow
@pytest.mark.parametrize("journals", ["open", "closed"])
def test_on_a_read_only_disk(whole: Path, tmp_path: Path, journals: str) -> None:
    """With the journals of SQLite that somebody left, and without."""
    home = Path(shutil.copytree(whole, tmp_path / "home"))
    if journals == "closed":
        with Registry(Home.open(home)):
            pass
    try:
        may = on_a_read_only_disk(home, "true").returncode == 0
    except FileNotFoundError:
        may = False
    if not may:
        pytest.skip("this system does not let us mount a disk of our own")
    before = files(home)
    verify = [sys.executable, "-m", "penstock", "verify", str(home), "--all", "--json"]
    ran = on_a_read_only_disk(home, *verify)
    told = json.loads(ran.stdout)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert told["findings"] == []
    assert len(told["compared"]) == len(QUERIES)
    assert files(home) == before


@pytest.mark.parametrize("journals", ["open", "closed"])
def test_nothing_is_written(whole: Path, tmp_path: Path, journals: str) -> None:
    home = Path(shutil.copytree(whole, tmp_path / "home"))
    if journals == "closed":
        with Registry(Home.open(home)):
            pass
    before = files(home)
    assert look(home).findings == []
    after = files(home)
    written = {path for path in after if after[path] != before.get(path)}
    assert {path for path in written if not path.name.endswith("-shm")} == set()


def test_a_disk_that_does_not_sync(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(shutil.copytree(whole, tmp_path / "home"))

    def refuse(_descriptor: int) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "fsync", refuse)
    assert look(home).findings == []


def test_a_database_in_use_is_copied_as_of_one_moment(whole: Path, tmp_path: Path) -> None:
    home = Home.open(shutil.copytree(whole, tmp_path / "home"))
    with Registry(home) as registry:
        number = registry.subscribe(QUERIES[0]).id  # in the journal, not in the file yet
        for path in (home.catalog_db, home.registry_db):
            copy_database(path, tmp_path / path.name)
        copied = Home(home.path)
        copied.catalog_db, copied.registry_db = tmp_path / "catalog.db", tmp_path / "registry.db"
        with Registry(copied, catch_up=False) as other:
            assert other.subscription(number).sql == QUERIES[0]
