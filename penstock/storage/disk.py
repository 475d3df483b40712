"""Crash-safe files: versioned headers, staging and renaming, syncing, locks."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from zlib import crc32

from penstock.errors import CorruptionError, HomeError, LockedError
from penstock.storage.file_access import open_file, open_new

TEMPORARY_SUFFIX = ".tmp"

NO_ROOM = "make room on that disk, then try again"

_TEMPORARY = re.compile(rf"\.\d+{re.escape(TEMPORARY_SUFFIX)}$")  # as `write_aside` names them
_FULL = (errno.ENOSPC, errno.EDQUOT)
_FIRST_WAIT_SECONDS = 0.001
_LONGEST_WAIT_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class FileFormat:
    """The first 16 bytes of a file: what it is, its version, and a checksum of both.

    These bytes have the same form in every version, so that an old release can tell a newer file
    from a damaged one.
    """

    name: str
    magic: bytes
    version: int
    """The newest version; older ones are readable as well."""
    SIZE: ClassVar[int] = 16

    def header(self, version: int | None = None) -> bytes:
        start = struct.pack("<8sI", self.magic, self.version if version is None else version)
        return start + struct.pack("<I", crc32(start))

    def check(self, raw: bytes, path: Path) -> int:
        """The version of a file with these first bytes. CorruptionError if it is not such a file;
        HomeError if this release does not know the version."""
        if len(raw) < self.SIZE:
            raise corrupt(path, len(raw), "the file header is cut short")
        magic, version, checksum = struct.unpack_from("<8sII", raw)
        if crc32(raw[: self.SIZE - 4]) != checksum:
            raise corrupt(path, 0, "the checksum of the file header is wrong")
        if magic != self.magic:
            raise corrupt(path, 0, f"this is not a {self.name}")
        if not 1 <= version <= self.version:
            known = "version 1" if self.version == 1 else f"versions 1 to {self.version}"
            raise HomeError(
                f"{path.name} is a {self.name} of version {version}",
                detail=f"this release reads {known}: {path}",
                hint="use the release that wrote it, or a newer one",
            )
        return int(version)


def corrupt(path: Path, position: int, why: str, *, hint: str = "") -> CorruptionError:
    return CorruptionError(
        f"{path.name} is damaged at byte {position}: {why}",
        detail=f"file {path}; nothing from there on has been read",
        hint=hint or "restore this file from a backup",
    )


def is_full(error: OSError) -> bool:
    """Whether a disk is full or a quota is exhausted."""
    return error.errno in _FULL


@contextmanager
def os_errors(doing: str, path: Path) -> Iterator[None]:
    """Converts errors of the operating system into PenstockErrors."""
    try:
        yield
    except OSError as error:
        hint = NO_ROOM if is_full(error) else ""
        primary = f"cannot {doing}: {error.strerror or str(error) or type(error).__name__}"
        raise HomeError(primary, detail=str(path), hint=hint) from error


def sync_if_writable(descriptor: int) -> None:
    """Sync what other processes wrote; on a read-only file system nothing needs it."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EINVAL):
            raise


def sync_directory(directory: Path) -> None:
    """Sync the names in a directory: a new or renamed file is durable only after this."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_aside(path: Path, *content: bytes | memoryview) -> None:
    """Create or replace a file atomically, even in a crash."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}{TEMPORARY_SUFFIX}")
    try:
        with open_new(temporary) as file:
            for part in content:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def sweep_temporary(directory: Path) -> int:
    """Remove what a crash left of `write_aside`; only for the single writer of the directory."""
    leftovers = [path for path in directory.iterdir() if _TEMPORARY.search(path.name)]
    for path in leftovers:
        path.unlink(missing_ok=True)
    return len(leftovers)


def read_beginning(path: Path, size: int) -> bytes:
    """The first bytes of a file, without the cost of a file object."""
    return read_part(path, 0, size)


def read_part(path: Path, position: int, size: int) -> bytes:
    """Up to `size` bytes of a file from a position on. OSError if it is not a regular file: opening
    a pipe would block (hence O_NONBLOCK), and a pipe has no positions."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        return os.pread(descriptor, size, position)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, content: bytes, position: int) -> None:
    view = memoryview(content)
    while view:
        written = os.pwrite(descriptor, view, position)
        position += written
        view = view[written:]


@contextmanager
def file_lock(path: Path, timeout_seconds: float, refusal: LockedError) -> Iterator[None]:
    """Hold a lock between processes (and threads); the system releases it if the process dies.

    The file is not removed: otherwise two processes could lock two different files of one name.
    """
    with os_errors("lock", path):
        descriptor = open_file(path, os.O_RDWR)
    try:
        if not locked_within(descriptor, timeout_seconds):
            raise refusal
        yield
    finally:
        os.close(descriptor)


def locked_within(descriptor: int, timeout_seconds: float) -> bool:
    deadline = time.monotonic() + timeout_seconds
    wait = _FIRST_WAIT_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT_SECONDS)
        else:
            return True
