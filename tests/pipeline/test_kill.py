"""A pipeline that is killed in the middle of batches leaves the same message log as any other."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from penstock.storage import Home
from tests.pipeline.disturbing import (
    done,
    fill,
    pipeline_process,
    planned,
    published,
    said,
    staged,
    under_way,
    undisturbed,
    wait_until,
)
from tests.pipeline.killing import (
    BATCH_ROWS,
    assert_as_if_nothing_had_happened,
    kill_at_random,
    records_for,
)

RECORDS_PER_POINT = 2 * BATCH_ROWS  # of a run's first batches, the second one is hit
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
def test_killed_at_every_point_of_a_commit_and_at_random(tmp_path: Path) -> None:
    """One home lives through all of it: a run that goes on after one kill meets the next one.
    `make soak` kills more often at random, and at other moments."""
    home = Home.create(tmp_path / "home")
    fill(home, RECORDS_PER_POINT * len(EXACT_POINTS) + records_for(WORKERS_KILLED))
    expected_outputs = undisturbed(home, tmp_path, BATCH_ROWS)
    for point, expected in EXACT_POINTS.items():
        strike_at(point, home, tmp_path)
        waits = under_way(home) and planned(home) >= published(home)
        found = (staged(home) > 0, waits, published(home) > done(home) + 1)
        assert found == expected, point
    assert published(home) >= len(EXACT_POINTS)
    kill_at_random(home, tmp_path, WORKERS_KILLED, random.Random(20))
    assert_as_if_nothing_had_happened(home, expected_outputs)
