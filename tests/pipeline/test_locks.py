"""A home whose processor was killed is free as soon as the last of its helpers is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.errors import LockedError
from penstock.storage import Home

PATIENCE_SECONDS = 600  # only to end a test that hangs

KILLED_WITH_A_HELPER = """
import os, subprocess, sys
from penstock.storage import Home
with Home.open(sys.argv[1]).processing_lock("pipeline") as processing:
    helper = subprocess.Popen(["sleep", sys.argv[2]], pass_fds=[processing.descriptor], stdout=2)
    print(helper.pid, flush=True)
    os._exit(9)
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.create(tmp_path / "home")


@pytest.fixture
def helper(home: Home) -> Iterator[int]:
    """A process that has outlived the one that worked on the home."""
    command = [sys.executable, "-c", KILLED_WITH_A_HELPER, str(home.path), str(PATIENCE_SECONDS)]
    ended = subprocess.run(command, check=False, stdout=subprocess.PIPE)
    assert ended.returncode == 9
    number = int(ended.stdout)
    yield number
    with suppress(ProcessLookupError):
        os.kill(number, signal.SIGKILL)


def test_whoever_comes_next_waits_for_helpers(
    home: Home, helper: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    sleep = time.sleep

    def end_helper(seconds: float) -> None:
        if not waits:
            os.kill(helper, signal.SIGKILL)
        waits.append(seconds)
        sleep(seconds)

    monkeypatch.setattr("penstock.storage.home.LOCK_GRACE_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr("penstock.storage.disk.time.sleep", end_helper)
    with home.processing_lock("hub"):
        assert waits


def test_but_not_for_ever(home: Home, helper: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.storage.home.LOCK_GRACE_SECONDS", 0.1)
    with pytest.raises(LockedError, match="pipeline"), home.processing_lock("hub"):
        pass
    os.kill(helper, 0)
