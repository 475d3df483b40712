"""Watching a directory: complete files are taken, once each, and put aside.

A file is complete when nobody has touched it for a while. Those who cannot promise to write without
pauses give it a name that begins with a dot or an underscore and rename it when it is done.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.engine.changes import Op
from penstock.errors import BacklogError, HomeError
from penstock.log import Home
from penstock.log.disk import os_errors, sync_directory
from penstock.sources.dropped import (
    REFUSED_DIRECTORY,
    TAKEN_DIRECTORY,
    Dropped,
    dropped_files,
)
from penstock.sources.taking import Taker, Took

SETTLE_SECONDS = 2.0
LOOK_EVERY_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class WatchSummary:
    """What was done with a directory."""

    files: int = 0
    events: int = 0
    refused: int = 0

    def plus(self, took: Took) -> WatchSummary:
        bad = bool(took.refused)
        return WatchSummary(self.files + 1, self.events + took.events, self.refused + bad)


class Watcher:
    """Takes what is in one directory into one home. For one thread."""

    def __init__(
        self,
        home: Home,
        directory: Path,
        *,
        op: Op = Op.INSERT,
        keep: bool = False,
        settle_seconds: float = SETTLE_SECONDS,
    ) -> None:
        if not directory.is_dir():
            raise HomeError(f"{directory} is not a directory", hint="make it, then watch it")
        self._taker = Taker(home, op)
        self._directory = directory
        self._keep = keep
        self._settle_seconds = settle_seconds
        self._seen: dict[str, tuple[Dropped, float]] = {}
        self._done: set[Dropped] = set()

    def close(self) -> None:
        self._taker.close()

    @property
    def waiting(self) -> bool:
        """Whether there are files that may not be complete yet."""
        return any(file not in self._done for file in dropped_files(self._directory))

    def look(self) -> Iterator[Took]:
        """Take every file that is complete by now, as they are asked for."""
        now = time.monotonic()
        found = dropped_files(self._directory)
        self._done &= set(found)
        settled = [f for f in found if f not in self._done and self._is_settled(f, now)]
        self._seen = {file.name: self._seen[file.name] for file in found if file.name in self._seen}
        yield from map(self._take, settled)

    def _is_settled(self, file: Dropped, now: float) -> bool:
        """Whether the file has looked the same for long enough: by our own clock, and by its."""
        if self._seen.get(file.name, (None,))[0] != file:
            self._seen[file.name] = (file, now)
        quiet = now - self._seen[file.name][1]
        age = time.time() - file.modified_ns / 1e9
        return max(quiet, age) >= self._settle_seconds

    def _take(self, file: Dropped) -> Took:
        path = self._directory / file.name
        took = self._taker.take(path, file.name)
        if self._keep:
            self._done.add(file)
        else:
            put_aside(path, self._directory, REFUSED_DIRECTORY if took.refused else TAKEN_DIRECTORY)
        return took


def put_aside(path: Path, directory: Path, kind: str) -> Path:
    """Move a file out of the way, under a name that is free."""
    target = directory / kind / path.relative_to(directory)
    with os_errors("put the file aside", path):
        target.parent.mkdir(parents=True, exist_ok=True)
        number = 1
        while target.exists():
            target = target.with_name(f"{path.stem}.{number}{path.suffix}")
            number += 1
        path.rename(target)
        sync_directory(target.parent)
    return target


def watch(
    home: Home,
    directory: Path,
    *,
    once: bool = False,
    op: Op = Op.INSERT,
    keep: bool = False,
    settle_seconds: float = SETTLE_SECONDS,
    on_file: Callable[[Took], None] | None = None,
    stop: threading.Event | None = None,
) -> WatchSummary:
    """Take files until `stop` is set; or, `once`, until those that are there are taken.

    While the log is too far ahead of its processing nothing is taken: `once`, BacklogError says so.
    """
    stop = stop or threading.Event()
    summary = WatchSummary()
    watcher = Watcher(home, directory, op=op, keep=keep, settle_seconds=settle_seconds)
    try:
        while not stop.is_set():
            try:
                for took in watcher.look():
                    summary = summary.plus(took)
                    if on_file is not None:
                        on_file(took)
            except BacklogError:
                if once:
                    raise  # nobody may be there to catch up
            if once and not watcher.waiting:
                break
            stop.wait(LOOK_EVERY_SECONDS)
    finally:
        watcher.close()
    return summary
