"""The interface to file storage: the few operations that the logs need.

The local file system is the first implementation. An object store could follow: `publish` is a put,
`names` a list, `read` a ranged get. It has no `append`: a frame of the log would be an object of
its own.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from penstock.errors import LockedError
from penstock.storage.disk import file_lock, read_part, sweep_temporary, write_all, write_aside


class FileStore(Protocol):
    """Files by name, in directories. All methods raise OSError on failure, and FileNotFoundError if
    there is no such file. Safe for any number of threads and processes.

    Publishing, appending, moving and removing are durable when they return.
    """

    def names(self, directory: Path) -> list[str]:
        """The names in a directory, in any order. A name that is added or removed concurrently may
        or may not be included."""

    def changed_ns(self, directory: Path) -> int:
        """When a name was last added or removed, in nanoseconds since 1970; the clock may be
        coarse, so that two changes have the same time."""

    def size(self, path: Path) -> int: ...

    def read(self, path: Path, position: int = 0, size: int | None = None) -> bytes:
        """Up to `size` bytes from a position on, or all."""

    def publish(self, path: Path, *content: bytes | memoryview) -> None:
        """Create or replace a file atomically."""

    def append(self, path: Path, content: bytes, position: int) -> None:
        """Write at a position within the file or at its end; all or nothing, unless the process
        dies."""

    def move(self, path: Path, target: Path) -> None:
        """Rename a file, replacing an existing one."""

    def remove(self, path: Path) -> None:
        """Remove a file, if it exists."""

    def sweep(self, directory: Path) -> int:
        """Remove what a crash left of `publish`; only for the single writer of a directory."""

    def lock(
        self, path: Path, timeout_seconds: float, refusal: LockedError
    ) -> AbstractContextManager[None]:
        """Hold an exclusive lock; raise the refusal if it is not free within the timeout. The lock
        is released when the process ends, however it ends."""


class LocalFiles:
    """Files of the operating system."""

    def names(self, directory: Path) -> list[str]:
        return os.listdir(directory)

    def changed_ns(self, directory: Path) -> int:
        return directory.stat().st_mtime_ns

    def size(self, path: Path) -> int:
        return path.stat().st_size

    def read(self, path: Path, position: int = 0, size: int | None = None) -> bytes:
        if size is None and not position:
            return path.read_bytes()
        return read_part(path, position, self.size(path) if size is None else size)

    def publish(self, path: Path, *content: bytes | memoryview) -> None:
        write_aside(path, *content)

    def append(self, path: Path, content: bytes, position: int) -> None:
        with path.open("r+b", buffering=0) as file:
            descriptor = file.fileno()
            try:
                write_all(descriptor, content, position)
                os.fsync(descriptor)
            except BaseException:
                # Not acknowledged, so not kept: a full disk must not leave half a frame.
                os.ftruncate(descriptor, position)
                raise

    def move(self, path: Path, target: Path) -> None:
        path.replace(target)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def sweep(self, directory: Path) -> int:
        return sweep_temporary(directory)

    def lock(
        self, path: Path, timeout_seconds: float, refusal: LockedError
    ) -> AbstractContextManager[None]:
        return file_lock(path, timeout_seconds, refusal)


LOCAL_FILES = LocalFiles()
