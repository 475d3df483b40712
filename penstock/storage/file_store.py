"""The place that keeps the files of a home: the few things that the logs need of it.

The local file system is the first such place. An object store can follow: `publish` is a put,
`names` a list, `read` a ranged get. What it lacks is `append`: there, a frame of the log would be
an object of its own.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from penstock.errors import LockedError
from penstock.storage.disk import file_lock, read_part, sweep_temporary, write_all, write_aside


class FileStore(Protocol):
    """Files by name, in directories. All methods raise OSError if it does not work, and
    FileNotFoundError if there is no such file. For any number of threads and processes.

    A file that was published, appended to, moved or removed is so after a crash, too.
    """

    def names(self, directory: Path) -> list[str]:
        """The names in a directory, in any order. Others may change it meanwhile: a name that
        comes or goes while it is listed may or may not be among them."""

    def changed_ns(self, directory: Path) -> int:
        """When a name was last added or removed, in nanoseconds since 1970; the clock may tick
        slowly, so that two changes have the same time."""

    def size(self, path: Path) -> int: ...

    def read(self, path: Path, position: int = 0, size: int | None = None) -> bytes:
        """So many bytes from a position on, or all, or as many as there are."""

    def publish(self, path: Path, *content: bytes | memoryview) -> None:
        """Create or replace a file: everyone sees all of it or nothing."""

    def append(self, path: Path, content: bytes, position: int) -> None:
        """Write behind the first bytes of a file, which is as long or longer; all or nothing,
        unless the process dies."""

    def move(self, path: Path, target: Path) -> None:
        """Give a file another name, in the place of one that has it."""

    def remove(self, path: Path) -> None:
        """Remove a file, if it is there."""

    def sweep(self, directory: Path) -> int:
        """Remove what a crash left of `publish`; for the only one who writes to a directory."""

    def lock(
        self, path: Path, timeout_seconds: float, refusal: LockedError
    ) -> AbstractContextManager[None]:
        """Keep all others out who ask for the same lock; raise the refusal if they do not let us in
        for so long. It ends with the process, however that does."""


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
                # Not acknowledged, so not there: a full disk must not leave half a frame.
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
