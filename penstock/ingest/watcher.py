"""Watches a directory: complete files are ingested once each, then moved away.

A file is complete when it has not been touched for a while. Writers that may pause longer should
use a name that begins with a dot or an underscore and rename the file when it is done.

Nothing in the directory stops the watcher: what is not a regular file, cannot be read, or cannot be
moved is reported once and skipped.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.errors import BacklogError, HomeError, InputError
from penstock.flow.changes import Op
from penstock.ingest.directories import move_file, open_dropped
from penstock.ingest.directory_listing import (
    REFUSED_DIRECTORY,
    TAKEN_DIRECTORY,
    DroppedFile,
    list_directory,
    list_files,
)
from penstock.ingest.file_ingest import FileIngest, IngestResult
from penstock.ingest.input_files import shown_name
from penstock.storage import Home, home_around

SETTLE_SECONDS = 2.0
MAX_SETTLE_SECONDS = 86_400.0
"""A day: for writers with longer pauses, rename complete files instead."""
LOOK_EVERY_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class WatchSummary:
    """What was done with a directory."""

    files: int = 0
    events: int = 0
    refused: int = 0
    left: int = 0
    """Links, pipes and others with names of input files, and files without read permission."""

    def plus(self, took: IngestResult) -> WatchSummary:
        if took.left and not took.events and not took.refused:
            return replace(self, left=self.left + 1)
        bad = bool(took.refused)
        return replace(
            self,
            files=self.files + 1,
            events=self.events + took.events,
            refused=self.refused + bad,
        )


class Watcher:
    """Ingests the files of one directory into one home. For one thread."""

    def __init__(
        self,
        home: Home,
        directory: Path,
        *,
        op: Op = Op.INSERT,
        keep: bool = False,
        settle_seconds: float = SETTLE_SECONDS,
    ) -> None:
        if not 0 <= settle_seconds <= MAX_SETTLE_SECONDS:  # nor NaN
            raise InputError(
                f"a file settles in 0 to {MAX_SETTLE_SECONDS:,.0f} seconds, not {settle_seconds}"
            )
        if not directory.is_dir():
            raise HomeError(f"{directory} is not a directory", hint="make it, then watch it")
        inside = home_around(directory)
        if inside is not None:
            raise HomeError(
                f"{directory} belongs to the home {inside}: its files must not be taken away",
                hint="watch a directory of its own",
            )
        self._taker = FileIngest(home, op)
        self._directory = directory
        self._keep = keep
        self._settle_seconds = settle_seconds
        self._seen: dict[str, tuple[DroppedFile, float]] = {}
        self._done: set[DroppedFile] = set()
        self._unreadable: set[DroppedFile] = set()
        self._told: dict[str, str] = {}

    def close(self) -> None:
        self._taker.close()

    @property
    def waiting(self) -> bool:
        """Whether there are files that may not be complete yet."""
        settled = self._done | self._unreadable
        return any(file not in settled for file in list_files(self._directory))

    def look(self) -> Iterator[IngestResult]:
        """Ingest every file that is complete by now, lazily."""
        now = time.monotonic()
        found = list_directory(self._directory)
        files = found.files
        self._done &= set(files)
        self._unreadable &= set(files)
        settled = [f for f in files if f not in self._done and self._is_settled(f, now)]
        self._seen = {file.name: self._seen[file.name] for file in files if file.name in self._seen}
        yield from self._left_alone(found.left)
        for file in settled:
            took = self._take(file)
            if took is not None:
                yield took

    def _left_alone(self, left: dict[str, str]) -> Iterator[IngestResult]:
        """Skipped entries, each reported once."""
        for name in sorted(left.keys() - self._told.keys()):
            yield IngestResult(shown_name(name), 0, left=left[name])
        self._told = left

    def _is_settled(self, file: DroppedFile, now: float) -> bool:
        """Whether the file has been unchanged for long enough: by our own clock, and by its."""
        if self._seen.get(file.name, (None,))[0] != file:
            self._seen[file.name] = (file, now)
        quiet = now - self._seen[file.name][1]
        age = time.time() - file.modified_ns / 1e9
        return max(quiet, age) >= self._settle_seconds

    def _take(self, file: DroppedFile) -> IngestResult | None:
        """The outcome for a file; None if it is gone, or is unreadable and was reported before."""
        try:
            with open_dropped(self._directory, file.name) as source:
                took = self._taker.take(source, file.name)
        except InputError as error:
            if error.is_gone or file in self._unreadable:
                return None
            self._unreadable.add(file)  # retried on every look, without a report
            return IngestResult(shown_name(file.name), 0, left=error.primary)
        self._unreadable.discard(file)
        if self._keep:
            self._done.add(file)
            return took
        return replace(took, left=self._put_aside(file, took))

    def _put_aside(self, file: DroppedFile, took: IngestResult) -> str:
        """Move a file away; returns why it stays, if it does. It is in the ledger then, and not
        ingested again."""
        try:
            put_aside(self._directory, file, REFUSED_DIRECTORY if took.refused else TAKEN_DIRECTORY)
        except FileNotFoundError:
            return ""  # another process has moved it
        except OSError as error:
            self._done.add(file)
            return f"it could not be moved: {error.strerror}"
        return ""


def put_aside(directory: Path, file: DroppedFile, kind: str) -> None:
    """Move a file away, under a free name."""
    move_file(directory, file.name, kind, file.inode)


def watch(
    home: Home,
    directory: Path,
    *,
    once: bool = False,
    op: Op = Op.INSERT,
    keep: bool = False,
    settle_seconds: float = SETTLE_SECONDS,
    on_file: Callable[[IngestResult], None] | None = None,
    stop: threading.Event | None = None,
) -> WatchSummary:
    """Ingest files until `stop` is set or, with `once`, until the existing ones are ingested.

    Waits while the log is too far ahead of its processing; with `once`, raises BacklogError.
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
                    raise  # nothing may be processing the log
            if once and not watcher.waiting:
                break
            stop.wait(LOOK_EVERY_SECONDS)
    finally:
        watcher.close()
    return summary
