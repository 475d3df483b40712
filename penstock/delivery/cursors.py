"""Durable cursors: how far deliveries have been acknowledged, in files of the home.

One small file per named delivery, replaced atomically and synced. A cursor is always the end of a
batch, so continuing from it misses nothing; what was sent and not acknowledged is sent again, with
the same ids. Compaction keeps what cursors still need.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from zlib import crc32

import msgspec

from penstock.arguments import shown
from penstock.client import BEGINNING
from penstock.errors import CorruptionError, HomeError, LockedError
from penstock.packing import pack
from penstock.storage import (
    Home,
    Offset,
    file_lock,
    make_directory,
    os_errors,
    sync_directory,
    write_aside,
)

DIRECTORY = "cursors"
SUFFIX = ".cursor"
LAYOUT = 1
MAX_CURSORS = 100_000
"""Per home: a directory of this many small files is still listed in about 0.1 s."""
MAX_NAME_CHARACTERS = 100  # well below the limit of file systems (255), with the suffix of a lock
MAX_ERROR_CHARACTERS = 500

_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{MAX_NAME_CHARACTERS - 1}}}")
_LOCK_SUFFIX = ".lock"


class CursorState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All state of one delivery. There is no queue: everything else is in the message log."""

    name: str
    subscription: Offset
    cursor: Offset = BEGINNING
    """Everything before it was acknowledged."""
    generation: int = 1
    """Raised when the cursor is reset: acknowledgements of an earlier generation no longer
    count."""
    next_attempt: float | None = None
    """Seconds since 1970 before which nothing is sent, after a failure."""
    failures: int = 0
    """Attempts that failed since the last acknowledgement."""
    is_suspended: bool = False
    """Set after too many failures: it must be resumed by hand."""
    last_error: str = ""
    target: str = ""
    """Its destination, for display."""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    penstock_cursor: int
    state: CursorState
    checksum: int


_DECODER = msgspec.json.Decoder(_File)


class DurableCursors:
    """The cursors of a home. Any number of processes may read them; a delivery holds the lock of
    its cursor while it runs."""

    def __init__(self, home: Home) -> None:
        self.directory = home.path / DIRECTORY

    def all(self) -> list[CursorState]:
        """All cursors, by name. CorruptionError if one is damaged."""
        return [self._read(path) for path in cursor_files(self.directory)]

    def get(self, name: str) -> CursorState | None:
        path = self._path(name)
        return self._read(path) if path.exists() else None

    def save(self, state: CursorState) -> None:
        """Durable when this returns. LockedError if the cursor was reset since."""
        path = self._path(state.name)
        known = self.get(state.name)
        if known is None:
            self._check_room()
        elif known.generation > state.generation:
            raise LockedError(
                f"cursor {state.name} was set to another place in the meantime",
                detail=f"it is of generation {known.generation} now, not {state.generation}",
                hint="start the delivery again",
            )
        with os_errors("save a cursor", path):
            self._make_directory()
            file = _File(LAYOUT, state, _checksum(state))
            write_aside(path, msgspec.json.encode(file), b"\n")

    def remove(self, name: str) -> None:
        """HomeError if there is none; LockedError while a delivery runs."""
        with self.lock(name):
            path = self._path(name)
            if not path.exists():
                raise no_cursor(name)
            with os_errors("remove a cursor", path):
                path.unlink()
                sync_directory(self.directory)

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """The exclusive right to deliver under a name."""
        path = self._path(name)
        with os_errors("lock a cursor", path):
            self._make_directory()
        refusal = LockedError(
            f"another process delivers under cursor {name}",
            hint="stop that one first, or choose another name",
        )
        with file_lock(path.with_suffix(_LOCK_SUFFIX), 0.0, refusal):
            yield

    def _make_directory(self) -> None:
        if not self.directory.exists():
            make_directory(self.directory)
            sync_directory(self.directory.parent)

    def _check_room(self) -> None:
        if len(cursor_files(self.directory)) >= MAX_CURSORS:
            raise HomeError(
                f"the home has {MAX_CURSORS:,} cursors already",
                hint="remove those that are no longer used: penstock cursors HOME --remove NAME",
            )

    def _path(self, name: str) -> Path:
        return self.directory / f"{cursor_name(name)}{SUFFIX}"

    def _read(self, path: Path) -> CursorState:
        return read_cursor(path)


def read_cursor(path: Path) -> CursorState:
    """The cursor in a file; CorruptionError if it is not as it was written."""
    with os_errors("read a cursor", path):
        content = path.read_bytes()
    try:
        file = _DECODER.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _damaged(path, str(error)) from None
    if file.penstock_cursor != LAYOUT:
        raise HomeError(
            f"{path.name} is a cursor of version {file.penstock_cursor}",
            detail=f"this release reads version {LAYOUT}: {path}",
            hint="use the release that wrote it, or a newer one",
        )
    if file.checksum != _checksum(file.state) or f"{file.state.name}{SUFFIX}" != path.name:
        raise _damaged(path, "its checksum is wrong")
    return file.state


def cursor_files(directory: Path) -> list[Path]:
    """The cursor files, by name."""
    with suppress(FileNotFoundError), os.scandir(directory) as entries:
        return sorted(Path(one.path) for one in entries if one.name.endswith(SUFFIX))
    return []


def cursor_name(name: object) -> str:
    """A name that can be part of a file name; else HomeError."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise HomeError(
            f"a cursor cannot be called {shown(name)}",
            hint=f"up to {MAX_NAME_CHARACTERS} letters, digits, dots, dashes and underscores",
        )
    return name


def no_cursor(name: str) -> HomeError:
    return HomeError(f"there is no cursor {name}", hint="penstock cursors HOME lists them")


def _damaged(path: Path, why: str) -> CorruptionError:
    return CorruptionError(
        f"the cursor in {path.name} is damaged: {why}",
        detail=f"file {path}",
        hint="remove this file and deliver again from the content: nothing else is lost",
    )


def _checksum(state: CursorState) -> int:
    return crc32(pack(msgspec.structs.astuple(state)))
