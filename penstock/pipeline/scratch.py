"""A private directory for what Spark writes while it runs, removed when the process ends.

Without it Spark leaves `spark-warehouse` in the current directory, and a killed process leaves
its unpacked native libraries (tens of megabytes each time) among the system's temporary files.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

PREFIX = "penstock-spark-"
LOCK_NAME = "in-use"


class Scratch:
    """One directory, and a lock on it that shows that it is in use.

    The lock is on an open file, which the Java process inherits (`lock_descriptor`). So the
    operating system releases it only when both processes are gone, however they ended.
    """

    def __init__(self, parent: Path | None = None) -> None:
        parent = parent if parent is not None else Path(tempfile.gettempdir())
        sweep(parent)
        self._owner_pid = os.getpid()
        self.path, self.lock_descriptor = _make_locked(parent)

    def remove(self) -> None:
        # A forked child shares this object, but does not own the directory.
        if os.getpid() == self._owner_pid:
            shutil.rmtree(self.path, ignore_errors=True)


def _make_locked(parent: Path) -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent))
        descriptor = os.open(path / LOCK_NAME, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # Another process may have removed the directory before it was locked.
        if (path / LOCK_NAME).exists():
            return path, descriptor
        os.close(descriptor)


def sweep(parent: Path) -> None:
    """Remove the directories that killed processes of this user left behind."""
    for path in parent.glob(f"{PREFIX}*"):
        try:
            descriptor = os.open(path / LOCK_NAME, os.O_RDWR)
        except OSError:
            continue  # of another user, just being made, or just being removed
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue  # in use
        else:
            shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(descriptor)
