"""Witnesses of how far a log went. A log that lost its end looks like a shorter one; appending to
it would reuse the offsets of acknowledged records."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from penstock.errors import CorruptionError

LOST_HINT = (
    "restore the log from a backup; if they are gone for good, go on without them: "
    "penstock rebuild HOME --accept-loss"
)
"""What to do about acknowledged records that are missing."""

_BUSY_SECONDS = 1.0  # a writer of a shared home excludes readers; then this witness is skipped


class Witness(NamedTuple):
    """Evidence that all records before an offset once existed."""

    offset: int
    says: str
    """For instance: were acknowledged."""


def check_witnesses(end: int, witnesses: Iterable[Witness], where: Path) -> None:
    """CorruptionError if records are missing at the end of a log that ends at `end`."""
    last = max(witnesses, default=None)
    if last is not None and last.offset > end:
        raise lost_end(end, last, where)


def lost_end(end: int, witness: Witness, where: Path) -> CorruptionError:
    return CorruptionError(
        f"the log ends at offset {end}, but {witness.offset} records {witness.says}",
        detail=f"records are missing at the end of the log: {where}",
        hint=LOST_HINT,
    )


def read_applied(path: Path) -> int | None:
    """How many records a derived database has applied; None if that cannot be determined."""
    if not path.exists():
        return None
    try:
        # Nothing is written, but a read-only connection would leave SQLite's journals behind.
        place = f"{path.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(place, uri=True, timeout=_BUSY_SECONDS)) as database:
            (applied,) = database.execute("SELECT applied FROM progress").fetchone()
    except (sqlite3.Error, UnicodeDecodeError, TypeError, ValueError):
        return None
    return applied if isinstance(applied, int) else None
