"""A pipeline that is killed in the middle of batches leaves the same message log as any other."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.log import Home
from penstock.pipeline.run import run
from penstock.pipeline.sink import sweep_staging
from tests.pipeline.disturbing import (
    PATIENCE_SECONDS,
    REFUSED,
    done,
    end,
    java,
    kill_one,
    outputs,
    pipeline_process,
    planned,
    published,
    said,
    staged,
    start,
    state_versions,
    twins,
    under_way,
    wait_until,
)

KILLS = 5
BATCH_ROWS = 25

# Where in a batch to strike: each is true from some point of a batch on.
POINTS: dict[str, tuple[Callable[[Home], int], int]] = {
    "planned": (planned, 1),
    "state written": (state_versions, 1),
    "staged": (staged, 1),
    "published": (published, 1),
    "planned, two batches later": (planned, 3),
}


def kill_at(point: str, home: Home, directory: Path) -> bool:
    """Run until a point of a batch, then kill everything; whether a batch was under way."""
    measure, increase = POINTS[point]
    sweep_staging(home.staging)
    enough = measure(home) + increase
    with pipeline_process(home, directory, BATCH_ROWS) as process:

        def reached() -> bool:
            assert process.poll() is None, f"it ended before it was {point}"
            return measure(home) >= enough

        wait_until(reached, point)
    return under_way(home)


@pytest.mark.slow
def test_killed_five_times_in_the_middle_of_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    disturbed, undisturbed = twins(tmp_path)
    hits = 0
    points = list(POINTS)
    for attempt in range(2 * KILLS):
        point = points[attempt % len(points)]
        hits += kill_at(point, disturbed, tmp_path)
        if hits == KILLS:
            break
    assert hits == KILLS
    assert 2 <= published(disturbed) < 8

    run(disturbed.path, once=True, batch_rows=BATCH_ROWS)
    run(undisturbed.path, once=True, batch_rows=BATCH_ROWS)
    assert outputs(disturbed) == outputs(undisturbed)
    assert published(disturbed) > 8
    assert list(disturbed.staging.iterdir()) == []


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
def test_killed_at_every_point_of_a_commit(spark: SparkSession, tmp_path: Path) -> None:
    disturbed, undisturbed = twins(tmp_path, records=300)
    for point, expected in EXACT_POINTS.items():
        strike_at(point, disturbed, tmp_path)
        waits = under_way(disturbed) and planned(disturbed) >= published(disturbed)
        found = (staged(disturbed) > 0, waits, published(disturbed) > done(disturbed) + 1)
        assert found == expected, point
    assert published(disturbed) >= len(EXACT_POINTS)

    run(disturbed.path, once=True, batch_rows=BATCH_ROWS)
    run(undisturbed.path, once=True, batch_rows=BATCH_ROWS)
    assert outputs(disturbed) == outputs(undisturbed)
    assert list(disturbed.staging.iterdir()) == []


VICTIMS = ["worker"] * 16 + ["java"] * 2 + ["driver"] * 2  # whatever ends a run costs a start
SMALL_BATCH_ROWS = 10
LONGEST_WAIT_SECONDS = 0.3  # a batch takes at least as long
MOST_STARTS = 1 + 4 + 3
"""A worker that is killed does not end a run, unless the same task is hit again and again."""


class Restarted:
    """A run that is started again whenever it has ended."""

    def __init__(self, home: Home, directory: Path) -> None:
        self._home = home
        self._directory = directory
        self.process = start(home, directory, SMALL_BATCH_ROWS)
        self.starts = 1

    def see_to_it(self) -> None:
        """Start it again if it has ended, which it may only in one of two ways."""
        if self.process.poll() is not None:
            assert self.process.returncode in (REFUSED, -signal.SIGKILL), said(self._directory)
            self.process = start(self._home, self._directory, SMALL_BATCH_ROWS)
            self.starts += 1
            assert self.starts <= MOST_STARTS, said(self._directory)

    def strike(self, victim: str, chance: random.Random) -> None:
        """Kill one process at a random moment of a batch, and see what becomes of the run."""

        def struck() -> bool:
            self.see_to_it()
            if not under_way(self._home):
                return False
            time.sleep(chance.uniform(0, LONGEST_WAIT_SECONDS))
            return under_way(self._home) and kill_one(victim, self.process, chance)

        wait_until(struck, victim)
        before = done(self._home)
        if victim == "worker":
            ended = self.process
            wait_until(
                lambda: done(self._home) > before or ended.poll() is not None,
                "no batch ends after a worker was killed",
            )
        elif victim == "java":
            assert self.process.wait(PATIENCE_SECONDS) == REFUSED
            assert "Java process has ended" in said(self._directory)
        else:
            self.process.wait(PATIENCE_SECONDS)
            wait_until(lambda: not java(self.process), "Java goes on without its driver")

    def finish(self) -> None:
        while self.process.wait(PATIENCE_SECONDS) != 0:
            self.see_to_it()


@pytest.mark.slow
def test_killed_twenty_times_at_random(spark: SparkSession, tmp_path: Path) -> None:
    """Workers, Java and the driver, one at a time, at any moment of a batch."""
    disturbed, undisturbed = twins(tmp_path, records=400)
    chance = random.Random(20)
    victims = chance.sample(VICTIMS, len(VICTIMS))
    restarted = Restarted(disturbed, tmp_path)
    try:
        for victim in victims:
            restarted.strike(victim, chance)
        restarted.finish()
    finally:
        end(restarted.process)

    run(undisturbed.path, once=True, batch_rows=SMALL_BATCH_ROWS)
    assert outputs(disturbed) == outputs(undisturbed)
    assert list(disturbed.staging.iterdir()) == []
