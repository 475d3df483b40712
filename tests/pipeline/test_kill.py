"""A pipeline that is killed in the middle of batches leaves the same message log as any other."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from penstock.storage import Home
from tests.pipeline.disturbing import (
    PATIENCE_SECONDS,
    REFUSED,
    done,
    end,
    fill,
    java,
    kill_one,
    outputs,
    pipeline_process,
    planned,
    published,
    said,
    staged,
    start,
    under_way,
    undisturbed,
    wait_until,
)

BATCH_ROWS = 10

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


VICTIMS = ["worker"] * 18 + ["java", "driver"]  # whatever ends a run costs a start
LONGEST_WAIT_SECONDS = 0.3  # a batch takes at least as long
MOST_STARTS = 1 + 2 + 3
"""A worker that is killed does not end a run, unless the same task is hit again and again."""


class Restarted:
    """A run that is started again whenever it has ended."""

    def __init__(self, home: Home, directory: Path) -> None:
        self._home = home
        self._directory = directory
        self.process = start(home, directory, BATCH_ROWS)
        self.starts = 1

    def see_to_it(self) -> None:
        """Start it again if it has ended, which it may only in one of two ways."""
        if self.process.poll() is not None:
            assert self.process.returncode in (REFUSED, -signal.SIGKILL), said(self._directory)
            self.process = start(self._home, self._directory, BATCH_ROWS)
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
@pytest.mark.spark
def test_killed_twenty_times_at_random(tmp_path: Path) -> None:
    """Workers, Java and the driver, one at a time, at any moment of a batch."""
    home = Home.create(tmp_path / "home")
    fill(home, 330)
    expected = undisturbed(home, tmp_path, BATCH_ROWS)
    chance = random.Random(20)
    victims = chance.sample(VICTIMS, len(VICTIMS))
    restarted = Restarted(home, tmp_path)
    try:
        for victim in victims:
            restarted.strike(victim, chance)
        restarted.finish()
    finally:
        end(restarted.process)

    assert outputs(home) == expected
    assert list(home.staging.iterdir()) == []
