"""A disk that is full ends a run with a refusal that says so; with room, the next one goes on."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.storage import Log, RecordKind

# In a mount namespace of its own even an ordinary user may have a disk of any size.
ON_A_SMALL_DISK = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
MOUNTED = 'mount -t tmpfs -o size=32m none "$0" && exec "$@"'
PATIENCE_SECONDS = 600  # only to end a test that hangs


def on_a_small_disk(disk: Path, *command: str) -> subprocess.CompletedProcess[str]:
    disk.mkdir()
    root = Path(__file__).parents[2]
    return subprocess.run(
        [*ON_A_SMALL_DISK, MOUNTED, str(disk), *command],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
        env={**os.environ, "PYTHONPATH": str(root)},
    )


@pytest.mark.slow
@pytest.mark.spark
def test_runs_on_a_full_disk(tmp_path: Path) -> None:
    try:
        may = on_a_small_disk(tmp_path / "try", "true").returncode == 0
    except FileNotFoundError:
        may = False
    if not may:
        pytest.skip("this system does not let us mount a disk of our own")
    drive = [sys.executable, "-m", "tests.pipeline.on_small_disk"]
    result = on_a_small_disk(tmp_path / "disk", *drive, str(tmp_path / "disk"), str(tmp_path))
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    for text in told["runs"] + told["appends"]:
        assert re.search("No space left on device|disk is full|disk I/O error", text), text
        assert re.search("make room|room on that disk", text), text
        assert "org.apache" not in text, text
    assert len(told["runs"]) >= 4
    assert all(text.startswith("cannot append to the log") for text in told["appends"])


def test_an_append_whose_memory_finds_no_room(tmp_path: Path) -> None:
    """The record is on disk by then, so it counts."""
    log = Log(tmp_path)
    log.lock_path.symlink_to("/dev/full")
    assert log.append([(RecordKind.EVENT, b"one")]) == 0
    assert Log(tmp_path).end == 1
