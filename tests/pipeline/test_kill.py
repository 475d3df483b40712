"""A pipeline that is killed in the middle of batches leaves the same message log as any other."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from penstock.storage import Home
from tests.pipeline.disturbing import (
    PATIENCE_SECONDS,
    done,
    fill,
    outputs,
    pipeline_process,
    planned,
    published,
    said,
    staged,
    under_way,
    undisturbed,
    wait_until,
)
from tests.pipeline.killing import BATCH_ROWS, killed_at_random

WORKERS_KILLED = 6

STRIKING = Path(__file__).parent / "striking"


def strike_at(point: str, home: Home, directory: Path) -> None:
    """Run until it kills itself at an exact point of a batch, not the first one of the run."""
    batches = published(home) + 1
    environ = {
        "PYTHONPATH": os.pathsep.join([str(STRIKING), os.environ.get("PYTHONPATH", "")]),
        "PENSTOCK_STRIKE": f"{point} {batches} {home.path}",
    }
    with pipeline_process(home, directory, BATCH_ROWS, **environ) as process:
        wait_until(lambda: process.poll() is not None, point)
        assert process.returncode == -signal.SIGKILL, said(directory)


# What is in the home after each point: files staged, batches that wait to be published, batches
# that are published and that Spark does not know of.
EXACT_POINTS: dict[str, tuple[bool, bool, bool]] = {
    "before-a-file-is-staged": (False, True, False),
    "before-it-is-published": (True, True, False),
    "before-the-file-is-renamed": (True, True, False),
    "before-staged-files-are-removed": (True, False, True),
    "before-Sparks-commit": (False, False, True),
    "after-Sparks-commit": (False, False, False),
}


@pytest.mark.slow
@pytest.mark.spark
def test_killed_at_every_point_of_a_commit(tmp_path: Path) -> None:
    home = Home.create(tmp_path / "home")
    fill(home, 110)
    expected_outputs = undisturbed(home, tmp_path, BATCH_ROWS)
    for point, expected in EXACT_POINTS.items():
        strike_at(point, home, tmp_path)
        waits = under_way(home) and planned(home) >= published(home)
        found = (staged(home) > 0, waits, published(home) > done(home) + 1)
        assert found == expected, point
    assert published(home) >= len(EXACT_POINTS)

    with pipeline_process(home, tmp_path, BATCH_ROWS) as process:
        assert process.wait(PATIENCE_SECONDS) == 0, said(tmp_path)
    assert outputs(home) == expected_outputs
    assert list(home.staging.iterdir()) == []


@pytest.mark.slow
@pytest.mark.spark
def test_killed_at_random(tmp_path: Path) -> None:
    """`make soak` does it more often, and at other moments."""
    killed_at_random(tmp_path, WORKERS_KILLED, random.Random(20))
