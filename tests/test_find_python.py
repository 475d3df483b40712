"""Set-up chooses a Python that works, and says so when there is none."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / "scripts" / "find_python.sh"


def add_command(directory: Path, name: str, script: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def find_python(path: Path, asked_for: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", str(SCRIPT), asked_for],
        env={"PATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_first_that_works_is_taken(tmp_path: Path) -> None:
    add_command(tmp_path, "python3.11", "echo 'not this version' >&2; exit 127")
    add_command(tmp_path, "python3.12", f'exec {sys.executable} "$@"')
    found = find_python(tmp_path)
    assert (found.stdout.strip(), found.stderr) == (str(tmp_path / "python3.12"), "")


def test_the_one_asked_for_is_taken(tmp_path: Path) -> None:
    add_command(tmp_path, "python3.11", f'exec {sys.executable} "$@"')
    add_command(tmp_path / "with space", "mine", f'exec {sys.executable} "$@"')
    mine = str(tmp_path / "with space" / "mine")
    assert find_python(tmp_path, mine).stdout.strip() == mine


def test_none_that_fits(tmp_path: Path) -> None:
    add_command(tmp_path, "python3", "exit 1")
    found = find_python(tmp_path)
    assert found.returncode == 1
    assert "No Python from 3.11 to 3.13" in found.stderr


def test_the_one_asked_for_does_not_fit(tmp_path: Path) -> None:
    add_command(tmp_path, "python3.11", f'exec {sys.executable} "$@"')
    found = find_python(tmp_path, "python2")
    assert found.returncode == 1
    assert found.stderr.startswith("python2 is not a Python from 3.11 to 3.13")
