"""Runs of the pipeline whose processes are killed, one at a time, at any moment of a batch."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

from penstock.storage import Home
from tests.pipeline.disturbing import (
    PATIENCE_SECONDS,
    REFUSED,
    assert_java_is_missed,
    assert_nobody_else_reads,
    done,
    end,
    java,
    kill_one,
    outputs,
    said,
    start,
    under_way,
    wait_until,
)

BATCH_ROWS = 10
RECORDS_PER_VICTIM = 24
"""A kill takes a batch or two, and each needs one to hit."""
LONGEST_WAIT_SECONDS = 0.3  # a batch takes at least as long
MOST_STARTS = 1 + 2 + 3
"""A worker that is killed does not end a run, unless the same task is hit again and again."""


class Restarted:
    """A run that is started again whenever it has ended."""

    def __init__(self, home: Home, directory: Path) -> None:
        self._home = home
        self._directory = directory
        self.starts = 0
        self._start()

    def _start(self) -> None:
        (self._directory / "said.txt").touch()
        self._said_before = said(self._directory)
        self.process = start(self._home, self._directory, BATCH_ROWS)
        self.starts += 1
        assert self.starts <= MOST_STARTS, said(self._directory)

    def see_to_it(self) -> None:
        """Start it again if it has ended before the log has, which it may in one of two ways."""
        code = self.process.poll()
        if code:
            assert code in (REFUSED, -signal.SIGKILL), said(self._directory)
            self._start()

    @property
    def has_finished(self) -> bool:
        return self.process.poll() == 0

    def strike(self, victim: str, chance: random.Random) -> None:
        """Kill one process at a random moment of a batch, and see what becomes of the run."""

        def struck() -> bool:
            self.see_to_it()
            if self.has_finished:
                return True  # this process was kept waiting so long that no batch was left to hit
            if not under_way(self._home):
                return False
            time.sleep(chance.uniform(0, LONGEST_WAIT_SECONDS))
            return under_way(self._home) and kill_one(victim, self.process, chance)

        wait_until(struck, victim)
        before = done(self._home)
        if self.has_finished:
            return
        if victim == "worker":
            ended = self.process
            wait_until(
                lambda: done(self._home) > before or ended.poll() is not None,
                "no batch ends after a worker was killed",
            )
        elif victim == "java":
            assert self.process.wait(PATIENCE_SECONDS) == REFUSED
            assert_java_is_missed(said(self._directory).removeprefix(self._said_before))
            assert_nobody_else_reads(self._home)
        else:
            self.process.wait(PATIENCE_SECONDS)
            wait_until(lambda: not java(self.process), "Java goes on without its driver")

    def finish(self) -> None:
        while self.process.wait(PATIENCE_SECONDS) != 0:
            self.see_to_it()


def kill_at_random(home: Home, directory: Path, workers: int, chance: random.Random) -> None:
    """Kill so many workers, Java once and the driver once, in any order, and let a last run come to
    the end of the log, which has room for all of it (`records_for`)."""
    victims = ["worker"] * workers + ["java", "driver"]  # whatever ends a run costs a start
    chance.shuffle(victims)
    restarted = Restarted(home, directory)
    try:
        for victim in victims:
            restarted.strike(victim, chance)
        restarted.finish()
    finally:
        end(restarted.process)


def records_for(workers: int) -> int:
    return RECORDS_PER_VICTIM * (workers + 2)


def assert_as_if_nothing_had_happened(home: Home, expected: dict[str, bytes]) -> None:
    assert outputs(home) == expected
    assert list(home.staging.iterdir()) == []
