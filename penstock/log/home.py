"""The home: the directory of one Penstock instance.

penstock.json   what this is, and the version of its layout
log/            the one log: everything else can be derived from it
messages/       the message log, one file per batch
quarantine/     events that could not be applied
catalog.db      tables and streams, derived from the log
registry.db     subscriptions, derived from the log
checkpoint/     the progress and the state of the pipeline
staging/        output of a batch that is not published yet
snapshots/      indexes of subscriptions
processing.lock who processes this home at the moment
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from penstock.errors import HomeError, LockedError
from penstock.log.disk import locked_within, os_errors, sync_directory, write_aside
from penstock.log.log import Log
from penstock.log.messagelog import MessageLog
from penstock.log.quarantine import Quarantine

LAYOUT_VERSION = 1

_MARKER = "penstock.json"
_LOCK_NAME = "processing.lock"
_DIRECTORIES = ("log", "messages", "quarantine", "checkpoint", "staging", "snapshots")


class _Marker(msgspec.Struct):
    penstock_home: int
    created: str


class _Holder(msgspec.Struct):
    """What the lock file says of the process that holds it."""

    who: str
    pid: int
    since: str


class Home:
    """The places of one instance. `Home.open` checks that it is one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = Log(path / "log")
        self.messages = MessageLog(path / "messages", path / "quarantine")
        self.catalog_db = path / "catalog.db"
        self.registry_db = path / "registry.db"
        self.checkpoint = path / "checkpoint"
        self.staging = path / "staging"
        self.snapshots = path / "snapshots"

    @property
    def quarantine(self) -> Quarantine:
        return self.messages.quarantine

    @classmethod
    def create(cls, path: Path | str) -> Home:
        """Make a new home in a directory that is empty or not there yet."""
        path = Path(path)
        with os_errors("create the home", path):
            path.mkdir(parents=True, exist_ok=True)
            _check_unused(path)
            for name in _DIRECTORIES:
                (path / name).mkdir(exist_ok=True)
            created = datetime.now(UTC).isoformat(timespec="seconds")
            # The marker comes last: a directory that has it is a whole home.
            write_aside(path / _MARKER, msgspec.json.encode(_Marker(LAYOUT_VERSION, created)))
            sync_directory(path.absolute().parent)
        return cls(path)

    @classmethod
    def open(cls, path: Path | str) -> Home:
        """The home at that path; HomeError if there is none that this release can use."""
        path = Path(path)
        try:
            marker = msgspec.json.decode((path / _MARKER).read_bytes(), type=_Marker)
        except (FileNotFoundError, NotADirectoryError):
            what = "is not a penstock home" if path.exists() else "does not exist"
            raise HomeError(f"{path} {what}", hint=f"make one: penstock init {path}") from None
        except OSError as error:
            raise HomeError(f"cannot open {path}: {error.strerror}") from error
        except msgspec.DecodeError as error:
            raise HomeError(
                f"{path} is not a penstock home", detail=f"{_MARKER}: {error}"
            ) from None
        if marker.penstock_home != LAYOUT_VERSION:
            raise HomeError(
                f"{path} has layout version {marker.penstock_home}",
                detail=f"this release knows version {LAYOUT_VERSION}",
                hint="use the release that made it, or a newer one",
            )
        missing = [name for name in _DIRECTORIES if not (path / name).is_dir()]
        if missing:
            raise HomeError(
                f"{path} lacks its directory {missing[0]}", hint="was it moved in part?"
            )
        return cls(path)

    @contextmanager
    def processing_lock(self, who: str) -> Iterator[None]:
        lock = self.path / _LOCK_NAME
        with os_errors("lock the home", lock):
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            with os_errors("lock the home", lock):
                if not locked_within(descriptor, timeout_seconds=0.0):
                    raise _held(self.path, os.pread(descriptor, 4096, 0))
                since = datetime.now(UTC).isoformat(timespec="seconds")
                holder = msgspec.json.encode(_Holder(who, os.getpid(), since))
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, holder, 0)
                self.messages.sweep()
            yield
        finally:
            os.close(descriptor)


def _check_unused(path: Path) -> None:
    if (path / _MARKER).exists():
        raise HomeError(f"{path} already is a penstock home", hint="use it, or choose another path")
    for entry in sorted(path.iterdir()):
        # Empty directories of ours are what a crash in the middle of `create` leaves.
        ours = entry.name in _DIRECTORIES and entry.is_dir() and not any(entry.iterdir())
        if not ours and not entry.name.startswith(f"{_MARKER}."):
            raise HomeError(
                f"{path} is not empty",
                detail=f"it holds {entry.name}",
                hint="a home needs a directory of its own",
            )


def _held(path: Path, content: bytes) -> LockedError:
    try:
        holder = msgspec.json.decode(content, type=_Holder)
        by = f"{holder.who} (process {holder.pid})"
        detail = f"since {holder.since}"
    except msgspec.DecodeError:
        by, detail = "another process", ""
    return LockedError(
        f"{path} is being processed by {by}",
        detail=detail,
        hint="a home is processed by one Hub or one pipeline at a time: stop that one first",
    )
