"""Accepting the loss of acknowledged records, on explicit request.

Offsets identify records: messages, subscriptions and cursors refer to them. So the offsets of lost
records stay occupied (records of kind LOST), and everything derived from the lost records is moved
aside, to be derived again from what is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from penstock.errors import CorruptionError
from penstock.storage.acknowledged import write_acknowledged
from penstock.storage.disk import os_errors, sync_directory, write_aside
from penstock.storage.file_access import make_directory
from penstock.storage.home import Home
from penstock.storage.log_segment import SEGMENT_SUFFIX

MAX_LOST_RECORDS = 100_000_000  # at 3 bytes each, 300 MB of log; more suggests a damaged witness
ASIDE = "lost"
"""The subdirectory of a home for what was moved aside."""


@dataclass(frozen=True, slots=True)
class Loss:
    """The records of [start, end) are lost."""

    start: int
    end: int
    batches: int
    """Batches of messages derived from them, at least in part; they were moved aside."""
    aside: Path


def accept_loss(home: Home) -> Loss:
    """Continue without the records missing at the end of the log. LockedError while a process is
    processing the home. Safe to repeat after a crash: until it has finished, the log refuses
    appends."""
    with home.processing_lock("rebuild", check=False):
        start, end = home.log.end, home.log.reached
        aside = home.path / ASIDE / f"{start:020d}-{end:020d}"
        if start == end:
            return Loss(start, end, 0, aside)
        _check_acceptable(home, start, end)
        with os_errors("put aside what came from lost records", home.path):
            home.log.lock_path.touch()
            # From here on, this number is the only witness of the loss.
            write_acknowledged(home.log.lock_path, end)
            batches = _put_derived_aside(home, start, aside)
        home.log.fill(end)
        return Loss(start, end, batches, aside)


def _check_acceptable(home: Home, start: int, end: int) -> None:
    restore = "restore all of the home from one backup"
    if end - start > MAX_LOST_RECORDS:
        raise CorruptionError(
            f"{end - start} records would be lost, which is too many to go on without",
            detail=f"the log ends at offset {start}; at most {MAX_LOST_RECORDS} can be given up",
            hint=restore,
        )
    base = home.messages.base
    if base is not None and base.end > start:
        raise CorruptionError(
            f"the home was compacted up to offset {base.end}, and the log ends at {start}",
            detail="messages before that offset cannot be made again from what is left",
            hint=restore,
        )


def _put_derived_aside(home: Home, start: int, aside: Path) -> int:
    """Move aside what may be derived from records after `start`; the databases are rebuilt when
    they are opened next."""
    make_directory(aside.parent)
    make_directory(aside)
    for segment in sorted(home.log.directory.glob(f"*{SEGMENT_SUFFIX}"))[-1:]:
        # Its torn tail will be cut off, and may be most of what is lost.
        write_aside(_free(aside / segment.name), segment.read_bytes())
    for database in (home.catalog_db, home.registry_db, home.sources_db):
        for path in home.path.glob(f"{database.name}*"):
            path.rename(_free(aside / path.name))
    for directory in (home.checkpoint, home.snapshots):
        make_directory(aside / directory.name)
        for path in directory.iterdir():
            path.rename(_free(aside / directory.name / path.name))
    batches = home.messages.put_aside(start, aside)
    for directory in (home.path, aside, home.messages.directory, home.quarantine.directory):
        sync_directory(directory)
    return batches


def _free(path: Path) -> Path:
    """An unused name. A crashed attempt may have moved the same file aside with more in it: since
    then a torn tail was cut off, or a database rebuilt."""
    number, free = 1, path
    while free.exists():
        free, number = path.with_name(f"{path.name}.{number}"), number + 1
    return free
