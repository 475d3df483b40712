"""Converts SQLite errors into PenstockErrors: what is wrong, with which file, what to do."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from penstock.errors import CorruptionError, HomeError, LockedError, PenstockError
from penstock.storage import NO_ROOM

ROOM_BYTES = 1 << 20
"""A disk with less than 1 MiB free counts as full: SQLite needs 32 KiB beside each file, and
reports only "disk I/O error" when it does not get them."""

_PRIMARY = 0xFF  # extended result codes use the higher bytes
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_DAMAGED = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_CONSTRAINT,  # rows of the log are unique, so some are stored twice
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_ERROR,  # a statement of ours fails: tables are missing
)
_MAYBE_FULL = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
_NO_WAY = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)


def rebuild_hint(path: Path | None = None) -> str:
    """The hint for a damaged database; without its path, for any home."""
    home = "HOME" if path is None or path.parent == Path() else path.parent
    return f"make it again from the log: penstock rebuild {home}"


def damaged(path: Path | None, why: str) -> CorruptionError:
    return CorruptionError(
        f"{path} is damaged: {why}",
        detail="it is derived from the log, so nothing is lost",
        hint=rebuild_hint(path),
    )


def sqlite_failure(error: BaseException | None, path: Path | None) -> PenstockError:
    """The PenstockError for an error of the sqlite3 module on a file derived from the log."""
    cause, code = str(error), _code(error)
    if code in _BUSY:
        primary = f"another process keeps {path} locked"
        return LockedError(primary, detail=cause, hint="try again later")
    if code == sqlite3.SQLITE_FULL or (code in _MAYBE_FULL and path and lacks_room(path)):
        return HomeError(f"cannot write {path}: the disk is full", detail=cause, hint=NO_ROOM)
    if code in _NO_WAY:
        hint = "whoever uses a home must be allowed to write there: look at its permissions"
        return HomeError(f"cannot write {path}: it is read-only", detail=cause, hint=hint)
    if code in _DAMAGED or "decode" in cause:
        return damaged(path, cause)
    look = f"look at the disk and at the permissions of {path}; if they are well"
    return HomeError(f"cannot use {path}: {cause}", hint=f"{look}, {rebuild_hint(path)}")


def _code(error: BaseException | None) -> int:
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & _PRIMARY


def lacks_room(path: Path) -> bool:
    """Whether the disk of the file is full."""
    try:
        found = os.statvfs(path.parent)
    except OSError:
        return False
    no_names = found.f_files > 0 and found.f_favail == 0
    return no_names or found.f_bavail * found.f_frsize < ROOM_BYTES
