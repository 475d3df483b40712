"""A home whose processor was killed is free as soon as the last of its helpers is gone."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.errors import LockedError
from penstock.storage import Home
from penstock.storage.home import LOCK_GRACE_SECONDS

KILLED_WITH_A_HELPER = """
import os, subprocess, sys
from penstock.storage import Home
with Home.open(sys.argv[1]).processing_lock("pipeline") as processing:
    subprocess.Popen(["sleep", sys.argv[2]], pass_fds=[processing.descriptor], stdout=2)
    os._exit(9)
"""


def leave_helper(home: Home, seconds: float) -> None:
    command = [sys.executable, "-c", KILLED_WITH_A_HELPER, str(home.path), str(seconds)]
    assert subprocess.run(command, check=False).returncode == 9


def test_whoever_comes_next_waits_for_helpers(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "home")
    leave_helper(home, 0.5)
    began = time.monotonic()
    with home.processing_lock("hub"):
        assert time.monotonic() - began < LOCK_GRACE_SECONDS


def test_but_not_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.storage.home.LOCK_GRACE_SECONDS", 0.1)
    home = Home.create(tmp_path / "home")
    leave_helper(home, 2)
    with pytest.raises(LockedError, match="pipeline"), home.processing_lock("hub"):
        pass
