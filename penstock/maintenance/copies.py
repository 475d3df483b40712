"""Copies of a home's databases, so that checking a home writes nothing to it.

Even reading a SQLite file in WAL mode writes beside it, and a registry catches up with the log. A
check should do neither, and on a read-only disk it cannot.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from penstock.errors import HomeError
from penstock.operators.journal_file import OPERATOR_JOURNAL
from penstock.operators.results_file import OPERATOR_RESULTS
from penstock.storage import NO_ROOM, Home, is_full, os_errors

_JOURNALS = ("-wal", "-journal")


@contextmanager
def with_copies(home: Home) -> Iterator[Home]:
    """The same home with copies of its databases; an unreadable one is left out."""
    with os_errors("copy the databases", Path(tempfile.gettempdir())):
        directory = tempfile.TemporaryDirectory(prefix="penstock-verify-")
    with directory as name:
        place, view = Path(name), Home(home.path, shared=home.shared)
        view.catalog_db = place / home.catalog_db.name
        view.registry_db = place / home.registry_db.name
        view.sources_db = place / home.sources_db.name
        for path in (home.catalog_db, home.registry_db, home.sources_db):
            _copy_if_readable(path, place / path.name)
        for path in (home.path / OPERATOR_RESULTS, home.path / OPERATOR_JOURNAL):
            _copy_if_readable(path, place / path.name)
        yield view


def _copy_if_readable(path: Path, target: Path) -> None:
    try:
        copy_database(path, target)
    except OSError as error:
        target.unlink(missing_ok=True)
        if is_full(error):
            raise HomeError(
                f"cannot copy {path.name}: {error.strerror}",
                detail=f"to {target.parent}",
                hint=f"{NO_ROOM}; or set TMPDIR to a directory on another one",
            ) from error


def copy_database(path: Path, target: Path) -> None:
    """A consistent copy, even if another process writes to it. Nothing is written beside the
    original.

    Without journals no process has the file open, and its bytes are complete.
    """
    if not _journals(path):
        before = _state(path)
        shutil.copyfile(path, target)
        if not _journals(path) and _state(path) == before:
            return
    try:
        source = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        with closing(source), closing(sqlite3.connect(target)) as copied:
            source.backup(copied)
    except sqlite3.Error:
        # Damaged, which other checks report; or on a read-only disk, where nobody writes.
        for part in (path, *_journals(path)):
            shutil.copyfile(part, target.with_name(part.name))


def _journals(path: Path) -> list[Path]:
    beside = [path.with_name(path.name + suffix) for suffix in _JOURNALS]
    return [journal for journal in beside if journal.exists() and journal.stat().st_size]


def _state(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns
