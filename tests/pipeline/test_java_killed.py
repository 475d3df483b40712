"""Java is killed under `penstock run`: one message, no trace of a library; and who may read what
Java had written by then."""

from __future__ import annotations

import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from penstock.errors import PipelineError
from penstock.storage import Home
from tests.pipeline.disturbing import (
    assert_java_is_missed,
    assert_nobody_else_reads,
    fill,
    wait_until,
)

PATIENCE_SECONDS = 600  # only to end a test that hangs


def java(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    children = psutil.Process(process.pid).children(recursive=True)
    return [child for child in children if child.name() == "java"]


@contextmanager
def running(home: Home, directory: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`penstock run`, by somebody who lets everybody read what he writes."""
    command = [sys.executable, "-m", "penstock", "run", str(home.path), "--batch-rows", "50"]
    with (directory / "said").open("wb") as said:
        process = subprocess.Popen(command, stdout=said, stderr=said, umask=0o022)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def is_at(moment: str, home: Home, process: subprocess.Popen[bytes]) -> bool:
    if moment == "starting":
        log = home.path / "logs" / "spark.log"
        return bool(java(process)) and log.exists() and log.stat().st_size > 0
    frontier = home.messages.frontier
    return frontier is not None and frontier.end == home.log.end and frontier.active > 0


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(("moment", "group_access"), [("starting", False), ("waiting", True)])
def test_one_clear_message(tmp_path: Path, moment: str, group_access: bool) -> None:
    """In the middle of a batch: test_kill.py."""
    home = Home.create(tmp_path / "home", group_access=group_access)
    fill(home, 30)
    with running(home, tmp_path) as process:
        wait_until(lambda: is_at(moment, home, process), moment)
        for one in java(process):
            one.kill()
        assert process.wait(PATIENCE_SECONDS) == PipelineError.exit_code
    assert_java_is_missed((tmp_path / "said").read_text())
    if not group_access:
        assert_nobody_else_reads(home)
        return
    for path in home.path.rglob("*"):
        mode = stat.S_IMODE(path.lstat().st_mode)
        assert mode == (0o2770 if path.is_dir() else 0o660), path
