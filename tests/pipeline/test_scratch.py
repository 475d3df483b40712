"""Scratch directories come and go, and never while somebody needs them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from penstock.pipeline.scratch import LOCK_NAME, PREFIX, Scratch, sweep


def test_removed_with_all_it_holds(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    (scratch.path / "warehouse").mkdir()
    scratch.remove()
    assert list(tmp_path.iterdir()) == []


def test_in_use_survives_a_sweep(tmp_path: Path) -> None:
    first = Scratch(tmp_path)
    second = Scratch(tmp_path)  # sweeps
    sweep(tmp_path)
    assert first.path.is_dir()
    assert second.path.is_dir()


def test_left_by_a_killed_process_is_swept(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from penstock.pipeline.scratch import Scratch\n"
        "Scratch(Path(sys.argv[1])); os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    (left_behind,) = tmp_path.iterdir()
    survivor = Scratch(tmp_path)
    assert not left_behind.exists()
    assert list(tmp_path.iterdir()) == [survivor.path]


def test_foreign_directories_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "something-else").mkdir()
    (tmp_path / f"{PREFIX}without-a-lock").mkdir()
    sweep(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_forked_child_does_not_remove_it(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    child = os.fork()
    if child == 0:
        scratch.remove()
        os._exit(0)
    os.waitpid(child, 0)
    assert (scratch.path / LOCK_NAME).exists()
