"""Whoever rolls batch files can be killed at any step, and nothing is lost."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import shutil
import signal
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from penstock.storage import BatchHeader
from tests.storage.rolling import roll_early
from tests.storage.test_rolling import assert_all_there, batch, opened, publish


class Crash(BaseException):
    """A process that is killed: nothing of ours catches it."""


STEPS = (
    "os.fsync",
    "pathlib.Path.replace",
    "pathlib.Path.unlink",
    "penstock.storage.disk.sync_directory",
)


def killing(step: str, number: int, *, after: bool) -> tuple[Any, str, Callable[..., object]]:
    """The function of a step, made to kill at its call of that number."""
    module, _, name = step.rpartition(".")
    owner: Any = importlib.import_module(module) if module != "pathlib.Path" else Path
    real, calls = getattr(owner, name), count()

    def function(*arguments: object, **options: object) -> object:
        is_it = next(calls) == number
        if is_it and not after:
            raise Crash
        result: object = real(*arguments, **options)
        if is_it:
            raise Crash
        return result

    return owner, name, function


@pytest.mark.slow
@pytest.mark.usefixtures("early")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", STEPS)
def test_a_kill_at_each_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, after: bool
) -> None:
    """Of the publishing of a batch that makes two tiers roll, and of the next one."""
    full = 15  # three of four, of four each, and three single ones
    publish(opened(_made(tmp_path / "pattern")), 0, full)
    for number in count():
        left = Path(shutil.copytree(tmp_path / "pattern", tmp_path / str(number)))
        with monkeypatch.context() as patch:
            patch.setattr(*killing(step, number, after=after))
            try:
                publish(opened(left), full, full + 2)
            except Crash:
                pass
            else:
                assert number > 2
                break
        reader = opened(left)
        there = len(list(reader.batches()))
        assert there in (full, full + 1, full + 2)
        assert_all_there(reader, there)
        writer = opened(left)
        writer.sweep()
        assert_all_there(writer, there)
        assert writer._files.list_files().left_over == writer._files.list_files().others == []
        publish(writer, there, full + 20)
        assert_all_there(writer, full + 20)
        assert_all_there(opened(left), full + 20)


def _made(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def _publish_from(path: Path, begin: int) -> None:
    roll_early(pytest.MonkeyPatch(), 4)
    publish(opened(path), begin, 1_000_000)


def test_readers_beside_a_writer_that_is_killed(tmp_path: Path) -> None:
    """A reader that follows sees every batch once, in order, none that was there goes away."""
    follower, seen = opened(tmp_path), list[BatchHeader]()
    done = 0
    for _ in range(4):
        writer = multiprocessing.get_context("fork").Process(
            target=_publish_from, args=(tmp_path, done)
        )
        writer.start()
        until = done + 60
        while len(seen) < until:
            for header in follower.batches(seen[-1] if seen else None):
                assert follower.read(header) == batch(len(seen))[1]
                assert header == batch(len(seen))[0]
                seen.append(header)
            fresh = opened(tmp_path)
            frontier = fresh.frontier
            if seen:
                assert frontier is not None
                assert (frontier.start, frontier.end) >= (seen[-1].start, seen[-1].end)
                assert len(list(fresh.batches())) >= len(seen)
                old = seen[len(seen) // 2]
                assert follower.read(old) == batch(len(seen) // 2)[1]
            time.sleep(0.001)
        os.kill(writer.pid or 0, signal.SIGKILL)
        writer.join()
        follower.sweep()
        done = len(list(opened(tmp_path).batches()))
    assert_all_there(opened(tmp_path), done)
